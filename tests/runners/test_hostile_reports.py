"""Reports are written by processes nobody trusts: whatever one holds, it is read without harm or is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ganger.core.verify.census import TestCensus, TestOutcome, regression
from ganger.engine.verification.proof import ReportedRun
from ganger.ports.runners import CheckedChange, RunnerCall
from ganger.runners.table import KnownRunners

LINE = b'{"name": "t", "outcome": "passed", "words": "", "file": "%s"}\n{"end": true}\n'
UNITTEST, PYTEST = ("python3", "-m", "unittest"), ("pytest",)


def _read(folder: Path, argv: tuple[str, ...], report: bytes | None) -> TestCensus | None:
    """What a reported takes from a report with these bytes."""
    reported = ReportedRun(KnownRunners(), folder, folder)
    told = reported.reporting("test.0", RunnerCall(argv, folder, {}))
    words = " ".join((*told.argv, told.env.get("PYTEST_ADDOPTS", "")))
    place = next(Path(word.partition("=")[2] or word) for word in words.split() if str(folder) in word)
    if report is not None:
        place.write_bytes(report)
    reported.ended("test.0", folder / "log", 0, succeeded=True, seconds=0.0)
    return reported.seen["test.0"].census


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(None, id="nothing"),
        pytest.param(b"", id="empty"),
        pytest.param(b'{"name": "t", "outcome": "passed"}\n', id="without an end"),
        pytest.param(b"[" * 100_000 + b"\n" + b'{"end": true}\n', id="deep"),
        pytest.param(b'{"name": "t"\n{"end": true}\n', id="broken"),
        pytest.param(LINE % b"/a\\u0000b", id="a name with a NUL"),
        pytest.param(b"\xff\xfe\n", id="no text"),
    ],
)
def test_what_is_not_whole_is_no_report(tmp_path: Path, report: bytes | None) -> None:
    """G09: and raises nothing."""
    assert _read(tmp_path, UNITTEST, report) is None


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(b"<testsuites>", id="cut off"),
        pytest.param(b'<!DOCTYPE x [<!ENTITY a "b">]><testsuites>&a;</testsuites>', id="entities"),
        pytest.param(b"<a" * 10_000, id="odd"),
    ],
)
def test_xml_that_is_not_whole_is_no_report(tmp_path: Path, report: bytes) -> None:
    """G09: entities are never expanded."""
    assert _read(tmp_path, PYTEST, report) is None


def test_a_pipe_or_a_link_in_its_place_is_no_report(tmp_path: Path) -> None:
    """G09: nobody waits for it and nobody follows it."""
    reported = ReportedRun(KnownRunners(), tmp_path, tmp_path)
    for key in ("pipe.0", "link.0"):
        told = reported.reporting(key, RunnerCall(UNITTEST, tmp_path, {}))
        if key == "pipe.0":
            os.mkfifo(told.argv[2])
        else:
            Path(told.argv[2]).symlink_to("/etc/passwd")
        reported.ended(key, tmp_path / "log", 0, succeeded=True, seconds=0.0)
        assert reported.seen[key].census is None


@pytest.mark.parametrize("file", ["/etc/shadow", "../outside.py", "pipe.py", "link.py", "/dev/zero", "a\0b.py"])
def test_a_report_cannot_name_a_file_outside_the_project(tmp_path: Path, file: str) -> None:
    """G09 G05: nothing is read, planted or waited for where it points."""
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "outside.py").write_text("def test_x():\n    assert True\n")
    os.mkfifo(root / "pipe.py")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    call = RunnerCall(PYTEST, root, {})
    runner = KnownRunners().of(call)
    census = TestCensus({f"{file}::test_x": TestOutcome.PASSED}, {}, {f"{file}::test_x": file})
    assert runner is not None and runner.plant(call, root, census, CheckedChange(("money.py",))) is None


def test_a_name_of_a_megabyte_makes_a_short_sentence() -> None:
    """G09: what is told of a test is bounded and on one line."""
    name = "t\n" * 500_000
    sentence = regression(TestCensus({name: TestOutcome.PASSED}), TestCensus()).sentence
    assert len(sentence) < 400 and "\n" not in sentence

"""Expected files that do not come are told or fail the attempt; and how a task ends that nobody can finish."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.cli_project import CONFIG, ganger, make_project, task

pytestmark = pytest.mark.whole

MODES = ("direct", "local-git")
RED = [{"name": "test", "cmd": "false"}]


def writes(*names: str) -> dict[str, object]:
    made = [{"path": name, "op": "create", "encoding": "utf8", "content": "x\n"} for name in names]
    return {"result": {"status": "DONE", "summary": "did it", "writes": made}}


def in_mode(root: Path, mode: str, settings: str = "", **given: object) -> Path:
    make_project(root, **given)  # type: ignore[arg-type]
    return begun(root, mode, settings)


def begun(root: Path, mode: str, settings: str) -> Path:
    (root / "ganger.toml").write_text(
        CONFIG.replace("[policy]", f"[policy]\n{settings}", 1) + f'[workspace]\nmode = "{mode}"\n'
    )
    (root / "there.txt").write_text("there\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


def with_files(root: Path, mode: str, expected: list[str], policy: str = "") -> Path:
    make_project(root, task(metadata={"expected_files": expected}), script={"one": writes("new.txt")})
    begun(root, mode, "")
    if policy:
        with (root / "ganger.toml").open("a") as file:
            file.write(f'expected_files = "{policy}"\n')
    return root


@pytest.mark.quick
@pytest.mark.parametrize("mode", MODES)
def test_a_missing_file_is_told_in_the_output_the_report_and_by_why(tmp_path: Path, mode: str) -> None:
    """W04: with expected_files = "warn", the default, in both modes; the task is DONE all the same."""
    root = with_files(tmp_path, mode, ["new.txt", "there.txt", "docs/gone.md"])
    answer = ganger("run", cwd=root)
    assert answer.code == 0, answer.out + answer.err
    why = ganger("why", "one", cwd=root).out
    report = (root / ".ganger" / "r1" / "report.md").read_text()
    for said in (answer.out, why, report):
        assert "expected files are missing: docs/gone.md" in said
        assert (
            "new.txt" not in said.partition("expected files are missing")[2].splitlines()[0] and "there.txt" not in said
        )


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_told_where_every_expected_file_is_there(tmp_path: Path, mode: str) -> None:
    """W04: made by the change, or there before it and not taken away."""
    root = with_files(tmp_path, mode, ["new.txt", "there.txt"])
    assert "expected files are missing" not in ganger("run", cwd=root).out + ganger("why", "one", cwd=root).out


@pytest.mark.parametrize("mode", MODES)
def test_where_asked_a_missing_file_fails_the_attempt(tmp_path: Path, mode: str) -> None:
    """W04: expected_files = "fail"."""
    root = with_files(tmp_path, mode, ["gone.txt"], "fail")
    assert ganger("run", cwd=root).code == 1
    assert "expected files are missing: gone.txt" in ganger("why", "one", cwd=root).out


def ended(root: Path) -> tuple[str, str]:
    one = ganger("tasks", "--json", cwd=root).json["tasks"][0]
    return one["status"], one.get("block_reason") or ""


@pytest.mark.parametrize("mode", MODES)
def test_with_exhausted_rework_a_red_check_ends_for_a_person_to_take_up(tmp_path: Path, mode: str) -> None:
    """W05 W07: BLOCKED(needs_rework), exit code 3; a person's retry brings it back."""
    script = {"one": [writes("a.txt"), writes("b.txt")]}
    root = in_mode(tmp_path, mode, 'exhausted = "rework"', script=script, steps=RED)
    answer = ganger("run", cwd=root)
    assert (answer.code, *ended(root)) == (3, "BLOCKED", "needs_rework")
    assert "2 of 2" in ganger("why", "one", cwd=root).out
    assert "policy.exhausted" in ganger("explain", "needs_rework", cwd=root).out
    assert ganger("retry", "one", cwd=root).code == 0
    assert ganger("run", cwd=root).code == 3 and json.loads(ganger("status", "--json", cwd=root).out)


@pytest.mark.parametrize("mode", MODES)
def test_without_it_a_red_check_ends_failed(tmp_path: Path, mode: str) -> None:
    """T13 W07: the default."""
    root = in_mode(tmp_path, mode, script={"one": [writes("a.txt"), writes("b.txt")]}, steps=RED)
    assert (ganger("run", cwd=root).code, *ended(root)) == (1, "FAILED", "")


@pytest.mark.parametrize("mode", MODES)
def test_a_check_that_a_signal_ends_each_time_says_nothing_about_the_change(tmp_path: Path, mode: str) -> None:
    """W05: run again once, then BLOCKED(needs_rework); no worker pays for it."""
    steps = [{"name": "test", "cmd": "python3 -c 'import os; os.kill(os.getpid(), 9)'"}]
    root = in_mode(tmp_path, mode, script={"one": [writes("a.txt")]}, steps=steps)
    answer = ganger("run", cwd=root)
    assert (answer.code, *ended(root)) == (3, "BLOCKED", "needs_rework"), answer.out
    assert "ran again" in answer.out and "signal" in ganger("explain", "needs_rework", cwd=root).out
    counters = ganger("why", "one", "--json", cwd=root).json["counters"]
    assert counters["worker_attempts"].startswith("0 of")

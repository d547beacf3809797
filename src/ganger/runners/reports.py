"""Reads reports: JUnit XML, JSON lines, and the JSON of jest and vitest. An incomplete report counts as none."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from ganger.core.verify.census import TestCensus, TestOutcome, TestReport, census_of

_LARGEST = 32 << 20
_LONGEST_WORDS = 8000


def read_bytes(path: Path) -> bytes | None:
    """Reads a report of an untrusted process: never through a link, never without a limit."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = file.read(_LARGEST + 1)
    return data if len(data) <= _LARGEST else None


def json_lines(path: Path) -> list[dict[str, object]] | None:
    """The lines; None unless the last one says that the run ended."""
    data = read_bytes(path)
    if data is None:
        return None
    lines: list[dict[str, object]] = []
    for line in data.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            return None
        if isinstance(told, dict):
            lines.append(told)
    return lines[:-1] if lines and lines[-1].get("end") is True else None


def read_json_lines(path: Path, root: Path) -> TestCensus | None:
    lines = json_lines(path)
    if lines is None:
        return None
    return census_of(_report(told, root) for told in lines if "name" in told)


def _report(told: dict[str, object], root: Path) -> TestReport:
    file = relative(str(told.get("file", "")), root)
    name = str(told["name"])
    outcome = TestOutcome(str(told["outcome"])) if told.get("outcome") in list(TestOutcome) else TestOutcome.FAILED
    return TestReport(name, outcome, str(told.get("words", ""))[:_LONGEST_WORDS], file)


def relative(file: str, root: Path) -> str:
    """The path relative to the project's folder."""
    if not file.startswith("/"):
        return os.path.normpath(file) if file else ""
    return os.path.relpath(os.path.realpath(file), os.path.realpath(root))


def read_junit(path: Path) -> list[JunitCase] | None:
    data = read_bytes(path)
    if not data:
        return None
    reader = _Junit()
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    # A report that declares entities is not read.
    parser.EntityDeclHandler = _refuse_entities
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, ValueError):
        return None
    return reader.cases


def _refuse_entities(*_told: object) -> None:
    raise ValueError("entities in a report")


class JunitCase:
    """One test of a JUnit report."""

    __slots__ = ("attributes", "failed", "skipped", "words")

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.failed = self.skipped = False
        self.words = ""

    @property
    def outcome(self) -> TestOutcome:
        if self.failed:
            return TestOutcome.FAILED
        return TestOutcome.SKIPPED if self.skipped else TestOutcome.PASSED


class _Junit:
    def __init__(self) -> None:
        self.cases: list[JunitCase] = []
        self._inside = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "testcase":
            self.cases.append(JunitCase(attributes))
        elif self.cases and name in ("failure", "error"):
            self.cases[-1].failed = True
            self.cases[-1].words += attributes.get("message", "")
            self._inside = name
        elif self.cases and name == "skipped":
            self.cases[-1].skipped = True

    def end(self, name: str) -> None:
        if name == self._inside:
            self._inside = ""

    def text(self, data: str) -> None:
        if self._inside and len(self.cases[-1].words) < _LONGEST_WORDS:
            self.cases[-1].words += data


def read_jest(path: Path, root: Path) -> TestCensus | None:
    """The JSON of `jest --json` and of vitest's json reporter."""
    data = read_bytes(path)
    try:
        told = json.loads(data or b"")
        return census_of(list(_jest_reports(told["testResults"], root)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


_JEST_OUTCOMES = {"passed": TestOutcome.PASSED, "failed": TestOutcome.FAILED}


def _jest_reports(files: list[dict[str, object]], root: Path) -> Iterator[TestReport]:
    for file in files:
        place = relative(str(file["name"]), root)
        tests = file["assertionResults"]
        assert isinstance(tests, list)
        for test in tests:
            outcome = _JEST_OUTCOMES.get(str(test["status"]), TestOutcome.SKIPPED)
            words = "\n".join(map(str, test.get("failureMessages") or ()))[:_LONGEST_WORDS]
            yield TestReport(f"{place} > {test['fullName']}", outcome, words, place)

"""Which tests ran, by name: what a test runner reported, and what may not get worse from one report to the next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

CENSUS_CODES: dict[str, tuple[str, str, str]] = {
    "TESTS_UNREPORTED": (
        "a test run ended with success and reported nothing",
        "A known runner was told to report its tests by name. The report is missing or incomplete, so code under test "
        "ended the process, or replaced it, before the runner was finished.",
        "Look at the check's log. Where a runner really cannot report here, set verify.census = false.",
    ),
    "TESTS_WORSE": (
        "tests that ran before a change do not run, or are skipped, with it",
        "Every test that passed or failed before must run again, by name. It may get better; new ones may be added.",
        "If the task may rename or remove tests, set may_change_gates = true in its metadata or give it a role that "
        "may.",
    ),
    "COPY_DIFFERS": (
        "tests that pass with a change fail in a copy of it",
        "Beside planted tests, and without the tests that the change adds, tests fail that had passed. The product is "
        "right only when it is not observed, or only because a new test replaces part of it.",
        "Look at the log that ends in .planted.log. If this is wrong, set verify.planted = false.",
    ),
    "PLANTED_NOT_FAILING": (
        "a test that must fail was not reported as failing",
        "Tests that cannot pass were planted in a copy of the project. The runner called them passed or left them out, "
        "so its word on the others means nothing: code under test has changed it.",
        "Look at the log that ends in .planted.log. If this is wrong, set verify.planted = false.",
    ),
}
_UNSTABLE = re.compile(r"0x[0-9a-fA-F]{6,}")
_CASE = re.compile(r"\[.*\](?:#\d+)?$", re.DOTALL)
_MOST_NAMED = 3
_LONGEST_SHOWN = 200


class TestOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"

    __test__ = False


_RANK = (TestOutcome.PASSED, TestOutcome.FAILED, TestOutcome.SKIPPED)


@dataclass(frozen=True, slots=True)
class TestCensus:
    """What one runner reported. `failures` has the words of each failure, `files` the file of each test, as far as
    the runner reported them."""

    tests: Mapping[str, TestOutcome] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    __test__ = False

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(name for name, outcome in self.tests.items() if outcome is TestOutcome.FAILED)

    def count(self, outcome: TestOutcome) -> int:
        return sum(1 for found in self.tests.values() if found is outcome)


@dataclass(frozen=True, slots=True)
class TestReport:
    """One line of a runner's report."""

    name: str
    outcome: TestOutcome
    words: str = ""
    file: str = ""

    __test__ = False


def census_of(reported: Iterable[TestReport]) -> TestCensus:
    """From the lines of a report in order. Two tests of one name are distinguished by their place."""
    seen: Counter[str] = Counter()
    tests: dict[str, TestOutcome] = {}
    failures: dict[str, str] = {}
    files: dict[str, str] = {}
    for one in reported:
        name = _UNSTABLE.sub("0x", one.name)
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}#{seen[name]}"
        tests[name] = one.outcome
        if one.file:
            files[name] = one.file
        if one.outcome is TestOutcome.FAILED:
            failures[name] = one.words
    return TestCensus(tests, failures, files)


@dataclass(frozen=True, slots=True)
class Regression:
    """What got worse: tests that no longer run, that are skipped, or that fail although the runner succeeded."""

    gone: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.gone, *self.skipped, *self.failed)

    def __bool__(self) -> bool:
        return bool(self.gone or self.skipped or self.failed)

    @property
    def sentence(self) -> str:
        parts = [
            f"{_named(names)} {_verb(names)} {what}"
            for names, what in (
                (self.gone, "reported before this change and not reported any more"),
                (self.skipped, "skipped now and not before this change"),
                (self.failed, "passing before this change and failing now, although the check ended with success"),
            )
            if names
        ]
        return "; ".join(parts)


def regression(base: TestCensus, now: TestCensus, *, may_change_tests: bool = False) -> Regression:
    """What is worse than at base. A test may get better, and new ones may come; a test that passed or failed must still
    run, unless the author of the change may change tests."""
    gone: list[str] = []
    skipped: list[str] = []
    failed: list[str] = []
    cases, doubles = _Cases(base, now), _worst_of_doubles(base, now)
    for name, was in base.tests.items():
        found = doubles.get(name, now.tests.get(name))
        if found is None:
            if was is not TestOutcome.SKIPPED and not cases.cover(name):
                gone.append(name)
        elif found is TestOutcome.SKIPPED and was is not TestOutcome.SKIPPED:
            skipped.append(name)
        elif found is TestOutcome.FAILED and was is TestOutcome.PASSED:
            failed.append(name)
    if may_change_tests:
        gone, skipped = [], []
    return Regression(tuple(gone), tuple(skipped), tuple(failed))


def without_case(name: str) -> str:
    """The test a parametrised case belongs to; any other test itself."""
    return _CASE.sub("", name)


def _worst_of_doubles(base: TestCensus, now: TestCensus) -> dict[str, TestOutcome]:
    """The worst result of a name that several tests have: the report does not show which of them it is."""
    worst: dict[str, TestOutcome] = {}
    for name, outcome in now.tests.items():
        first, _, number = name.rpartition("#")
        if number.isdigit() and first in base.tests and name not in base.tests:
            rank = max(outcome, now.tests[first], worst.get(first, outcome), key=_RANK.index)
            worst[first] = rank
    return worst


class _Cases:
    """Cases of one parametrised test, whose names often depend on the product: as many of them must have passed."""

    def __init__(self, base: TestCensus, now: TestCensus) -> None:
        self._before = Counter(_CASE.sub("[", n) for n, o in base.tests.items() if o is not TestOutcome.SKIPPED)
        self._now = Counter(_CASE.sub("[", n) for n, o in now.tests.items() if o is TestOutcome.PASSED)

    def cover(self, name: str) -> bool:
        test = _CASE.sub("[", name)
        return test != name and self._now[test] >= self._before[test]


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(_shown(name) for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _shown(name: str) -> str:
    """A name comes from a report that any program may have written."""
    plain = "".join(c if c.isprintable() else " " for c in name[: 2 * _LONGEST_SHOWN])
    return plain if len(plain) <= _LONGEST_SHOWN else f"{plain[:_LONGEST_SHOWN]}…"


def _verb(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"

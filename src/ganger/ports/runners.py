"""Test runners: how one is told to report by name, how its report is read, and how it is given tests that must fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ganger.core.census import TestCensus


@dataclass(frozen=True, slots=True)
class RunnerCall:
    """One command of a check: its words, where it runs, its whole environment. `programs`: others it will start."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedChange:
    """What a change is about: its files, and the tests that failed before it and pass with it."""

    files: tuple[str, ...] = ()
    mended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlantedTest:
    """A test that must fail. `mark` is part of its name in the report, or all of it where `whole` says so; the failure
    must say `words` ("": any failure will do). `strict`: one that fails with other words tells of something wrong."""

    mark: str
    words: str = ""
    whole: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Planting:
    """Tests that must fail, to be written into a copy of the project; `narrow` runs little else, if it can be had."""

    files: Mapping[str, bytes]
    tests: tuple[PlantedTest, ...]
    narrow: RunnerCall | None = None


class KnownRunner(Protocol):
    """One known runner as one command calls it."""

    @property
    def name(self) -> str: ...

    @property
    def certain(self) -> bool:
        """Whether this command is known to run it; otherwise only a report shows that it does."""

    @property
    def rebuilds(self) -> bool:
        """Whether it compiles before it runs, so that a copy without what was built would cost as much again."""

    @property
    def needs_build(self) -> bool:
        """Whether the commands before it build what it runs."""

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        """The same call, with a report written to this file as well."""

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        """None: it left no whole report. `output` is what the command printed, `root` the folder of the project."""

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        """Failing tests beside and inside those of the census; None where it finds no place for one."""


class Runners(Protocol):
    """The known runners."""

    def of(self, call: RunnerCall) -> KnownRunner | None:
        """The one that a command calls, or may call."""

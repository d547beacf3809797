"""Test runners: how one is made to report by test name, how its report is read, and how it gets tests that must
fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ganger.core.verify.census import TestCensus


@dataclass(frozen=True, slots=True)
class RunnerCall:
    """One command of a check: its words, its folder, its whole environment. `programs`: others that it starts."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedChange:
    """What a change is about: its files, and the tests that failed before it and pass with it."""

    files: tuple[str, ...] = ()
    fixed_tests: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlantedTest:
    """A test that must fail. `mark` is part of its name in the report, or all of it if `whole`; the failure
    must contain `words` ("": any failure). `strict`: a failure with other words shows that something is wrong."""

    mark: str
    words: str = ""
    whole: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Planting:
    """Tests that must fail, to be written into a copy of the project; `narrow`, if there is one, runs little else."""

    files: Mapping[str, bytes]
    tests: tuple[PlantedTest, ...]
    narrow: RunnerCall | None = None


class KnownRunner(Protocol):
    """One known runner, as one command calls it."""

    @property
    def name(self) -> str: ...

    @property
    def certain(self) -> bool:
        """Whether this command is known to run it; otherwise only a report shows that it does."""

    @property
    def rebuilds(self) -> bool:
        """Whether it compiles before it runs, so that a copy without the build would cost as much again."""

    @property
    def needs_build(self) -> bool:
        """Whether the commands before it build what it runs."""

    def reporting(self, call: RunnerCall, report: Path) -> RunnerCall:
        """The same call, with a report to this file in addition."""

    def read(self, report: Path, output: str, root: Path) -> TestCensus | None:
        """None: it left no complete report. `output` is what the command printed, `root` the folder of the project."""

    def plant(self, call: RunnerCall, root: Path, census: TestCensus, touched: CheckedChange) -> Planting | None:
        """Failing tests beside and inside those of the census; None where there is no place for one."""


class Runners(Protocol):
    """The known runners."""

    def of(self, call: RunnerCall) -> KnownRunner | None:
        """The runner that a command calls, or may call."""

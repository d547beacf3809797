"""Proving a green verdict: compares the runners' reports with earlier ones, and plants tests that must fail."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ganger.core.command_result import counted
from ganger.core.verify.census import TestCensus, TestOutcome
from ganger.core.vocabulary import Tier
from ganger.engine.stop_guard import StopGuard
from ganger.engine.verification.proof import (
    MOST_FLAKY,
    CommandCensus,
    PlantedOutcome,
    ProfileCensus,
    Proof,
    ReportedRun,
    Unproved,
    chance_failures,
    fixed_tests,
    is_masked,
    new_test_files,
    planted_outcome,
    remove_files,
    swap,
    tells_anything,
    unproved,
    write_planted,
)
from ganger.engine.verification.steps import Verdict, VerificationLost, launch_of, size_of_log, write_line
from ganger.ports.processes import Exit
from ganger.ports.runners import CheckedChange, Planting, RunnerCall

if TYPE_CHECKING:
    from ganger.engine.verification.checks import Checks

# A check this short runs completely with planted tests in it; of a longer one only a part.
_SHORT_SEC = 2.0
_PATIENCE_SEC, _PATIENCE = 60.0, 3.0
_LONGEST_SHOWN = 500
_DOCUMENTS = (".md", ".rst", ".adoc")


def planted_log(log: Path) -> Path:
    return log.with_name(f"{log.name.removesuffix('.log')}.planted.log")


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a profile."""

    profile: str
    folder: Path
    log: Path
    gate: StopGuard
    key: str
    named: Mapping[str, str]
    fixed: tuple[Path, ...] = ()
    made: Collection[str] = ()
    readable: tuple[Path, ...] = ()


class Proving:
    """Compares a verdict with what the runners reported, and with tests that must fail."""

    def __init__(self, checks: Checks, job: Job, proof: Proof) -> None:
        self.checks, self.job, self.proof = checks, job, proof
        # Beside the log of the checks, where failing tests would be taken for the change's.
        self.log = planted_log(job.log)
        self._numbers = itertools.count()

    async def judge(self, verdict: Verdict, reported: ReportedRun) -> Verdict:
        if not verdict.passed:
            known = await self.proof.known() if tells_anything(verdict.census) else None
            chance = chance_failures(known, reported) if known is not None else ()
            return await self._verify_again(verdict, reported, chance) if chance else verdict
        if not any(seen.census is not None or reported.found[key].certain for key, seen in reported.seen.items()):
            return verdict
        base = await self.proof.base()
        found = unproved(base, reported, may_change_tests=self.proof.may_change_tests)
        if found and 0 < len(found[0].names) <= MOST_FLAKY:
            return await self._verify_again(verdict, reported, found[0].names, found[0])
        return await self._planted(verdict, reported, base, found)

    async def _verify_again(
        self, verdict: Verdict, reported: ReportedRun, names: tuple[str, ...], lacking: Unproved | None = None
    ) -> Verdict:
        """A few tests that passed without the change may have failed, or been left out, by chance."""
        if not self.checks.recovery.tries:
            return verdict if lacking is None else _not_proved(verdict, lacking)
        what = f"{', '.join(names)} passed without the change, so this may be chance"
        write_line(self.job.log, f"=== run again: {_shown(what)}")
        again = replace(self.job, key=f"{self.job.key}.again")
        with self.checks.reported(self.job.folder) as second:
            assert second is not None
            repeated = await self.checks.guarded(again, second)
            if not repeated.passed:
                return verdict if lacking is None else _not_proved(verdict, lacking)
            base = await self.proof.base()
            found = unproved(base, second, may_change_tests=self.proof.may_change_tests)
            steps = tuple(
                replace(step, recovered=what) if step.outcome == "passed" else step for step in repeated.steps[:1]
            )
            return await self._planted(replace(repeated, steps=(*steps, *repeated.steps[1:])), second, base, found)

    async def _planted(
        self, verdict: Verdict, reported: ReportedRun, base: ProfileCensus, found: list[Unproved]
    ) -> Verdict:
        if found:
            return _not_proved(verdict, found[0])
        count = sum(len(seen.census.tests) for seen in verdict.census.values() if seen.census is not None)
        told = f"{counted(count, 'test')} by name, none worse than before"
        write_line(self.job.log, f"=== tests: {told}")
        began = self.checks.clock.monotonic()
        lacking, words = await self._plant(reported, base)
        took = self.checks.clock.monotonic() - began
        if words:
            beside = f"{took:.1f} s beside {sum(step.duration_sec for step in verdict.steps):.1f} s of checks"
            write_line(self.job.log, f"=== planted tests: {_shown(words)} ({beside})")
            told = f"{told}; planted tests: {words}, {beside}"
        return _not_proved(verdict, lacking) if lacking is not None else replace(verdict, proof=told)

    async def _plant(self, reported: ReportedRun, base: ProfileCensus) -> tuple[Unproved | None, str]:
        """What is not proved, the first of it, and the summary."""
        keys = [key for key, seen in reported.seen.items() if seen.succeeded and _has_passed(seen.census)]
        if not keys or not self.checks.planted or self.proof.copy is None or not _is_code(self.proof.files):
            return None, ""
        keys.sort(key=lambda key: reported.found[key].rebuilds)
        said: list[str] = []
        async with self.proof.copy() as copied:
            if copied is None:
                return None, "not tried, the project is too large to be copied"
            for key in keys:
                census = reported.seen[key].census
                assert census is not None
                planted = _PlantedRun(self, reported, key, *copied)
                lacking, words = await planted.try_out(census, base.get(key))
                if lacking is not None:
                    return lacking, words
                said.append(words)
        return None, "; ".join(filter(None, said))

    async def run(self, call: RunnerCall, folder: Path, reported: ReportedRun, key: str, limit_sec: float) -> Exit:
        launch = launch_of(
            call,
            self.log,
            key=f"{self.job.key}.planted.{next(self._numbers)}",
            timeout_sec=limit_sec,
            limit=self.checks.output_limit_bytes,
        )
        running = await self.job.gate.start(self.checks.confine(launch, folder, reported))
        ended = await running.wait()
        if ended.lost:
            raise VerificationLost
        return ended


class _PlantedRun:
    """Where failing tests of one command are planted: a new copy, or one with built files if that is not enough."""

    def __init__(
        self, proving: Proving, reported: ReportedRun, key: str, fresh: Path, readable: tuple[Path, ...]
    ) -> None:
        self.proving, self.reported, self.key, self.fresh, self.readable = proving, reported, key, fresh, readable
        self.runner, self.call = reported.found[key], reported.calls[key]
        self.used = reported.root

    async def try_out(self, census: TestCensus, was: CommandCensus | None) -> tuple[Unproved | None, str]:
        proof, base = self.proving.proof, was.census if was is not None else None
        masks = is_masked(was)
        new = new_test_files(census, base, proof.files) if base is not None and base.tests else frozenset()
        old = TestCensus({n: o for n, o in census.tests.items() if census.files.get(n) not in new}, {}, census.files)
        passed = [name for name, outcome in old.tests.items() if outcome is TestOutcome.PASSED]
        idle = old.tests.keys() - set(passed)
        if not proof.may_swap:
            # The project's own folder is not its copy: only what passed in a copy before must do so again.
            passed = [name for name in passed if base is not None and base.tests.get(name) is TestOutcome.PASSED]
        remove_files(self.fresh, new)
        touched = CheckedChange(proof.files, fixed_tests(base, old))
        planting = self.runner.plant(self._at(self.fresh), self.fresh, old, touched)
        if planting is None:
            return None, f"found no place for one in the tests of {self.runner.name}"
        write_planted(self.fresh, planting.files)
        places = [] if self.runner.rebuilds and proof.may_swap else [self.fresh]
        places += [self.used] if proof.may_swap else []
        heard = False
        for place in places:
            if place == self.used:
                swap(self.used, self.fresh)
            for call in self._calls(planting):
                succeeded, found = await self._run(call, place)
                heard = heard or found is not None
                came = planted_outcome(planting, found, passed, idle) if found else PlantedOutcome(0, ())
                if came.green:
                    return self._unproved(f"a planted test that must fail was reported otherwise: {came.green[0]}")
                if came.red and succeeded and not masks:
                    return self._unproved(f"{self.runner.name} ended with success although planted tests failed")
                if came.red and came.broken and (again := await self._broken_again(call, place, planting, passed)):
                    what = f"{again[0]} passed with the change and fails in a copy of it, beside planted tests"
                    return Unproved(self.key, "COPY_DIFFERS", what), what
                if came.red:
                    return None, f"{came.red} reported as failing by {self.runner.name}, as they must be"
        if proof.may_swap or (base is not None and base.tests):
            return self._unproved(f"none of {len(planting.tests)} planted tests that must fail was reported at all")
        return await self._in_a_copy_that_may_not_do(planting, heard=heard)

    async def _in_a_copy_that_may_not_do(self, planting: Planting, *, heard: bool) -> tuple[Unproved | None, str]:
        """Without the planted tests: a command that reports nothing in a copy either way proves nothing."""
        untried = f"not tried with {self.runner.name}, which does not find them in a copy of the project"
        if heard:
            return None, untried
        write_planted(
            self.fresh,
            {path: (self.used / path).read_bytes() for path in planting.files if (self.used / path).is_file()},
        )
        _, found = await self._run(self.call, self.fresh)
        if found is None:
            return None, untried
        return self._unproved(f"{self.runner.name} leaves no report when planted tests must fail")

    async def _broken_again(
        self, call: RunnerCall, place: Path, planting: Planting, passed: list[str]
    ) -> tuple[str, ...]:
        """Not by chance."""
        _, found = await self._run(call, place)
        return planted_outcome(planting, found, passed).broken if found is not None else ()

    def _unproved(self, sentence: str) -> tuple[Unproved, str]:
        return Unproved(self.key, "PLANTED_NOT_FAILING", sentence), sentence

    def _calls(self, planting: Planting) -> list[RunnerCall]:
        short = self.reported.seconds[self.key] <= _SHORT_SEC
        return [self.call] if short or planting.narrow is None else [planting.narrow, self.call]

    async def _run(self, call: RunnerCall, place: Path) -> tuple[bool, TestCensus | None]:
        inner = ReportedRun(self.reported.runners, place, self.reported.reports, self.readable)
        limit_sec = _PATIENCE_SEC + _PATIENCE * self.reported.seconds[self.key]
        for before in self._builds() if place == self.used or not self.proving.proof.may_swap else ():
            await self.proving.run(self._at(place, before), place, inner, self.key, limit_sec)
        offset = size_of_log(self.proving.log)
        reporting = inner.reporting(self.key, self._at(place, call))
        ended = await self.proving.run(reporting, place, inner, self.key, limit_sec)
        succeeded = ended.code == 0
        inner.ended(self.key, self.proving.log, offset, succeeded=succeeded, seconds=0.0)
        return succeeded, inner.seen[self.key].census

    def _builds(self) -> list[RunnerCall]:
        """The commands before it, if they build what it runs."""
        calls = list(self.reported.calls.items())
        at = [key for key, _ in calls].index(self.key)
        return [call for _, call in calls[:at]] if self.runner.needs_build else []

    def _at(self, place: Path, call: RunnerCall | None = None) -> RunnerCall:
        call = call or self.call
        within = next(top for top in (self.used, self.fresh) if call.cwd.is_relative_to(top))
        return replace(call, cwd=place / call.cwd.relative_to(within))


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:_LONGEST_SHOWN]


def _has_passed(census: TestCensus | None) -> bool:
    return census is not None and census.count(TestOutcome.PASSED) > 0


def _is_code(files: tuple[str, ...]) -> bool:
    return any(not file.endswith(_DOCUMENTS) for file in files)


def _not_proved(verdict: Verdict, lacking: Unproved) -> Verdict:
    """A pass that proves nothing does not count."""
    name = lacking.key.rpartition(".")[0]
    steps = list(verdict.steps)
    at = next((place for place, step in enumerate(steps) if step.name == name), len(steps) - 1)
    steps[at] = replace(
        steps[at], outcome="failed", tier=Tier.CORRECTNESS, first_error=f"{lacking.code}: {lacking.sentence}"
    )
    return Verdict(False, tuple(steps), steps[at], verdict.census)

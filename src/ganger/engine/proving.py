"""Proving a green verdict: what the runners reported beside what they reported before, and tests that must fail."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ganger.core.census import Census, TestOutcome
from ganger.core.vocabulary import Tier
from ganger.engine.gate import Gate
from ganger.engine.proof import (
    MOST_FLAKY,
    Doubt,
    Harvest,
    ProfileCensus,
    Proof,
    Seen,
    Witness,
    chance_failures,
    doubts,
    harvest,
    is_masked,
    mended,
    new_test_files,
    remove_files,
    swap,
    tells_anything,
    write_planted,
)
from ganger.engine.verify import Verdict, VerificationLost, launch_of, size_of_log, write_line
from ganger.ports import Exit
from ganger.ports.runners import Planting, RunnerCall, Touched

if TYPE_CHECKING:
    from ganger.engine.verification import Checks

# A check this short is run whole with planted tests in it; of a longer one only a part.
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
    gate: Gate
    key: str
    named: Mapping[str, str]
    fixed: tuple[Path, ...] = ()
    made: Collection[str] = ()


class Proving:
    """Holds a verdict against what the runners reported, and against tests that must fail."""

    def __init__(self, checks: Checks, job: Job, proof: Proof) -> None:
        self.checks, self.job, self.proof = checks, job, proof
        # Beside the log of the checks, where failing tests would be taken for the change's.
        self.log = planted_log(job.log)
        self._numbers = itertools.count()

    async def judge(self, verdict: Verdict, witness: Witness) -> Verdict:
        if not verdict.passed:
            known = await self.proof.known() if tells_anything(verdict.census) else None
            chance = chance_failures(known, witness) if known is not None else ()
            return await self._once_more(verdict, witness, chance) if chance else verdict
        if not any(seen.census is not None or witness.found[key].certain for key, seen in witness.seen.items()):
            return verdict
        base = await self.proof.base()
        found = doubts(base, witness, may_change_tests=self.proof.may_change_tests)
        if found and 0 < len(found[0].names) <= MOST_FLAKY:
            return await self._once_more(verdict, witness, found[0].names, found[0])
        return await self._planted(verdict, witness, base, found)

    async def _once_more(
        self, verdict: Verdict, witness: Witness, names: tuple[str, ...], doubt: Doubt | None = None
    ) -> Verdict:
        """A few tests that passed without the change may have failed, or been left out, by chance."""
        if not self.checks.recovery.tries:
            return verdict if doubt is None else _doubted(verdict, doubt)
        what = f"{', '.join(names)} passed without the change, so this may be chance"
        write_line(self.job.log, f"=== run again: {_shown(what)}")
        again = replace(self.job, key=f"{self.job.key}.again")
        with self.checks.witness(self.job.folder) as second:
            assert second is not None
            repeated = await self.checks.guarded(again, second)
            if not repeated.passed:
                return verdict if doubt is None else _doubted(verdict, doubt)
            base = await self.proof.base()
            found = doubts(base, second, may_change_tests=self.proof.may_change_tests)
            steps = tuple(
                replace(step, recovered=what) if step.outcome == "passed" else step for step in repeated.steps[:1]
            )
            return await self._planted(replace(repeated, steps=(*steps, *repeated.steps[1:])), second, base, found)

    async def _planted(self, verdict: Verdict, witness: Witness, base: ProfileCensus, found: list[Doubt]) -> Verdict:
        if found:
            return _doubted(verdict, found[0])
        count = sum(len(seen.census.tests) for seen in verdict.census.values() if seen.census is not None)
        told = f"{count} tests by name, none worse than before"
        write_line(self.job.log, f"=== tests: {told}")
        began = self.checks.clock.monotonic()
        doubt, words = await self._plant(witness, base)
        took = self.checks.clock.monotonic() - began
        if words:
            beside = f"{took:.1f} s beside {sum(step.duration_sec for step in verdict.steps):.1f} s of checks"
            write_line(self.job.log, f"=== planted tests: {_shown(words)} ({beside})")
            told = f"{told}; planted tests: {words}, {beside}"
        return _doubted(verdict, doubt) if doubt is not None else replace(verdict, proof=told)

    async def _plant(self, witness: Witness, base: ProfileCensus) -> tuple[Doubt | None, str]:
        """The first doubt, and what to say of it all."""
        keys = [key for key, seen in witness.seen.items() if seen.succeeded and _has_passed(seen.census)]
        if not keys or not self.checks.planted or self.proof.copy is None or not _is_code(self.proof.files):
            return None, ""
        keys.sort(key=lambda key: witness.found[key].rebuilds)
        said: list[str] = []
        async with self.proof.copy() as copied:
            if copied is None:
                return None, "not tried, the project is too large to be copied"
            for key in keys:
                census = witness.seen[key].census
                assert census is not None
                bed = _Bed(self, witness, key, *copied)
                doubt, words = await bed.try_out(census, base.get(key))
                if doubt is not None:
                    return doubt, words
                said.append(words)
        return None, "; ".join(filter(None, said))

    async def run(self, call: RunnerCall, folder: Path, witness: Witness, key: str, limit_sec: float) -> Exit:
        launch = launch_of(
            call,
            self.log,
            key=f"{self.job.key}.planted.{next(self._numbers)}",
            timeout_sec=limit_sec,
            limit=self.checks.output_limit_bytes,
        )
        running = await self.job.gate.start(self.checks.confine(launch, folder, witness))
        ended = await running.wait()
        if ended.lost:
            raise VerificationLost
        return ended


class _Bed:
    """Where failing tests of one command are planted: a fresh copy; with what was built, where that does not do."""

    def __init__(self, proving: Proving, witness: Witness, key: str, fresh: Path, readable: tuple[Path, ...]) -> None:
        self.proving, self.witness, self.key, self.fresh, self.readable = proving, witness, key, fresh, readable
        self.runner, self.call = witness.found[key], witness.calls[key]
        self.used = witness.root

    async def try_out(self, census: Census, was: Seen | None) -> tuple[Doubt | None, str]:
        proof, base = self.proving.proof, was.census if was is not None else None
        masks = is_masked(was)
        new = new_test_files(census, base, proof.files) if base is not None and base.tests else frozenset()
        old = Census({n: o for n, o in census.tests.items() if census.files.get(n) not in new}, {}, census.files)
        passed = [name for name, outcome in old.tests.items() if outcome is TestOutcome.PASSED]
        if not proof.may_swap:
            # The project's own folder is not its copy: only what passed in one before must do so again.
            passed = [name for name in passed if base is not None and base.tests.get(name) is TestOutcome.PASSED]
        remove_files(self.fresh, new)
        touched = Touched(proof.files, mended(base, old))
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
                came = harvest(planting, found, passed) if found is not None else Harvest(0, ())
                if came.green:
                    return self._doubt(f"a planted test that must fail was reported otherwise: {came.green[0]}")
                if came.red and succeeded and not masks:
                    return self._doubt(f"{self.runner.name} ended with success although planted tests failed")
                if came.red and came.fallen and (again := await self._fallen_again(call, place, planting, passed)):
                    what = f"{again[0]} passed with the change and fails in a copy of it, beside planted tests"
                    return Doubt(self.key, "COPY_DIFFERS", what), what
                if came.red:
                    return None, f"{came.red} reported as failing by {self.runner.name}, as they must be"
        if proof.may_swap or (base is not None and base.tests):
            return self._doubt(f"none of {len(planting.tests)} planted tests that must fail was reported at all")
        return await self._in_a_copy_that_may_not_do(planting, heard=heard)

    async def _in_a_copy_that_may_not_do(self, planting: Planting, *, heard: bool) -> tuple[Doubt | None, str]:
        """Without the planted tests: a command that tells nothing in a copy either way proves nothing."""
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
        return self._doubt(f"{self.runner.name} leaves no report when planted tests must fail")

    async def _fallen_again(
        self, call: RunnerCall, place: Path, planting: Planting, passed: list[str]
    ) -> tuple[str, ...]:
        """Not by chance."""
        _, found = await self._run(call, place)
        return harvest(planting, found, passed).fallen if found is not None else ()

    def _doubt(self, sentence: str) -> tuple[Doubt, str]:
        return Doubt(self.key, "PLANTED_NOT_FAILING", sentence), sentence

    def _calls(self, planting: Planting) -> list[RunnerCall]:
        short = self.witness.seconds[self.key] <= _SHORT_SEC
        return [self.call] if short or planting.narrow is None else [planting.narrow, self.call]

    async def _run(self, call: RunnerCall, place: Path) -> tuple[bool, Census | None]:
        inner = Witness(self.witness.runners, place, self.witness.reports, self.readable)
        limit_sec = _PATIENCE_SEC + _PATIENCE * self.witness.seconds[self.key]
        for before in self._builds() if place == self.used or not self.proving.proof.may_swap else ():
            await self.proving.run(self._at(place, before), place, inner, self.key, limit_sec)
        offset = size_of_log(self.proving.log)
        reporting = inner.reporting(self.key, self._at(place, call))
        ended = await self.proving.run(reporting, place, inner, self.key, limit_sec)
        succeeded = ended.code == 0
        inner.ended(self.key, self.proving.log, offset, succeeded=succeeded, seconds=0.0)
        return succeeded, inner.seen[self.key].census

    def _builds(self) -> list[RunnerCall]:
        """The commands before it, where they build what it runs."""
        calls = list(self.witness.calls.items())
        at = [key for key, _ in calls].index(self.key)
        return [call for _, call in calls[:at]] if self.runner.needs_build else []

    def _at(self, place: Path, call: RunnerCall | None = None) -> RunnerCall:
        call = call or self.call
        within = next(top for top in (self.used, self.fresh) if call.cwd.is_relative_to(top))
        return replace(call, cwd=place / call.cwd.relative_to(within))


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:_LONGEST_SHOWN]


def _has_passed(census: Census | None) -> bool:
    return census is not None and census.count(TestOutcome.PASSED) > 0


def _is_code(files: tuple[str, ...]) -> bool:
    return any(not file.endswith(_DOCUMENTS) for file in files)


def _doubted(verdict: Verdict, doubt: Doubt) -> Verdict:
    """A pass that proves nothing is none."""
    name = doubt.key.rpartition(".")[0]
    steps = list(verdict.steps)
    at = next((place for place, step in enumerate(steps) if step.name == name), len(steps) - 1)
    steps[at] = replace(
        steps[at], outcome="failed", tier=Tier.CORRECTNESS, first_error=f"{doubt.code}: {doubt.sentence}"
    )
    return Verdict(False, tuple(steps), steps[at], verdict.census)

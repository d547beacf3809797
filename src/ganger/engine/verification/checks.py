"""Verification as the engine uses it: a profile on a folder, what its verdict means, and the evidence it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.contracts.verify_profile import Profile
from ganger.core.failures.classes import VERIFY_SIGNAL
from ganger.core.logs.check_logs import FIRST_CHARS, LAST_CHARS, note_of, telling
from ganger.core.masking import NOTHING, Masker
from ganger.core.model.records import VerifyStep
from ganger.core.model.task_state import TaskState
from ganger.core.verify.census import CENSUS_CODES
from ganger.core.verify.commands import CommandFault, parse_command
from ganger.core.verify.lacks import SIGNAL
from ganger.core.verify.tiers import TieredStep, order_steps, step_class
from ganger.core.vocabulary import FailureClass, Tier
from ganger.engine.log_masks import note_masks
from ganger.engine.stop_guard import StopGuard
from ganger.engine.verification.lacking import Lacking, hint_at, log_without_change, plain_launch
from ganger.engine.verification.proof import ProfileCensus, Proof, ReportedRun, report_folder
from ganger.engine.verification.proving import Job, Proving, planted_log
from ganger.engine.verification.steps import (
    NO_RECOVERY,
    Recovery,
    StepResult,
    Verdict,
    VerificationLost,
    as_outcome,
    note_in,
    other_name,
    output_of,
    run_steps,
)
from ganger.ports.clock import Clock
from ganger.ports.processes import Launch
from ganger.ports.runners import Runners
from ganger.ports.sandbox import Room, Sandbox

_TRIES = 3
_MOST_NAMED = 20


@dataclass(frozen=True)
class Checks:
    """The operator's checks, and what they run with."""

    profiles: Mapping[str, Profile]
    tiers: Mapping[str, str]
    expect: Mapping[str, str]
    deny: tuple[str, ...]
    env: Mapping[str, str]
    timeout_sec: float
    sandbox: Sandbox
    clock: Clock
    recovery: Recovery = NO_RECOVERY
    readable: tuple[Path, ...] = ()
    output_limit_bytes: int | None = None
    withheld: tuple[str, ...] = ()
    masker: Masker = NOTHING
    shown: Callable[[str], str] = lambda text: text
    stand: Callable[[Path, Sequence[str]], Callable[[], tuple[str, ...]]] = lambda _folder, _verify: tuple
    runners: Runners | None = None
    planted: bool = True
    reports: Path | None = None
    project: Path | None = None
    network: str = "allow"

    def steps(self, profile: str) -> tuple[TieredStep, ...]:
        return order_steps(profile, self.profiles[profile].steps, self.tiers)

    def expected(self, profile: str) -> dict[str, str]:
        """What a step's output must show, by the step's name."""
        prefix = f"{profile}/"
        return {name.removeprefix(prefix): text for name, text in self.expect.items() if name.startswith(prefix)}

    def commands(self, profile: str) -> tuple[str, ...]:
        """What will judge a change, as the safeguards need to know it, including the folders it runs in."""
        return commands_of(self.profiles[profile])

    def typed(self, profile: str, name: str) -> str:
        """The command of a step as it was typed, with its folder."""
        steps = self.profiles[profile].steps
        return next((c for step, c in zip(steps, self.commands(profile), strict=True) if step.name == name), "")

    def explained(self, verdict: Verdict, profile: str, log: Path, folder: Path | None) -> Verdict:
        """A red verdict with what its log says; blocks while it reads the log."""
        if verdict.failed is None:
            return verdict
        printed = output_of(log, verdict.failed, FIRST_CHARS, LAST_CHARS)
        # Masked before it is cut: half a key would not be recognised.
        told = note_of(telling(self.shown(self.masker.text(printed)), str(folder or "")))
        says = self.shown(self.masker.text(verdict.failed.first_error))
        return replace(verdict, command=self.typed(profile, verdict.failed.name), says=says, told=told)

    def missing_program(self, profile: str) -> WhyRed | None:
        """A program of a blocking step that is not on PATH, and that no change could provide: nothing would pass."""
        path = self.env.get("PATH")
        for step in self.steps(profile):
            for program in _programs(step.cmd) if step.blocks else ():
                other = other_name(program) if self.recovery.tries else ""
                if "/" in program or any(shutil.which(name, path=path) for name in (program, other) if name):
                    continue
                detail = f"verification step {step.name} could not run: {program} is not on PATH"
                words = f"{detail}; install it or correct the step; no agent was started"
                return WhyRed(FailureClass.ENVIRONMENT, f"verify: {program} is not on PATH", words)
        return None

    def evidence(self, tree: str, profile: str) -> str:
        """The same tree, commands and tools give the same verdict: the name under which it is kept."""
        steps = self.steps(profile)
        told = [(s.name, s.cmd, s.cwd or "", s.timeout_sec, s.tier.value, s.blocks) for s in steps]
        tools = sorted({_tool(word, self.env.get("PATH")) for s in steps for word in _programs(s.cmd)})
        proofs = [self.runners is not None, self.planted]
        text = json.dumps([tree, profile, told, sorted(self.expected(profile).items()), tools, proofs])
        return hashlib.sha256(text.encode()).hexdigest()[:40]

    async def run(
        self,
        profile: str,
        *,
        folder: Path,
        log: Path,
        gate: StopGuard,
        key: str,
        named: Mapping[str, str],
        fixed: tuple[Path, ...] = (),
        made: Collection[str] = (),
        proof: Proof | None = None,
    ) -> Verdict:
        """The verdict of a profile on a folder; raises VerificationLost if the keeper keeps dying.

        `fixed` is what the checks may only read in it; `made` is what these checks created themselves before.
        `proof`: what a green verdict is compared with before it counts.
        """
        for number in range(_TRIES):
            job = Job(profile, folder, log, gate, f"{key}.{number}", named, fixed, made)
            try:
                verdict = await self._judge(job, proof)
                if self.masker:
                    for one in (log, planted_log(log), log_without_change(log)):
                        await asyncio.to_thread(note_masks, one, self.masker)
                if verdict.passed:
                    return verdict
                verdict = self._hinted(self._lacking(verdict, log), job)
                return await asyncio.to_thread(self.explained, verdict, profile, log, folder)
            except VerificationLost:
                gate.check()
        raise VerificationLost

    async def count(
        self, profile: str, *, folder: Path, log: Path, gate: StopGuard, key: str, readable: tuple[Path, ...] = ()
    ) -> ProfileCensus:
        """What the known runners of a profile report on a folder, whatever the verdict; every step runs."""
        job = Job(profile, folder, log, gate, key, {})
        with self.reported(folder, readable) as reported:
            verdict = await self._steps(job, reported, keep_going=True)
            return verdict.census

    async def _judge(self, job: Job, proof: Proof | None) -> Verdict:
        with self.reported(job.folder) as reported:
            verdict = await self.guarded(job, reported)
            if verdict.failed is not None and verdict.failed.lack is not None:
                return await Lacking(self, job, proof).judge(verdict)
            if reported is None or proof is None:
                return verdict
            return await Proving(self, job, proof).judge(verdict, reported)

    async def guarded(self, job: Job, reported: ReportedRun | None) -> Verdict:
        altered = self.stand(job.folder, self.commands(job.profile))
        verdict = await self._steps(job, reported)
        rewritten = tuple(path for path in altered() if path not in job.made) if verdict.passed else ()
        return _without_trust(verdict, rewritten)

    @contextlib.contextmanager
    def reported(self, folder: Path, readable: tuple[Path, ...] = ()) -> Iterator[ReportedRun | None]:
        if self.runners is None or self.reports is None:
            yield None
            return
        with report_folder(self.reports, folder) as reports:
            yield ReportedRun(self.runners, folder, reports, readable)

    async def steps_until(self, job: Job, last: str, reported: ReportedRun | None) -> Verdict:
        """The steps up to the one of this name."""
        names = [step.name for step in self.steps(job.profile)]
        return await self._steps(job, reported, most=names.index(last) + 1)

    async def _steps(
        self, job: Job, reported: ReportedRun | None, *, keep_going: bool = False, most: int | None = None
    ) -> Verdict:
        return await run_steps(
            self.steps(job.profile)[:most],
            workspace=job.folder,
            log_path=job.log,
            env={**self.env, **job.named},
            launcher=job.gate,
            deny=self.deny,
            default_timeout_sec=self.timeout_sec,
            key_prefix=job.key,
            confine=lambda launch: self.confine(launch, job.folder, reported, job.fixed, job.readable),
            expect=self.expected(job.profile),
            recovery=self.recovery,
            clock=self.clock.monotonic,
            output_limit_bytes=self.output_limit_bytes,
            reported=reported,
            keep_going=keep_going,
        )

    def confine(
        self,
        launch: Launch,
        folder: Path,
        reported: ReportedRun | None,
        fixed: tuple[Path, ...] = (),
        readable: tuple[Path, ...] = (),
    ) -> Launch:
        room = replace(self.room(folder, readable), fixed=fixed)
        if reported is not None:
            room = replace(room, writable=(folder, reported.reports), readable=(*room.readable, *reported.readable))
        return self.sandbox.confine(launch, room)

    def room(self, folder: Path, readable: tuple[Path, ...] = ()) -> Room:
        return Room(writable=(folder,), readable=(*self.readable, *readable))

    def _hinted(self, verdict: Verdict, job: Job) -> Verdict:
        """Red, perhaps because the sandbox hides something that it needs."""
        bad = verdict.failed
        if bad is None or bad.outcome != "failed":
            return verdict
        launch = plain_launch(job.folder, self.env.get("PATH", ""))
        hint = hint_at(bad.first_error, self.sandbox, launch, self.room(job.folder, job.readable), self.network)
        if hint:
            note_in(job.log, hint)
        return replace(verdict, hint=hint)

    def _lacking(self, verdict: Verdict, log: Path) -> Verdict:
        """Red, perhaps because a variable was not passed on: names them, and the one that the check asks for."""
        if not self.withheld or verdict.failed is None:
            return verdict
        names = ", ".join(self.withheld[:_MOST_NAMED]) + (", …" if len(self.withheld) > _MOST_NAMED else "")
        count = f"{len(self.withheld)} of your variables were" if len(self.withheld) > 1 else "1 of your variables was"
        note_in(log, f"{count} not passed on; name those a check needs in verify.env: {names}")
        bad = verdict.failed
        asked = next((name for name in self.withheld if re.search(rf"\b{re.escape(name)}\b", bad.first_error)), "")
        if not asked:
            return verdict
        told = replace(
            bad, first_error=f"{bad.first_error} ({asked} is set and not passed on: name {asked} in verify.env)"
        )
        return replace(verdict, steps=tuple(told if s is bad else s for s in verdict.steps), failed=told)


def commands_of(profile: Profile) -> tuple[str, ...]:
    return tuple(f"cd {step.cwd} && {step.cmd}" if step.cwd else step.cmd for step in profile.steps)


def _without_trust(verdict: Verdict, altered: tuple[str, ...]) -> Verdict:
    """A pass does not count if the checked code rewrote what judges it."""
    if not altered or not verdict.steps:
        return verdict
    last = verdict.steps[-1]
    more = f" and {len(altered) - _MOST_NAMED} more" if len(altered) > _MOST_NAMED else ""
    why = f"gate files were rewritten while the checks ran: {', '.join(altered[:_MOST_NAMED])}{more}"
    bad = replace(last, outcome="failed", tier=Tier.CORRECTNESS, first_error=why)
    return Verdict(False, (*verdict.steps[:-1], bad), bad)


def _programs(cmd: str) -> list[str]:
    script = parse_command(cmd, deny=())
    return [] if isinstance(script, CommandFault) else [step.argv[0] for step in script.steps if step.argv]


def _tool(program: str, path: str | None) -> str:
    """A program as it is installed: another version is another file."""
    found = shutil.which(program, path=path) if "/" not in program else None
    if found is None:
        return program
    real = os.path.realpath(found)
    try:
        seen = Path(real).stat()
    except OSError:
        return program
    return f"{program}={real}:{seen.st_size}:{seen.st_mtime_ns}"


@dataclass(frozen=True, slots=True)
class WhyRed:
    """A red verdict in words: its class, its signal, a sentence, and a note for the next attempt.

    `goes_on`: the author of the change can fix it. `refused`: nothing of the change may be taken over."""

    failure_class: FailureClass
    signal: str
    detail: str
    reminder: str = ""
    goes_on: bool = False
    refused: bool = False
    undecided: bool = False


def why_red(verdict: Verdict, *, where: str = "") -> WhyRed:
    step = verdict.failed
    assert step is not None
    if step.outcome == "timed_out":
        detail = f"verification step {step.name} ran out of time{where}"
        note = _red_note(verdict, where, step.first_error or "it ran out of time")
        return WhyRed(FailureClass.TIMEOUT, f"{VERIFY_SIGNAL}{step.name}", detail, note, goes_on=True)
    if step.outcome == "not_started":
        detail = f"verification step {step.name} could not run{where}: {step.first_error}"
        return WhyRed(FailureClass.ENVIRONMENT, f"verify: {step.first_error.partition(';')[0]}", detail)
    code = step.first_error.partition(":")[0]
    if code in CENSUS_CODES:
        detail = f"verification step {step.name} proves nothing{where}: {step.first_error}"
        note = f"The change was not accepted: the project's check `{step.name}` proves nothing{where}."
        return WhyRed(
            FailureClass.POLICY_VIOLATION, step.first_error, detail, f"{note}\n\n    {step.first_error}", refused=True
        )
    told = "it could not be started" if step.outcome == "failed" else step.outcome
    how = f"exit code {step.exit_code}" if step.exit_code is not None else told
    detail = f"verification step {step.name} failed{where} ({how}): {step.first_error or 'no output'}"
    if verdict.hint:
        detail = f"{detail} ({verdict.hint})"
    note = _red_note(verdict, where, how)
    if step.lack is not None and step.lack.kind == SIGNAL:
        again = f"{detail}; also when it was run again, and without the change"
        return WhyRed(step_class(step), f"{step.name} {how}", again, note, undecided=True)
    return WhyRed(step_class(step), step.first_error or f"{step.name} {how}", detail, note, goes_on=True)


def _red_note(verdict: Verdict, where: str, how: str) -> str:
    """What the next attempt needs to know: the command, how it ended, which tests failed, and why."""
    step = verdict.failed
    assert step is not None
    parts = [f"The change was not accepted: the project's check `{step.name}` failed{where} ({how})."]
    command = verdict.command or step.cmd
    if command:
        parts.append(f"Its command:\n\n    {' '.join(command.split())}")
    if verdict.says and verdict.says != how and verdict.says not in verdict.told:
        parts.append(f"It says:\n\n    {' '.join(verdict.says.split())}")
    return "\n\n".join([*parts, verdict.told] if verdict.told else parts)


def recorded_verdict(task: TaskState, profile: Profile) -> Verdict:
    """A red verdict that was recorded before its consequences were."""
    commands = {step.name: step.cmd for step in profile.steps}
    found = [
        StepResult(
            s.name, Tier(s.tier), commands.get(s.name, ""), as_outcome(s.outcome), s.exit_code, 0.0, s.first_error
        )
        for s in task.verification.steps
    ]
    bad = next(s for s in found if s.outcome not in ("passed", "skipped") and s.tier is not Tier.QUALITY)
    return Verdict(False, tuple(found), bad)


def step_records(steps: Sequence[StepResult]) -> tuple[VerifyStep, ...]:
    return tuple(
        VerifyStep(s.name, s.tier.value, s.outcome, s.exit_code, round(s.duration_sec, 3), s.first_error) for s in steps
    )


def seconds(verdict: Verdict) -> float:
    return round(sum(step.duration_sec for step in verdict.steps), 3)

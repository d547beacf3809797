"""One attempt, from prompt to verdict: prompt → agent → log → parse → change set → verify → settle.

Every step first looks whether it was done already, so a new lead re-enters an attempt where the old one died:

- claimed, perhaps launched: the agent is found by its key, adopted if it runs, harvested if it ended, started if never;
- exited: its log is read again;
- writes intended: files are compared with what they were and shall be, then completed or put back and written anew;
- written, verifying: verification runs again;
- verdict recorded: nothing is left but removing the backup.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.contracts.parser import Parsed, Refused
from ganger.contracts.task_result import TaskResult
from ganger.contracts.verify_profile import Profile
from ganger.core import events as ev
from ganger.core.budgets import time_limit
from ganger.core.commands import CommandFault, parse_command
from ganger.core.dependents import blocked_behind
from ganger.core.failures import Failure, classify_hint, failure
from ganger.core.healing import healing_on, questions_for
from ganger.core.moments import stamp
from ganger.core.names import backup_folder, prompt_file, verify_log, worker_log
from ganger.core.quota import after_quota, after_success
from ganger.core.records import Ended, TaskSpec, TaskState, VerifyStep
from ganger.core.retries import Next, Then, after_failure
from ganger.core.tiers import order_steps, step_class
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus, Tier
from ganger.engine.files import RunFolder, named_os_errors
from ganger.engine.gate import Gate, Stopped
from ganger.engine.journal import Journal
from ganger.engine.overlay import Overlay
from ganger.engine.prompts import FORMAT_REMINDER, Advice, assemble
from ganger.engine.turns import Turns
from ganger.engine.verify import StepResult, Verdict, VerificationLost, as_outcome, run_steps
from ganger.errors import GangerError, InputError, RollbackFailed, WriteRefused
from ganger.ports import Agent, AttemptContext, Clock, Exit, Launch, Launcher, Usage, Workspace

_PARSE_ASIDE_BYTES = 4 * 1024 * 1024
_VERIFY_TRIES = 3
_MOST_LOSSES = 5
# What a worker may ask a person in the `failure_class` of a BLOCKED result.
QUESTION_KINDS = ("ambiguous_spec", "dependency_missing", "verification_unclear")


@dataclass(frozen=True)
class Tools:
    """What every attempt of a run uses."""

    journal: Journal
    folder: RunFolder
    workspace: Workspace
    launcher: Launcher
    clock: Clock
    agents: dict[str, Agent]
    profiles: dict[str, Profile]
    tiers: dict[str, str]
    deny: tuple[str, ...]
    verify_env: dict[str, str]
    verify_timeout_sec: float
    turns: Turns
    overlay: Overlay
    output_limit_bytes: int | None = None
    rules: tuple[str, ...] = ()
    heal_in_place: bool = False
    contents: Callable[[Sequence[TaskSpec]], dict[str, str]] = lambda _specs: {}
    heal_timeout_sec: float = 900.0


class _Failed(Exception):
    """Leaves the attempt's road with a classified failure."""

    def __init__(self, failed: Failure) -> None:
        super().__init__(failed.detail)
        self.failed = failed
        self.reminder = ""
        self.keep_changes = False
        self.question = ""


class _Lost(Exception):
    """The keeper died under the agent, or a power cut took its answer: nobody saw how it ended."""


class Attempt:
    """One worker process on one task."""

    def __init__(self, tools: Tools, task: str, gate: Gate, *, again: bool = False) -> None:
        """`again`: an earlier lead began it."""
        self.tools, self.gate, self.again = tools, gate, again
        self.task = task
        self.state = tools.journal.state
        self.spec: TaskSpec = self.state.specs[task]
        self.number, self.token = self.now.attempts, self.now.token
        self.log = self.now.log or worker_log(task, self.number)
        self.verify_log = verify_log(task, self.number)
        self.backup: Path | None = tools.folder.path / self.now.backup if self.now.backup else None
        self._lost_changes = ""
        self._answered = self.now.ended is not None

    @property
    def now(self) -> TaskState:
        return self.state.tasks[self.task]

    def _record(self, *events: ev.Event) -> Awaitable[None]:
        return self.tools.journal.report(self.task, self.token, *events)

    def _mention(self, *events: ev.Event) -> None:
        """For what a new lead would find out by itself."""
        self.tools.journal.mention(self.task, self.token, *events)

    async def run(self) -> None:
        """An error that is none of the attempt's own leaves everything as it is: the next lead goes on from there."""
        try:
            await self._run()
        except _Failed as problem:
            if not problem.keep_changes:
                self._roll_back(problem.failed.detail)
            await self._fail(problem)
        except _Lost:
            self._roll_back("the keeper was lost")
            await self._record(*self._cost(None), *self._after_loss())
        except Stopped:
            await self._interrupt("the run was stopped", harvest=self._answered)
        self._drop_backup()

    async def _run(self) -> None:
        if self.backup is not None:
            # Taken before anything is awaited: nobody else may touch the files while they are half-way.
            async with self.tools.turns.take(alone=True):
                await self._finish_writing()
            return
        agent = self.tools.agents[self.spec.role]
        ended = self.now.ended or await self._execute(agent)
        self._require_whole_log(ended)
        if self.now.step == "verified":
            raise self._recorded_verdict()
        result = await self._read_result(agent, ended)
        self._heed_status(result)
        changing = bool(result.writes)
        async with self.tools.turns.take(alone=changing):
            self.gate.check()
            if changing:
                await self._write(result)
            await self._verify()

    async def _finish_writing(self) -> None:
        """Re-enters where files were about to change: completes or undoes by hash, then verifies."""
        assert self.backup is not None
        if self.now.step == "verified":
            raise self._recorded_verdict()
        landed = self.tools.workspace.landed(self.backup)
        if not landed:
            agent = self.tools.agents[self.spec.role]
            ended = self.now.ended or Ended(code=0)
            self._require_whole_log(ended)
            result = await self._read_result(agent, ended)
            if landed is None:
                self._roll_back("half of the change was written when the lead died")
                if self._lost_changes:
                    raise self._failed(FailureClass.FATAL, "backup missing", self._lost_changes)
            await self._write(result)
        elif self.now.step == "write":
            self._record(ev.WritesApplied(self.task, self.number))
        self.gate.check()
        await self._verify()

    # --- the agent ------------------------------------------------------------------------------------------------

    async def _execute(self, agent: Agent) -> Ended:
        running = await self.gate.find(str(self.tools.folder.path / self.log)) if self.again else None
        if running is None and self.again and not self.gate.knows_all():
            # After a power cut nobody can tell whether it was started; as a new attempt it is counted for certain.
            raise _Lost
        if running is None:
            running = await agent.execute(self._prepare(agent), self.gate)
        if running.pid is not None and running.start_time is not None and self.now.launched is None:
            self._mention(ev.AttemptLaunched(self.task, self.number, running.pid, running.start_time))
        ended = await running.wait()
        if ended.lost:
            self.gate.check()
            raise _Lost
        self._mention(self._exited(ended), *self._cost(self._usage(agent, ended)))
        self._answered = ended.started
        self.gate.check()
        error = "" if ended.started else ended.error
        return Ended(ended.code, ended.signal, ended.timed_out, ended.over_output, error, ended.log_bytes)

    def _require_whole_log(self, ended: Ended) -> None:
        """A log that is shorter than it was lost its end in a power cut: the answer is gone, and nobody is to blame."""
        if not self.again or ended.log_bytes is None:
            return
        log = self.tools.folder.path / self.log
        try:
            size = log.stat().st_size
        except OSError:
            size = 0
        if size < ended.log_bytes:
            self._answered = False
            raise _Lost

    def _exited(self, ended: Exit) -> ev.AttemptExited:
        return ev.AttemptExited(
            self.task,
            self.number,
            ended.code,
            ended.signal,
            ended.timed_out,
            round(ended.duration_sec, 3),
            one_line(ended.error) if not ended.started else "",
            ended.over_output,
            ended.log_bytes,
        )

    def _usage(self, agent: Agent, ended: Exit) -> Usage | None:
        """What the output says it cost; nothing for a process that never ran."""
        if not ended.started:
            return Usage() if self.now.spent.reserved_usd or self.now.spent.reserved_tokens else None
        try:
            return agent.usage(self.tools.folder.path / self.log)
        except (OSError, GangerError):
            return None

    def _cost(self, usage: Usage | None) -> list[ev.Event]:
        """An unknown cost is taken to be what was set aside; where neither is there, there is nothing to say."""
        spent = self.now.spent
        if usage is not None:
            return [ev.CostSettled(self.task, self.number, usage.usd, usage.input_tokens, usage.output_tokens)]
        if not spent.reserved_usd and not spent.reserved_tokens:
            return []
        return [ev.CostSettled(self.task, self.number, spent.reserved_usd, spent.reserved_tokens, known=False)]

    def _prepare(self, agent: Agent) -> Launch:
        """What stands in the way here concerns this task's prompt or its agent's settings, never the run."""
        context = self._context(self._write_prompt())
        try:
            launch = agent.prepare(context)
        except GangerError as error:
            detail = f"{error.code}: {error.message}" + (f"; {error.hint}" if error.hint else "")
            raise self._failed(FailureClass.BLOCKED_EXTERNAL, error.code, detail) from error
        return replace(launch, output_limit_bytes=self.tools.output_limit_bytes)

    def _context(self, prompt: Path) -> AttemptContext:
        return AttemptContext(
            run_id=self.state.run_id,
            task_id=self.task,
            attempt=self.number,
            role=self.spec.role,
            workspace=self.tools.workspace.root,
            prompt_file=prompt,
            log_path=self.tools.folder.path / self.log,
            timeout_sec=time_limit(self.state, self.task, stamp(self.tools.clock.now())),
        )

    def _write_prompt(self) -> Path:
        path = self.tools.folder.path / prompt_file(self.task, self.number)
        try:
            text = self._prompt_text()
        except InputError as error:
            raise self._failed(FailureClass.MISSING_PATHS, error.message, error.message) from error
        with named_os_errors(path):
            path.write_text(text, encoding="utf-8")
        return path

    def _prompt_text(self) -> str:
        patches = [self.state.patches[name] for name in self.now.patches]
        hints = self.tools.overlay.hints(self.task, patches) if self.now.healed else ()
        advice = Advice(hints=hints, answers=self.now.hints, rules=self.tools.rules)
        return assemble(self.spec, self.tools.overlay.reader(self.task, patches), self.now.reminder, advice)

    async def _read_result(self, agent: Agent, ended: Ended) -> TaskResult:
        if ended.error:
            raise self._failed(
                FailureClass.CRASH, f"not started: {ended.error}", f"the agent could not be started: {ended.error}"
            )
        answer = await self._extract(agent, self.tools.folder.path / self.log)
        if isinstance(answer, Refused):
            self._mention(ev.ResultRefused(self.task, self.number, answer.code, one_line(answer.message)))
            raise self._refusal(answer, ended)
        self._note_result(answer)
        return answer.value

    async def _extract(self, agent: Agent, log: Path) -> Parsed[TaskResult] | Refused:
        """An agent can remove or replace its own log; then it has given no answer."""
        try:
            if log.stat().st_size <= _PARSE_ASIDE_BYTES:
                return agent.extract_result(log, self.task)
            return await asyncio.to_thread(agent.extract_result, log, self.task)
        except (OSError, GangerError) as error:
            return Refused("NO_SENTINEL", f"the log cannot be read: {error}")

    def _refusal(self, answer: Refused, ended: Ended) -> _Failed:
        """No usable answer: a limit or a crash explains it better than the missing block does."""
        if ended.over_output:
            detail = f"the agent printed more than {self.tools.output_limit_bytes} bytes and was ended"
            return self._failed(FailureClass.OUTPUT_FORMAT, "output limit", detail)
        if ended.timed_out:
            detail = f"the agent ran out of its {self.spec.timeout_sec:g} s without a result"
            return self._failed(FailureClass.TIMEOUT, "worker", detail)
        abnormal = ended.signal is not None or ended.code != 0
        if abnormal and answer.code == "NO_SENTINEL":
            how = f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.code}"
            return self._failed(FailureClass.CRASH, how, f"the agent ended with {how} and no result block")
        return self._contract_error(answer.code, answer.message)

    def _contract_error(self, code: str, message: str) -> _Failed:
        problem = self._failed(FailureClass.CONTRACT_ERROR, code, f"{code}: {message}")
        problem.reminder = FORMAT_REMINDER.format(code=code, message=one_line(message, 300))
        return problem

    def _note_result(self, answer: Parsed[TaskResult]) -> None:
        value = answer.value
        count = len(value.writes or ())
        if self.again and self.now.summary:
            return
        self._mention(
            ev.ResultAccepted(self.task, self.number, value.status, one_line(value.summary), answer.repaired, count)
        )

    def _heed_status(self, result: TaskResult) -> None:
        if result.status == "DONE":
            return
        summary = one_line(result.summary)
        if result.status == "CONTRACT_ERROR":
            raise self._contract_error("CONTRACT_ERROR", f"the worker itself reported it: {summary}")
        if result.status == "BLOCKED":
            cls = classify_hint(result.failure_class, FailureClass.BLOCKED_EXTERNAL)
            if cls not in (FailureClass.QUOTA, FailureClass.PERMISSION_DENIED):
                cls = FailureClass.BLOCKED_EXTERNAL
            problem = self._failed(cls, summary, f"the worker is blocked: {summary}")
            problem.question = result.failure_class if result.failure_class in QUESTION_KINDS else ""
            raise problem
        cls = classify_hint(result.failure_class, FailureClass.PROMPT_GAP)
        raise self._failed(cls, summary, f"the worker reported failure: {summary}")

    # --- changes and verification -----------------------------------------------------------------------------------

    async def _write(self, result: TaskResult) -> None:
        folder = self.tools.folder.path / backup_folder(self.task, self.number)
        workspace = self.tools.workspace
        try:
            changes = workspace.propose(result.writes or (), allow_shrinkage=self.spec.allow_shrinkage)
            workspace.back_up(changes, folder)
            await self._record(
                ev.WritesIntended(self.task, self.number, backup_folder(self.task, self.number), changes.paths)
            )
            self.backup = folder
            workspace.apply(changes, folder)
            self._record(ev.WritesApplied(self.task, self.number))
        except WriteRefused as refused:
            detail = f"{refused.code}: {refused.message}"
            raise self._failed(FailureClass.POLICY_VIOLATION, f"{refused.code} {refused.message}", detail) from refused

    async def _verify(self) -> None:
        profile = self.tools.profiles[self.spec.verify_profile]
        self._mention(ev.VerifyStarted(self.task, self.number, self.verify_log))
        verdict = await self._verdict(profile)
        self.gate.check()
        finished = ev.VerifyFinished(
            self.task,
            self.number,
            verdict.passed,
            self.verify_log,
            round(sum(s.duration_sec for s in verdict.steps), 3),
            tuple(_recorded(step) for step in verdict.steps),
        )
        if verdict.passed:
            detail = f"verified by {self.spec.verify_profile} ({len(verdict.steps)} steps)"
            settled = ev.TaskSettled(self.task, TaskStatus.DONE, detail)
            await self._record(finished, settled, *after_success(self.state, self.now.account))
            return
        self._record(finished)
        problem = self._verdict_failure(verdict)
        problem.keep_changes = profile.rollback_on_failure is False
        raise problem

    async def _verdict(self, profile: Profile) -> Verdict:
        for number in range(_VERIFY_TRIES):
            try:
                return await self._run_profile(profile, number)
            except VerificationLost:
                self.gate.check()
        raise _Lost

    def _recorded_verdict(self) -> _Failed:
        """The failure of a verification whose outcome is recorded, although what follows from it is not."""
        profile = self.tools.profiles[self.spec.verify_profile]
        commands = {step.name: step.cmd for step in profile.steps}
        found = [
            StepResult(
                s.name, Tier(s.tier), commands.get(s.name, ""), as_outcome(s.outcome), s.exit_code, 0.0, s.first_error
            )
            for s in self.now.verify_steps
        ]
        bad = next(s for s in found if s.outcome not in ("passed", "skipped") and s.tier is not Tier.QUALITY)
        problem = self._verdict_failure(Verdict(False, tuple(found), bad))
        problem.keep_changes = profile.rollback_on_failure is False
        return problem

    async def _run_profile(self, profile: Profile, number: int) -> Verdict:
        tools = self.tools
        return await run_steps(
            order_steps(self.spec.verify_profile, profile.steps, tools.tiers),
            workspace=tools.workspace.root,
            log_path=tools.folder.path / self.verify_log,
            env=tools.verify_env | {"GANGER_TASK_ID": self.task, "GANGER_RUN_ID": self.state.run_id},
            launcher=self.gate,
            deny=tools.deny,
            default_timeout_sec=tools.verify_timeout_sec,
            key_prefix=f"{tools.folder.path / self.verify_log}#{self.state.leads}.{number}",
            clock=tools.clock.monotonic,
        )

    def _verdict_failure(self, verdict: Verdict) -> _Failed:
        step = verdict.failed
        assert step is not None
        if step.outcome == "timed_out":
            return self._failed(
                FailureClass.TIMEOUT, f"verify {step.name}", f"verification step {step.name} ran out of time"
            )
        missing = missing_program(step.cmd, self.tools.verify_env) if step.outcome == "not_started" else ""
        if missing:
            detail = (
                f"verification step {step.name} could not run: {missing} is not on PATH; install it or correct the step"
            )
            return self._failed(FailureClass.BLOCKED_EXTERNAL, f"verify needs {missing}", detail)
        how = f"exit code {step.exit_code}" if step.exit_code is not None else step.outcome
        detail = f"verification step {step.name} failed ({how}): {step.first_error or 'no output'}"
        reminder = (
            f"The change was not accepted: the project's check `{step.name}` failed ({how}).\n\n    {step.first_error}"
        )
        problem = self._failed(step_class(step), step.first_error or f"{step.name} {how}", detail)
        problem.reminder = reminder
        return problem

    # --- ends -------------------------------------------------------------------------------------------------------

    def _failed(self, cls: FailureClass, signal: str, detail: str) -> _Failed:
        return _Failed(failure(cls, signal, one_line(detail, 2000), self.state.specs.keys(), self.task))

    def _roll_back(self, why: str) -> None:
        if self.backup is None:
            return
        try:
            foreign = self.tools.workspace.roll_back(self.backup)
        except RollbackFailed as problem:
            if problem.code != "BACKUP_MISSING":
                raise
            self._lost_changes = problem.message
            return
        if foreign:
            place = self.backup.with_name(f"{self.backup.name}.saved")
            why = f"{why}; somebody else had changed {', '.join(foreign)}: saved in {place}"
        self._record(ev.WritesRolledBack(self.task, self.number, one_line(why), self.verify_log))

    def _drop_backup(self) -> None:
        """One that cannot be removed does no harm; the next lead tries again."""
        if self.backup is not None:
            with contextlib.suppress(WriteRefused):
                self.tools.workspace.discard(self.backup)
            self.backup = None

    def _after_loss(self) -> list[ev.Event]:
        """No counter pays, but one that loses its keeper again and again (does it kill it?) waits, then asks."""
        losses = self.now.losses + 1
        if losses > _MOST_LOSSES:
            detail = f"its keeper died {losses} times while it worked; does the agent end its own parent?"
            settled: list[ev.Event] = [ev.TaskSettled(self.task, TaskStatus.BLOCKED, detail, BlockReason.PAUSED)]
            return [*settled, *questions_for(settled), *blocked_behind(self.state, [self.task])]
        due = self.tools.clock.now() + 2.0**losses if losses > 1 else 0.0
        why = "the keeper or the end of its log was lost; run again"
        again = ev.AttemptInterrupted(
            self.task, self.number, why, harvest=self._answered, lost=True, not_before=round(due, 3)
        )
        return [again]

    async def abandon(self, why: str) -> None:
        """Ends an attempt whose process is gone already, as if it had not been."""
        await self._interrupt(why)
        self._drop_backup()

    async def _interrupt(self, why: str, *, harvest: bool = False) -> None:
        """Ends the attempt as if it had not been; nothing pays for it. `harvest`: its answer is used by the next."""
        self._roll_back(why)
        if self._lost_changes:
            await self._record(*changes_lost(self.tools.journal, self.task, self._lost_changes))
        else:
            await self._record(ev.AttemptInterrupted(self.task, self.number, why, harvest=harvest))

    async def _fail(self, problem: _Failed) -> None:
        failed = problem.failed
        if self._lost_changes:
            lost = f"{self._lost_changes} ({failed.detail})"
            await self._record(*changes_lost(self.tools.journal, self.task, lost))
            return
        policy = self.state.policy
        chosen = after_failure(self.spec, self.now, policy, failed, healing=healing_on(self.state))
        mark = ev.AttemptFailed(
            self.task,
            self.number,
            failed.failure_class.value,
            failed.signature,
            failed.detail,
            chosen.counter,
            problem.reminder,
        )
        await self._record(mark, *self._after(chosen, problem))

    def _after(self, chosen: Next, problem: _Failed) -> list[ev.Event]:
        """What follows a failure, in the words of events."""
        detail = problem.failed.detail if chosen.block_reason else f"{problem.failed.detail} ({chosen.why})"
        if chosen.then is Then.AGAIN_NOW:
            return [ev.TaskRequeued(self.task, chosen.why)]
        if chosen.then is Then.AGAIN_AFTER:
            due = round(self.tools.clock.now() + chosen.delay_sec, 3)
            return [ev.TaskRequeued(self.task, chosen.why, not_before=due)]
        if chosen.then is Then.AGAIN_LATER:
            after: list[ev.Event] = [ev.TaskSettled(self.task, TaskStatus.FAILED, detail, final=False)]
            if self.state.policy.heal_schedule is HealSchedule.OFF:
                after.append(ev.TaskRequeued(self.task, chosen.why))
            return after
        if chosen.block_reason is BlockReason.QUOTA_WAIT:
            return self._wait_for_quota(detail)
        settled: list[ev.Event] = [ev.TaskSettled(self.task, chosen.status, detail, chosen.block_reason)]
        if problem.question:
            settled.append(ev.QuestionAsked("", self.task, problem.question, detail))
        settled += questions_for(settled)
        return [*settled, *blocked_behind(self.state, [self.task])]

    def _wait_for_quota(self, detail: str) -> list[ev.Event]:
        """No counter pays, and dependents wait with it instead of being blocked: it comes back by itself."""
        now = self.tools.clock.now()
        paused = after_quota(self.state, self.now.account, now, None)
        until = max([p.until for p in paused if isinstance(p, ev.AccountPaused)], default=0.0)
        due = until or self.state.accounts_paused.get(self.now.account, now)
        settled = ev.TaskSettled(
            self.task, TaskStatus.BLOCKED, detail, BlockReason.QUOTA_WAIT, final=False, not_before=due
        )
        return [*paused, settled]


def changes_lost(journal: Journal, task: str, detail: str) -> list[ev.Event]:
    """Unverified changes that nobody can put back: said plainly, and never tried again by itself."""
    failed = failure(FailureClass.FATAL, "backup missing", detail)
    mark = ev.AttemptFailed(
        task,
        journal.state.tasks[task].attempts,
        failed.failure_class.value,
        failed.signature,
        detail,
        "worker_attempts",
    )
    settled = ev.TaskSettled(task, TaskStatus.FAILED, f"{detail}; look at its files by hand")
    return [mark, settled, *blocked_behind(journal.state, [task])]


def missing_program(command: str, env: Mapping[str, str]) -> str:
    """The first program of a verify step that this machine lacks; one named by a path is the project's own matter."""
    script = parse_command(command, deny=())
    if isinstance(script, CommandFault):
        return ""
    named = [step.argv[0] for step in script.steps if "/" not in step.argv[0]]
    return next((program for program in named if shutil.which(program, path=env.get("PATH")) is None), "")


def one_line(text: str, longest: int = 500) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())[:longest]


def _recorded(step: StepResult) -> VerifyStep:
    return VerifyStep(
        step.name, step.tier.value, step.outcome, step.exit_code, round(step.duration_sec, 3), step.first_error
    )

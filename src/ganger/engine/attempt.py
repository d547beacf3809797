"""One attempt, from prompt to verdict: prompt → agent → log → parse → change set → verify → settle.

What happens when the process dies: before `AttemptStarted` is recorded nothing was done; after it, and up to the
verdict, recovery ends what still runs, puts files back from the backup named in `WritesIntended`, and queues the task
again; after the verdict is recorded nothing is left to do but removing the backup.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ganger.contracts.parser import Parsed, Refused
from ganger.contracts.task_result import TaskResult
from ganger.contracts.verify_profile import Profile
from ganger.core import events as ev
from ganger.core.commands import CommandFault, parse_command
from ganger.core.failures import Failure, classify_hint, failure
from ganger.core.names import backup_folder, prompt_file, verify_log, worker_log
from ganger.core.records import TaskSpec, VerifyStep
from ganger.core.retries import Then, after_failure
from ganger.core.tiers import order_steps, step_class
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus
from ganger.core.windows import behind_failed
from ganger.engine.files import RunFolder, named_os_errors
from ganger.engine.gate import Gate, Stopped
from ganger.engine.journal import Journal
from ganger.engine.prompts import FORMAT_REMINDER, assemble
from ganger.engine.turns import Turns
from ganger.engine.verify import StepResult, Verdict, run_steps
from ganger.errors import GangerError, InputError, RollbackFailed, WriteRefused
from ganger.ports import Agent, AttemptContext, Clock, Exit, Launch, Launcher, Workspace

_PARSE_ASIDE_BYTES = 4 * 1024 * 1024


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


class _Failed(Exception):
    """Leaves the attempt's road with a classified failure."""

    def __init__(self, failed: Failure) -> None:
        super().__init__(failed.detail)
        self.failed = failed
        self.reminder = ""
        self.keep_changes = False


class Attempt:
    """One worker process on one task."""

    def __init__(self, tools: Tools, task: str, gate: Gate) -> None:
        self.tools, self.gate = tools, gate
        self.task = task
        self.state = tools.journal.state
        self.spec: TaskSpec = self.state.specs[task]
        self.number = self.state.tasks[task].attempts
        self.log = worker_log(task, self.number)
        self.verify_log = verify_log(task, self.number)
        self.backup: Path | None = None
        self._verdict_sent = False
        self._lost = ""

    async def run(self) -> None:
        try:
            await self._run()
        except _Failed as problem:
            if not problem.keep_changes:
                self._roll_back(problem.failed.detail)
            await self._fail(problem.failed, problem.reminder)
        except Stopped:
            await self._interrupt("the run was stopped")
        except (Exception, asyncio.CancelledError):
            # Once a verdict is on its way to the store only the next lead can tell whether it got there.
            if not self._verdict_sent:
                self._interrupt("the run ended by an error")
            raise
        self._drop_backup()

    async def _run(self) -> None:
        agent = self.tools.agents[self.spec.role]
        ended = await self._execute(agent)
        result = await self._read_result(agent, ended)
        self._heed_status(result)
        changing = bool(result.writes)
        async with self.tools.turns.take(alone=changing):
            self.gate.check()
            if changing:
                await self._write(result)
            await self._verify()

    # --- the agent ------------------------------------------------------------------------------------------------

    async def _execute(self, agent: Agent) -> Exit:
        launch = self._prepare(agent)
        running = await agent.execute(launch, self.gate)
        if running.pid is not None and running.start_time is not None:
            self.tools.journal.record(ev.AttemptLaunched(self.task, self.number, running.pid, running.start_time))
        ended = await running.wait()
        self.tools.journal.record(
            ev.AttemptExited(
                self.task,
                self.number,
                ended.code,
                ended.signal,
                ended.timed_out,
                round(ended.duration_sec, 3),
                _line(ended.error),
            )
        )
        self.gate.check()
        return ended

    def _prepare(self, agent: Agent) -> Launch:
        """What stands in the way here concerns this task's prompt or its agent's settings, never the run."""
        context = self._context(self._write_prompt())
        try:
            return agent.prepare(context)
        except GangerError as error:
            detail = f"{error.code}: {error.message}" + (f"; {error.hint}" if error.hint else "")
            raise self._failed(FailureClass.BLOCKED_EXTERNAL, error.code, detail) from error

    def _context(self, prompt: Path) -> AttemptContext:
        return AttemptContext(
            run_id=self.state.run_id,
            task_id=self.task,
            attempt=self.number,
            role=self.spec.role,
            workspace=self.tools.workspace.root,
            prompt_file=prompt,
            log_path=self.tools.folder.path / self.log,
            timeout_sec=self.spec.timeout_sec,
        )

    def _write_prompt(self) -> Path:
        path = self.tools.folder.path / prompt_file(self.task, self.number)
        try:
            text = assemble(self.spec, self.tools.workspace, self.state.tasks[self.task].reminder)
        except InputError as error:
            raise self._failed(FailureClass.MISSING_PATHS, error.message, error.message) from error
        with named_os_errors(path):
            path.write_text(text, encoding="utf-8")
        return path

    async def _read_result(self, agent: Agent, ended: Exit) -> TaskResult:
        if not ended.started:
            raise self._failed(
                FailureClass.CRASH, f"not started: {ended.error}", f"the agent could not be started: {ended.error}"
            )
        answer = await self._extract(agent, self.tools.folder.path / self.log)
        if isinstance(answer, Refused):
            self.tools.journal.record(ev.ResultRefused(self.task, self.number, answer.code, _line(answer.message)))
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

    def _refusal(self, answer: Refused, ended: Exit) -> _Failed:
        """No usable answer: a time-out or a crash explains it better than the missing block does."""
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
        problem.reminder = FORMAT_REMINDER.format(code=code, message=_line(message, 300))
        return problem

    def _note_result(self, answer: Parsed[TaskResult]) -> None:
        value = answer.value
        count = len(value.writes or ())
        self.tools.journal.record(
            ev.ResultAccepted(self.task, self.number, value.status, _line(value.summary), answer.repaired, count)
        )

    def _heed_status(self, result: TaskResult) -> None:
        if result.status == "DONE":
            return
        summary = _line(result.summary)
        if result.status == "CONTRACT_ERROR":
            raise self._contract_error("CONTRACT_ERROR", f"the worker itself reported it: {summary}")
        if result.status == "BLOCKED":
            cls = classify_hint(result.failure_class, FailureClass.BLOCKED_EXTERNAL)
            if cls not in (FailureClass.QUOTA, FailureClass.PERMISSION_DENIED):
                cls = FailureClass.BLOCKED_EXTERNAL
            raise self._failed(cls, summary, f"the worker is blocked: {summary}")
        cls = classify_hint(result.failure_class, FailureClass.PROMPT_GAP)
        raise self._failed(cls, summary, f"the worker reported failure: {summary}")

    # --- changes and verification -----------------------------------------------------------------------------------

    async def _write(self, result: TaskResult) -> None:
        folder = self.tools.folder.path / backup_folder(self.task, self.number)
        workspace, journal = self.tools.workspace, self.tools.journal
        try:
            changes = workspace.propose(result.writes or (), allow_shrinkage=self.spec.allow_shrinkage)
            workspace.back_up(changes, folder)
            await journal.record(
                ev.WritesIntended(self.task, self.number, backup_folder(self.task, self.number), changes.paths)
            )
            self.backup = folder
            workspace.apply(changes, folder)
            journal.record(ev.WritesApplied(self.task, self.number))
        except WriteRefused as refused:
            detail = f"{refused.code}: {refused.message}"
            raise self._failed(FailureClass.POLICY_VIOLATION, f"{refused.code} {refused.message}", detail) from refused

    async def _verify(self) -> None:
        profile = self.tools.profiles[self.spec.verify_profile]
        self.tools.journal.record(ev.VerifyStarted(self.task, self.number, self.verify_log))
        verdict = await self._run_profile(profile)
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
            self._verdict_sent = True
            await self.tools.journal.record(finished, ev.TaskSettled(self.task, TaskStatus.DONE, detail))
            return
        self.tools.journal.record(finished)
        problem = self._verdict_failure(verdict)
        problem.keep_changes = profile.rollback_on_failure is False
        raise problem

    async def _run_profile(self, profile: Profile) -> Verdict:
        tools = self.tools
        return await run_steps(
            order_steps(self.spec.verify_profile, profile.steps, tools.tiers),
            workspace=tools.workspace.root,
            log_path=tools.folder.path / self.verify_log,
            env=tools.verify_env | {"GANGER_TASK_ID": self.task, "GANGER_RUN_ID": self.state.run_id},
            launcher=self.gate,
            deny=tools.deny,
            default_timeout_sec=tools.verify_timeout_sec,
            key_prefix=str(tools.folder.path / self.verify_log),
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
        return _Failed(failure(cls, signal, _line(detail, 2000), self.state.specs.keys(), self.task))

    def _roll_back(self, why: str) -> None:
        if self.backup is None:
            return
        try:
            self.tools.workspace.roll_back(self.backup)
        except RollbackFailed as problem:
            if problem.code != "BACKUP_MISSING":
                raise
            self._lost = problem.message
            return
        self.tools.journal.record(ev.WritesRolledBack(self.task, self.number, _line(why), self.verify_log))

    def _drop_backup(self) -> None:
        """One that cannot be removed does no harm; the next lead tries again."""
        if self.backup is not None:
            with contextlib.suppress(WriteRefused):
                self.tools.workspace.discard(self.backup)
            self.backup = None

    def _interrupt(self, why: str) -> Awaitable[None]:
        """Ends the attempt as if it had not been; nothing pays for it."""
        self._roll_back(why)
        if self._lost:
            return self.tools.journal.record(*changes_lost(self.tools.journal, self.task, self._lost))
        return self.tools.journal.record(ev.AttemptInterrupted(self.task, self.number, why))

    async def _fail(self, failed: Failure, reminder: str) -> None:
        if self._lost:
            lost = f"{self._lost} ({failed.detail})"
            await self.tools.journal.record(*changes_lost(self.tools.journal, self.task, lost))
            return
        policy = self.state.policy
        chosen = after_failure(self.spec, self.state.tasks[self.task], policy, failed)
        mark = ev.AttemptFailed(
            self.task,
            self.number,
            failed.failure_class.value,
            failed.signature,
            failed.detail,
            chosen.counter,
            reminder,
        )
        if chosen.then is Then.AGAIN_NOW:
            await self.tools.journal.record(mark, ev.TaskRequeued(self.task, chosen.why))
            return
        detail = failed.detail if chosen.block_reason else f"{failed.detail} ({chosen.why})"
        if chosen.then is Then.AGAIN_LATER:
            after: list[ev.Event] = [mark, ev.TaskSettled(self.task, TaskStatus.FAILED, detail, final=False)]
            if policy.heal_schedule is HealSchedule.OFF:
                after.append(ev.TaskRequeued(self.task, chosen.why))
            await self.tools.journal.record(*after)
            return
        settled = ev.TaskSettled(self.task, chosen.status, detail, chosen.block_reason)
        await self.tools.journal.record(mark, settled, *block_dependents(self.tools.journal, self.task))


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
    return [mark, settled, *block_dependents(journal, task)]


def block_dependents(journal: Journal, task: str) -> list[ev.TaskSettled]:
    """Events for the tasks that cannot run because `task` ends other than DONE."""
    why = f"dependency {task} did not end DONE"
    return [
        ev.TaskSettled(name, TaskStatus.BLOCKED, why, BlockReason.DEPENDENCY_FAILED)
        for name in behind_failed(journal.state, task)
    ]


def missing_program(command: str, env: Mapping[str, str]) -> str:
    """The first program of a verify step that this machine lacks; one named by a path is the project's own matter."""
    script = parse_command(command, deny=())
    if isinstance(script, CommandFault):
        return ""
    named = [step.argv[0] for step in script.steps if "/" not in step.argv[0]]
    return next((program for program in named if shutil.which(program, path=env.get("PATH")) is None), "")


def _line(text: str, longest: int = 500) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())[:longest]


def _recorded(step: StepResult) -> VerifyStep:
    return VerifyStep(
        step.name, step.tier.value, step.outcome, step.exit_code, round(step.duration_sec, 3), step.first_error
    )

"""One attempt, from prompt to verdict: prompt → agent → log → parse → change strategy → settle.

Every step first checks whether it was done already, so a new lead re-enters an attempt where the old one died:

- claimed, perhaps launched: the agent is found by its key, adopted if it runs, harvested if it ended, else started;
- exited: its log is read again;
- changes in progress: the change strategy continues from its own records (`in_place`, `in_git`);
- verdict recorded: only the cleanup is left.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ganger.contracts.parser import Parsed, Refused, parse_result
from ganger.contracts.task_result import TaskResult
from ganger.core import events as ev
from ganger.core.control.worker_commands import SKIPPED, is_ended_by_person
from ganger.core.failures.agent_errors import AgentError
from ganger.core.failures.classes import classify_hint, failure
from ganger.core.failures.retries import NextStep, Then, after_failure
from ganger.core.healing.policy import healing_on, questions_for
from ganger.core.model.records import Ended
from ganger.core.planning.dependents import blocked_behind
from ganger.core.scheduling.accounts import after_doubtful_refusal, after_refusal
from ganger.core.scheduling.quota import after_quota, spread_after
from ganger.core.scheduling.resume import close_questions
from ganger.core.state.apply_delivery import rules_of
from ganger.core.times import stamp
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus, WorkerVerdict
from ganger.engine.agent_calls.account_questions import question_text
from ganger.engine.agent_calls.agent_output import AgentOutput
from ganger.engine.agent_calls.last_words import explain_end
from ganger.engine.attempt.red_questions import DAMAGED, asked_about_halt, asked_about_red, revert_failed
from ganger.engine.attempt.unexpected import concerns_run, told
from ganger.engine.attempt.worker_phase import WorkerPhase
from ganger.engine.attempt_context import Failed, Lost, RunningAttempt
from ganger.engine.attempt_outcome import (
    Left,
    Waits,
    meaning,
    open_question,
    raise_if_person_decided,
    result_of,
    speaks_for_itself,
)
from ganger.engine.change_strategy import ChangeStrategy
from ganger.engine.journal import Journal
from ganger.engine.prompts.assemble import FORMAT_REMINDER
from ganger.engine.resources.run_resources import one_line
from ganger.engine.stop_guard import Stopped
from ganger.errors import GangerError, MachineRefused, RollbackFailed
from ganger.ports.agents import Agent

_PARSE_ASIDE_BYTES = 4 * 1024 * 1024
_MOST_LOSSES = 5
_MOST_SAID = 4000
# After these an agent's session continues: it was cut off, or only its last words were wrong.
_CUT_OFF = frozenset(
    {
        *(FailureClass.CRASH, FailureClass.STALLED, FailureClass.TRANSIENT_INFRA, FailureClass.QUOTA),
        FailureClass.CONTRACT_ERROR,
    }
)
_TOO_LONG = "You ran out of time before you answered. Do what is left, leave out what is not needed, and answer."
# What a worker may ask a person in the `failure_class` of a BLOCKED result.
QUESTION_KINDS = ("ambiguous_spec", "dependency_missing", "verification_unclear")


class Attempt:
    """One worker process on one task."""

    def __init__(self, case: RunningAttempt, road: ChangeStrategy) -> None:
        self.case, self.road, self.tools, self.gate = case, road, case.tools, case.gate
        self.task, self.number, self.spec, self.state = case.task, case.number, case.spec, case.state
        self._answered = case.now.attempt.ended is not None
        self._work: asyncio.Task[None] | None = None
        self._is_broken_off = False
        self.agent = starts = case.tools.agent_of(case.spec, case.now, case.state.policy)
        pulled = case.now.worker is not None and case.now.worker.pulled
        known = case.now.agent.used in ("", f"{self.agent.name}/{self.agent.kind}")
        if (case.again or case.now.next_start.answer_log or pulled) and not known:
            # The settings changed, or Ganger did not start it: the kind of agent that wrote its output still reads it.
            self.agent = case.tools.reading(case.now.agent.used) or self.agent
        self._folder: Path | None = None
        self.hearing = AgentOutput(case, self.agent)
        self.shift = WorkerPhase(case, road, self.hearing, self.agent, starts)

    async def run(self) -> None:
        """Trouble of this attempt ends only this attempt. What concerns the whole run is raised and changes nothing:
        the next lead continues from there."""
        self._work = asyncio.current_task()
        try:
            await self._to_its_end()
        except asyncio.CancelledError:
            if not self._is_broken_off or self._work is None:
                raise
            self._work.uncancel()
            await self._end_broken_off()
        except Exception as problem:  # noqa: BLE001 - one attempt's trouble must not stop others
            self._require_own(problem)
            await self._end_in_trouble(problem)
        await self._leave()

    def break_off(self) -> None:
        """A person has decided about it, which is recorded: nothing in progress is waited for any more."""
        if self._work is not None and not self._is_broken_off:
            self._is_broken_off = True
            self._work.cancel()

    async def _end_broken_off(self) -> None:
        await self.gate.end_started()
        try:
            if self._is_open:
                raise_if_person_decided(self.case.now)
        except Left as left:
            await self._undo(left.why)
            await self._hand_over(left)

    async def _to_its_end(self) -> None:
        try:
            await self._run()
        except Failed as met:
            problem = await self._explained(met)
            if not problem.keep_changes:
                await self._undo(problem.failed.detail, refused=problem.refused)
            await self._fail(problem)
        except Lost:
            await self._undo("the keeper was lost", keep_place=self._answered)
            await self.case.record(*await self.hearing.unsettled(), *await self._after_loss())
        except Stopped:
            # The merge queue may have settled the task while everything was being stopped.
            if self._is_open:
                await self._interrupt("the run was stopped", harvest=self._answered)
        except Left as left:
            await self._undo(left.why)
            await self._hand_over(left)
        except Waits as waits:
            await self._wait(waits)
        except GangerError as damage:
            if damage.code != DAMAGED:
                raise
            # Everything else done here would build on what is lost (D12).
            await self._fail(self.case.failed(FailureClass.FATAL, damage.code, f"{damage.message}; {damage.hint}"))

    async def _run(self) -> None:
        agent = self.agent
        if self.road.past_agent:
            raise_if_person_decided(self.case.now)
            await self.road.go_on(lambda ended: self._result(agent, ended))
            return
        if self.case.again and self.state.lead.rebooted and self.tools.repositories:
            # What an agent wrote shortly before a power cut may be missing from its workspace, without any trace.
            self._answered = False
            raise Lost
        folder = self._folder = await self.road.enter()
        if self.road.lost_work:
            await self._start_over()
            return
        if self.case.now.attempt.ended is None and not self.case.again:
            self._require_checkable()
        ended = self.case.now.attempt.ended or await self._execute(folder)
        self._require_whole_log(ended)
        raise_if_person_decided(self.case.now)
        self.road.recall_verdict()
        words = await self.hearing.refused_session()
        if words and isinstance(await self._extract(agent, self.case.log_path), Refused):
            await self._begin_afresh(words)
            return
        result = await self._read_result(agent, ended)
        await self._raise_for_status(result)
        await self.road.deliver(result)

    async def _result(self, agent: Agent, ended: Ended) -> TaskResult:
        self._require_whole_log(ended)
        return await self._read_result(agent, ended)

    # --- the agent ------------------------------------------------------------------------------------------------

    def _require_checkable(self) -> None:
        """No agent is paid for work that no check could pass."""
        missing = self.tools.checks.missing_program(self.spec.verify_profile)
        if missing is not None:
            raise self.case.red(missing)

    async def _execute(self, folder: Path) -> Ended:
        ended, self._answered = await self.shift.work(folder)
        self.gate.check()
        return ended

    def _require_whole_log(self, ended: Ended) -> None:
        """A log that is shorter than before lost its end in a power cut: the answer is gone, and no one is to blame."""
        if not self.case.again or ended.log_bytes is None:
            return
        log = self.case.log_path
        try:
            size = log.stat().st_size
        except OSError:
            size = 0
        if size < ended.log_bytes:
            self._answered = False
            raise Lost

    async def _read_result(self, agent: Agent, ended: Ended) -> TaskResult:
        if ended.error:
            raise self.case.failed(
                FailureClass.ENVIRONMENT,
                f"not started: {ended.error}",
                f"the agent could not be started: {ended.error}",
            )
        answer = await self._extract(agent, self.case.log_path)
        if isinstance(answer, Refused) and speaks_for_itself(self.case.now):
            value = result_of(self.task, self.case.now)
            answer = Parsed(value, False, {})
        if isinstance(answer, Refused):
            raise await self._refusal(answer, ended)
        self._note_result(answer)
        return answer.value

    async def _extract(self, agent: Agent, log: Path) -> Parsed[TaskResult] | Refused:
        """An agent can delete or replace its own log; then it has given no answer. A report counts before the log."""
        worker = self.case.now.worker
        try:
            if worker is not None and worker.report:
                return await asyncio.to_thread(parse_result, self.tools.folder.path / worker.report, task_id=self.task)
            if log.stat().st_size <= _PARSE_ASIDE_BYTES and not agent.capabilities.stream:
                return agent.extract_result(log, self.task)
            return await asyncio.to_thread(agent.extract_result, log, self.task)
        except (OSError, GangerError) as error:
            return Refused("NO_SENTINEL", f"the log cannot be read: {error}")

    async def _refusal(self, answer: Refused, ended: Ended) -> Failed:
        """No usable answer: the agent's messages, a limit or a crash explain it better than the missing block does."""
        left = None if ended.over_output else meaning(self.case, ended)
        if left is not None:
            return left
        worker = self.case.now.worker
        if worker is None or not worker.verdict:
            self.case.mention(ev.ResultRefused(self.task, self.number, answer.code, one_line(answer.message)))
        if ended.over_output:
            detail = f"the agent printed more than {self.tools.output_limit_bytes} bytes and was ended"
            return self.case.failed(FailureClass.OUTPUT_FORMAT, "output limit", detail)
        if full := await self.hearing.is_full():
            raise Left(WorkerVerdict.CONTEXT, f"the model accepts no more of its conversation: {full}")
        trouble = await self.hearing.trouble(ended)
        if trouble is not None:
            return self._troubled(trouble)
        if ended.timed_out:
            detail = f"the agent gave no result within {self.spec.timeout_sec:g} s"
            problem = self.case.failed(FailureClass.TIMEOUT, "worker", detail, _TOO_LONG)
            problem.cut_off = True
            return problem
        abnormal = ended.signal is not None or ended.code != 0
        if abnormal and answer.code == "NO_SENTINEL":
            said = await self.hearing.said_at_the_end()
            return await asyncio.to_thread(explain_end, self.case, self.road, self.agent, ended, self._folder, said)
        return self._contract_error(answer.code, answer.message)

    async def _explained(self, problem: Failed) -> Failed:
        """An agent that was refused its tools and changed nothing would be refused again."""
        if problem.failed.failure_class is not FailureClass.NO_CHANGE:
            return problem
        trouble = await self.hearing.trouble(self.case.now.attempt.ended or Ended(code=0))
        if trouble is None or trouble.failure_class is not FailureClass.PERMISSION_DENIED:
            return problem
        return self._troubled(trouble)

    def _troubled(self, trouble: AgentError) -> Failed:
        problem = self.case.failed(trouble.failure_class, trouble.signal, trouble.detail, trouble.reminder)
        problem.reset_at = trouble.reset_at
        problem.account = "key" if trouble.refused else "credit" if trouble.empty else ""
        return problem

    def _contract_error(self, code: str, message: str) -> Failed:
        problem = self.case.failed(FailureClass.CONTRACT_ERROR, code, f"{code}: {message}")
        problem.reminder = FORMAT_REMINDER.format(code=code, message=one_line(message, 300))
        return problem

    def _note_result(self, answer: Parsed[TaskResult]) -> None:
        value = answer.value
        count = len(value.writes or ())
        if self.case.again and self.case.now.attempt.summary:
            return
        self.case.mention(
            ev.ResultAccepted(self.task, self.number, value.status, self._said(value), answer.repaired, count)
        )

    def _said(self, result: TaskResult) -> str:
        """What goes into events, and from there to screens, hooks and notices."""
        return one_line(self.case.tools.shown(result.summary[:_MOST_SAID]))

    async def _raise_for_status(self, result: TaskResult) -> None:
        if result.status == "DONE":
            return
        trouble = await self.hearing.trouble(self.case.now.attempt.ended or Ended(code=0))
        if trouble is not None and (
            trouble.refused or trouble.failure_class in (FailureClass.QUOTA, FailureClass.PERMISSION_DENIED)
        ):
            # The agent's own output explains a result that is no better than its words.
            raise self._troubled(trouble)
        summary = self._said(result)
        if result.status == "CONTRACT_ERROR":
            raise self._contract_error("CONTRACT_ERROR", f"the worker itself reported it: {summary}")
        if result.status == "BLOCKED":
            cls = classify_hint(result.failure_class, FailureClass.BLOCKED_EXTERNAL)
            if cls not in (FailureClass.QUOTA, FailureClass.PERMISSION_DENIED):
                cls = FailureClass.BLOCKED_EXTERNAL
            problem = self.case.failed(cls, summary, f"the worker is blocked: {summary}")
            problem.escalated = open_question(self.case) is not None
            asks = result.failure_class in QUESTION_KINDS and not problem.escalated
            problem.question = result.failure_class or "" if asks else ""
            raise problem
        cls = classify_hint(result.failure_class, FailureClass.PROMPT_GAP)
        raise self.case.failed(cls, summary, f"the worker reported failure: {summary}")

    # --- trouble ----------------------------------------------------------------------------------------------------

    @property
    def _is_open(self) -> bool:
        return self.tools.journal.is_open(self.task, self.case.token)

    def _require_own(self, problem: Exception) -> None:
        """Raises what does not concern this attempt alone. Nothing continues over a tree in an unknown state, unless a
        person has given the attempt up."""
        given_up = isinstance(problem, RollbackFailed) and is_ended_by_person(self.case.now)
        if (concerns_run(problem) and not given_up) or self.tools.journal.error is not None:
            if isinstance(problem, OSError):
                raise MachineRefused(told(problem)) from problem
            raise problem

    async def _end_in_trouble(self, problem: Exception) -> None:
        """An unforeseen error is charged to no counter. An answer is read again once; then a person has to look."""
        if not self._is_open:
            return
        words = told(problem)
        await self.gate.end(str(self.case.log_path))
        if self._answered and self.road.keeps_answer and not self.case.now.next_start.answer_log:
            await self._interrupt(f"{words}; its answer is kept and read again", harvest=True)
            return
        detail = f"this attempt could not continue: {words}"
        met = self.case.failed(FailureClass.BLOCKED_EXTERNAL, words, detail)
        await self._undo(words)
        await self._fail(met)

    async def _undo(self, why: str, *, keep_place: bool = False, refused: bool = False) -> None:
        """A failed undo is reported with the outcome, and left where a person finds it."""
        for last in (False, True):
            try:
                await self.road.undo(why, keep_place=keep_place, refused=refused)
                return
            except Exception as problem:  # noqa: BLE001 - one attempt's trouble must not stop others
                self._require_own(problem)
                # What could not be undone for a moment must not stay where all agents work.
                if last:
                    self.road.leave_as_it_is(told(problem))

    async def _leave(self) -> None:
        """The outcome is recorded: what cannot be cleaned up now is found by the next lead, or by `ganger clean`."""
        for leave in (self.road.leave, self.shift.leave):
            try:
                await leave()
            except Exception as problem:  # noqa: BLE001 - one attempt's trouble must not stop others
                self._require_own(problem)

    # --- ends -------------------------------------------------------------------------------------------------------

    async def _after_loss(self) -> list[ev.Event]:
        """No counter is charged, but an attempt that keeps losing its keeper (does it kill it?) waits, then asks."""
        losses = self.case.now.counters.losses + 1
        if losses > _MOST_LOSSES:
            detail = f"its keeper died {losses} times while it worked; does the agent end its own parent?"
            settled: list[ev.Event] = [ev.TaskSettled(self.task, TaskStatus.BLOCKED, detail, BlockReason.PAUSED)]
            return [*settled, *questions_for(settled), *blocked_behind(self.state, [self.task])]
        due = self.tools.clock.now() + 2.0**losses if losses > 1 else 0.0
        why = "the keeper or the end of its log was lost; run again"
        again = ev.AttemptInterrupted(
            self.task,
            self.number,
            why,
            harvest=self._answered and self.road.keeps_answer,
            lost=True,
            not_before=round(due, 3),
            resume="" if self.state.lead.rebooted else await self._resumable(),
        )
        return [again]

    async def _resumable(self) -> str:
        """The session that the next attempt can continue, if its work is still there."""
        return "" if self._answered or not self.road.keeps_work else await self.hearing.session()

    async def _hand_over(self, left: Left) -> None:
        """Its worker is finished although its task is not: no counter is charged, and another worker continues."""
        if self.road.lost_changes:
            await self.case.record(*changes_lost(self.tools.journal, self.task, self.road.lost_changes))
        elif left.how == WorkerVerdict.CONTEXT and self.case.now.counters.checkpoints >= self.state.policy.checkpoints:
            times = self.state.policy.checkpoints
            detail = f"{left.why}; after {times} checkpoints the task is still not done"
            await self._fail(self.case.failed(FailureClass.TIMEOUT, "checkpoints", detail))
        elif left.how == WorkerVerdict.CONTEXT:
            await self.case.record(ev.AttemptCheckpointed(self.task, self.number, left.why))
        elif left.how in (WorkerVerdict.ENDED, WorkerVerdict.SKIPPED):
            settled: list[ev.Event] = [ev.TaskSettled(self.task, TaskStatus.BLOCKED, left.why, BlockReason.PAUSED)]
            besides = self._left_out() if left.how == WorkerVerdict.SKIPPED else []
            await self.case.record(*settled, *besides, *blocked_behind(self.state, [self.task]))
        else:
            await self.case.record(ev.AttemptInterrupted(self.task, self.number, left.why))

    def _left_out(self) -> list[ev.Event]:
        """As for any skipped task: its questions are closed, and it holds no repository."""
        freed = [ev.RepoUnlocked(self.spec.repo, SKIPPED, (self.task,), lifts=False)] if self.case.now.locked else []
        return [*close_questions(self.state, self.task, "skipped"), *freed]

    async def _wait(self, waits: Waits) -> None:
        """Its dependents wait with it: nothing has failed."""
        if waits.escalated:
            ended: ev.Event = ev.TaskSettled(self.task, TaskStatus.ESCALATED, waits.why)
        else:
            ended = ev.TaskSettled(self.task, TaskStatus.BLOCKED, waits.why, waits.reason, final=False)
        settled = [ended]
        if waits.question:
            text, options = waits.text or waits.why, waits.options
            settled.append(ev.QuestionAsked("", self.task, waits.question, text, attempt=self.number, options=options))
        behind = blocked_behind(self.state, [self.task]) if waits.escalated else []
        await self.case.record(*waits.before, *settled, *behind)

    async def abandon(self, why: str) -> None:
        """Ends an attempt whose process is gone already, without a trace."""
        try:
            await self._interrupt(why, resume=False)
        except Exception as problem:  # noqa: BLE001 - one attempt's trouble must not stop others
            self._require_own(problem)
            self._answered = False
            await self._end_in_trouble(problem)
        await self._leave()

    async def _start_over(self) -> None:
        """The work is gone with the folder, whatever its agent says; an agent that still works there is ended."""
        key = str(self.case.log_path)
        if await self.gate.find(key) is not None:
            await self.gate.end(key)
        await self._interrupt("the workspace it worked in is gone; started over", resume=False)

    async def _begin_afresh(self, words: str) -> None:
        """A session that cannot be continued is never tried twice; its work is kept as for any new worker."""
        why = f"its session could not be continued ({words}); a new one starts from its work"
        await self._undo(why)
        if self.road.lost_changes:
            await self.case.record(*changes_lost(self.tools.journal, self.task, self.road.lost_changes))
        else:
            again = ev.AttemptInterrupted(self.task, self.number, why, afresh=words)
            await self.case.record(*await self.hearing.told_until_now(), again)

    async def _interrupt(self, why: str, *, harvest: bool = False, resume: bool = True) -> None:
        """Ends the attempt without a trace and without charging a counter. `harvest`: the next one uses its answer."""
        await self._undo(why, keep_place=harvest)
        if self.road.lost_changes:
            await self.case.record(*changes_lost(self.tools.journal, self.task, self.road.lost_changes))
        else:
            kept = harvest and self.road.keeps_answer
            session = await self._resumable() if resume and not harvest else ""
            again = ev.AttemptInterrupted(self.task, self.number, why, harvest=kept, resume=session)
            await self.case.record(*await self.hearing.told_until_now(), again)

    async def _fail(self, problem: Failed) -> None:
        failed = problem.failed
        if self.road.lost_changes:
            lost = f"{self.road.lost_changes} ({failed.detail})"
            await self.case.record(*changes_lost(self.tools.journal, self.task, lost))
            return
        policy = self.state.policy
        asks = problem.escalated
        fixes = rules_of(self.state, self.task).fixes
        chosen = after_failure(
            self.spec,
            self.case.now,
            policy,
            failed,
            healing=healing_on(self.state),
            asks=asks,
            fixes=fixes,
            sent_back=problem.sent_back,
        )
        mark = ev.AttemptFailed(
            self.task,
            self.number,
            failed.failure_class.value,
            failed.signature,
            failed.detail,
            chosen.counter,
            problem.reminder,
            problem.files,
            session := await self._goes_on(problem, chosen),
            remade=bool(session) and problem.goes_on,
        )
        if problem.account:
            # Other workers of the account may meet the same at this moment, and only one of them asks.
            await self.tools.journal.idle()
        await self.case.record(*problem.before, mark, *self._halts(problem), *self._after(chosen, problem))

    def _halts(self, problem: Failed) -> list[ev.Event]:
        """D12: if changes leave the machine or repositories build on each other, a fatal one stops them all."""
        rules = rules_of(self.state, self.task)
        if problem.failed.failure_class is not FailureClass.FATAL or not (rules.delivers or rules.locks != "none"):
            return []
        detail = one_line(problem.failed.detail, 400)
        where = rules.name or "the project"
        unlock = f"ganger unlock {rules.name or '.'} --why TEXT"
        text = f"{detail}; {where} and everything in its chain is halted until {unlock}"
        asked = asked_about_halt(self.case, text, damaged=DAMAGED.lower() in problem.failed.signature.lower())
        return [ev.ChainHalted(rules.name, self.task, detail), asked]

    async def _goes_on(self, problem: Failed, chosen: NextStep) -> str:
        """The session that the next attempt continues: it was cut off, or the author of the change can fix it."""
        cls, waits, now = problem.failed.failure_class, bool(problem.account), self.case.now
        if problem.goes_on:
            # A session that was told the reason and repeated the mistake does not get out of it.
            stuck = bool(now.agent.continued) and now.failure.signature == problem.failed.signature
            return "" if chosen.then is Then.SETTLE or stuck else await self.hearing.session()
        comes_back = chosen.then in (Then.AGAIN_NOW, Then.AGAIN_AFTER) or chosen.block_reason is BlockReason.QUOTA_WAIT
        if problem.cut_off:
            # Out of time, perhaps because its model stopped answering; only once, as the session itself may be stuck.
            return await self.hearing.session() if self.road.keeps_work and not now.agent.continued else ""
        if not (waits or (cls in _CUT_OFF and comes_back)) or not self.road.keeps_work:
            return ""
        if cls is FailureClass.STALLED and self.case.now.counters.stalls >= self.state.policy.stall_restarts:
            return ""
        return await self.hearing.session()

    def _after(self, chosen: NextStep, problem: Failed) -> list[ev.Event]:
        """What follows a failure, in the words of events."""
        detail = problem.failed.detail if chosen.block_reason else f"{problem.failed.detail} ({chosen.why})"
        if chosen.then is Then.SETTLE and self.case.now.next_start.lost_session:
            detail = f"{detail}; earlier, its session could not be continued: {self.case.now.next_start.lost_session}"
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
            return self._wait_for_quota(problem, detail)
        if problem.account:
            return self._wait_for_account(detail)
        if problem.escalated and chosen.status is TaskStatus.ESCALATED:
            waits: list[ev.Event] = [ev.TaskSettled(self.task, TaskStatus.ESCALATED, detail)]
            return [*waits, *blocked_behind(self.state, [self.task])]
        settled: list[ev.Event] = [ev.TaskSettled(self.task, chosen.status, detail, chosen.block_reason)]
        if problem.question:
            settled.append(ev.QuestionAsked("", self.task, problem.question, detail))
        settled += asked_about_red(self.case, chosen, problem, detail) or questions_for(settled)
        return [*revert_failed(self.case, chosen, problem), *settled, *blocked_behind(self.state, [self.task])]

    def _wait_for_quota(self, problem: Failed, detail: str) -> list[ev.Event]:
        """No counter is charged, and dependents wait with it instead of being blocked: it comes back by itself."""
        now = self.tools.clock.now()
        paused = after_quota(self.state, self.case.now.attempt.account, now, problem.reset_at)
        until = max([p.until for p in paused if isinstance(p, ev.AccountPaused)], default=0.0)
        due = until or self.state.quota.paused.get(self.case.now.attempt.account, now)
        detail = f"{detail}; continues at {stamp(spread_after(self.state, due, self.task))}"
        settled = ev.TaskSettled(
            self.task, TaskStatus.BLOCKED, detail, BlockReason.QUOTA_WAIT, final=False, not_before=due
        )
        asked = self._ask_about_account(detail, due) if problem.account else []
        return [*paused, settled, *asked]

    def _wait_for_account(self, detail: str) -> list[ev.Event]:
        """None of this is the task's fault: it waits, and so does every other task of its account."""
        settled = ev.TaskSettled(self.task, TaskStatus.BLOCKED, detail, BlockReason.EXTERNAL, final=False)
        return [settled, *self._ask_about_account(detail)]

    def _ask_about_account(self, detail: str, until: float = 0.0) -> list[ev.Event]:
        account = self.case.now.attempt.account
        text = question_text(self.agent, account, detail, until)
        if until:
            return after_refusal(self.state, account, detail, text, until)
        return after_doubtful_refusal(self.state, self.task, detail, text)


def changes_lost(journal: Journal, task: str, detail: str) -> list[ev.Event]:
    """Unverified changes that cannot be restored: reported plainly, and never retried automatically."""
    failed = failure(FailureClass.FATAL, "backup missing", detail)
    mark = ev.AttemptFailed(
        task,
        journal.state.tasks[task].attempts,
        failed.failure_class.value,
        failed.signature,
        detail,
        "worker_attempts",
    )
    settled = ev.TaskSettled(task, TaskStatus.FAILED, f"{detail}; check its files by hand")
    return [mark, settled, *blocked_behind(journal.state, [task])]

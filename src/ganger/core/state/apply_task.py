"""How each event changes the one task it is about."""

from __future__ import annotations

import dataclasses
from typing import Any

from ganger.core import events as ev
from ganger.core.model.counters import counted, granted_by_person
from ganger.core.model.fast_replace import replace
from ganger.core.model.ledger import Milestone
from ganger.core.model.records import ChangeRecord, Ended, HistoryItem
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import CurrentAttempt, TaskState
from ganger.core.money.budgets import released, reserve, settle_cost
from ganger.core.names import verify_log, worker_log
from ganger.core.state.apply_delivery import begun, rules_of, taken_up
from ganger.core.state.reducers import applies
from ganger.core.vocabulary import AttemptStep, Phase, TaskStatus

P, R, B = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.BLOCKED


@applies(ev.AttemptStarted)
def _attempt_started(state: RunState, name: str, task: TaskState, event: ev.AttemptStarted, at: str) -> TaskState:
    state.lead.touched.add(name)
    works = 0 if event.delivers else 1
    state.money.spent = reserve(
        replace(state.money.spent, attempts=state.money.spent.attempts + works),
        event.reserved_usd,
        event.reserved_tokens,
    )
    kept = bool(task.next_start.answer_log) or event.delivers
    return replace(
        task,
        status=R,
        block_reason=None,
        detail="",
        final=False,
        attempts=event.attempt,
        counters=replace(task.counters, worker_attempts=task.counters.worker_attempts + works),
        attempt=_attempt_of(task, event, at, kept=kept),
        locked=rules_of(state, name).locks != "none",
        verification=replace(
            task.verification,
            passed_attempt=event.attempt if event.delivers else None,
            steps=task.verification.steps if event.delivers else (),
        ),
        failure=replace(task.failure, missing_files=task.failure.missing_files if kept else ()),
        work=replace(
            task.work,
            workspace_of=task.work.workspace_of if kept or event.session else event.attempt,
            change=task.work.change if kept else None,
            in_merge_queue=False,
            merged=task.work.merged if event.delivers else "",
        ),
        agent=replace(
            task.agent,
            continued=event.session,
            used=task.agent.used if kept else f"{event.agent}/{event.kind}",
            sandbox=task.agent.sandbox if kept else event.walls,
            activity="",
        ),
        next_start=replace(task.next_start, resume_session=""),
        waits_for_canary="",
        not_before=0.0,
        spent=reserve(
            replace(task.spent, attempts=task.spent.attempts + works), event.reserved_usd, event.reserved_tokens
        ),
    )


def _attempt_of(task: TaskState, event: ev.AttemptStarted, at: str, *, kept: bool) -> CurrentAttempt:
    return CurrentAttempt(
        token=event.token,
        step=_first_step(task, event),
        started_at=at,
        account=event.account,
        log=event.log,
        ended=task.attempt.ended if task.next_start.answer_log else None,
        summary=task.attempt.summary if kept else "",
        free=event.delivers,
        open_line=None if event.delivers else _worker_line(task, event, at),
    )


def _first_step(task: TaskState, event: ev.AttemptStarted) -> AttemptStep:
    if event.delivers:
        return AttemptStep.DELIVER
    return AttemptStep.PARSE if task.next_start.answer_log else AttemptStep.AGENT


def _worker_line(task: TaskState, event: ev.AttemptStarted, at: str) -> HistoryItem:
    return HistoryItem(Phase.WORKER, event.attempt, event.log, at, patches=task.healing.patches)


@applies(ev.AttemptLaunched)
def _attempt_launched(_s: RunState, _n: str, task: TaskState, event: ev.AttemptLaunched, _at: str) -> TaskState:
    return replace(task, attempt=replace(task.attempt, launched=(event.pid, event.start_ticks)))


@applies(ev.AgentHeard)
def _agent_heard(_s: RunState, _n: str, task: TaskState, event: ev.AgentHeard, _at: str) -> TaskState:
    totals = task.agent.totals if event.session in ("", task.agent.session) else None
    return replace(
        task,
        agent=replace(
            task.agent,
            session=event.session or task.agent.session,
            totals=totals,
            model=event.model or task.agent.model,
            activity=event.doing,
        ),
    )


@applies(ev.AttemptExited)
def _attempt_exited(_s: RunState, _n: str, task: TaskState, event: ev.AttemptExited, at: str) -> TaskState:
    item = task.attempt.open_line
    code = event.exit_code if event.signal is None else -event.signal
    line = None if item is None else replace(item, exit_code=code, duration_sec=event.duration_sec, at=at)
    spent = replace(task.spent, wall_sec=task.spent.wall_sec + event.duration_sec)
    ended = Ended(event.exit_code, event.signal, event.timed_out, event.over_output, event.error, event.log_bytes)
    return replace(
        task,
        attempt=replace(task.attempt, step=AttemptStep.PARSE, launched=None, ended=ended, open_line=line),
        counters=replace(task.counters, losses=0),
        spent=spent,
    )


@applies(ev.CostSettled)
def _cost_settled(state: RunState, _n: str, task: TaskState, event: ev.CostSettled, _at: str) -> TaskState:
    usd, tokens = task.spent.reserved_usd, task.spent.reserved_tokens
    state.money.spent = settle_cost(state.money.spent, event, usd, tokens)
    spent = settle_cost(task.spent, event, usd, tokens)
    if event.totals is not None:
        task = replace(
            task, agent=replace(task.agent, session=event.session or task.agent.session, totals=event.totals)
        )
    return replace(task, spent=spent, attempt=replace(task.attempt, usd=task.attempt.usd + event.usd))


@applies(ev.ResultAccepted)
def _result_accepted(_s: RunState, _n: str, task: TaskState, event: ev.ResultAccepted, _at: str) -> TaskState:
    return replace(task, attempt=replace(task.attempt, summary=event.summary))


@applies(ev.ResultRefused)
def _result_refused(_s: RunState, _n: str, task: TaskState, event: ev.ResultRefused, _at: str) -> TaskState:
    return replace(task, detail=f"{event.code}: {event.message}")


@applies(ev.WritesIntended)
def _writes_intended(state: RunState, _n: str, task: TaskState, event: ev.WritesIntended, _at: str) -> TaskState:
    state.files.written.update(event.files)
    return replace(task, attempt=replace(task.attempt, step=AttemptStep.WRITE, backup=event.backup))


@applies(ev.WritesApplied)
def _writes_applied(_s: RunState, _n: str, task: TaskState, _event: ev.WritesApplied, _at: str) -> TaskState:
    return replace(task, attempt=replace(task.attempt, step=AttemptStep.WRITTEN))


@applies(ev.WritesRolledBack)
def _rolled_back(_s: RunState, _n: str, task: TaskState, event: ev.WritesRolledBack, at: str) -> TaskState:
    line = HistoryItem(Phase.ROLLBACK, event.attempt, event.log, at, patches=task.healing.patches)
    return replace(task, attempt=replace(task.attempt, backup=""), history=(*task.history, line))


@applies(ev.VerifyStarted)
def _verify_started(_s: RunState, _n: str, task: TaskState, event: ev.VerifyStarted, _at: str) -> TaskState:
    item = task.attempt.open_line
    return replace(
        task,
        attempt=replace(
            task.attempt,
            step=AttemptStep.VERIFY,
            open_line=None if item is None else replace(item, verify_log_path=event.log),
        ),
    )


@applies(ev.VerifyFinished)
def _verify_finished(state: RunState, name: str, task: TaskState, event: ev.VerifyFinished, at: str) -> TaskState:
    failed = next((s for s in event.steps if s.outcome not in ("passed", "skipped") and s.tier != "quality"), None)
    if event.passed and event.evidence:
        state.checks.evidence.setdefault(event.evidence, event.log)
    line = HistoryItem(
        Phase.VERIFY,
        event.attempt,
        event.log or verify_log(name, event.attempt),
        at,
        verify_log_path=event.log or None,
        exit_code=0 if failed is None else failed.exit_code,
        duration_sec=event.duration_sec,
        patches=task.healing.patches,
    )
    return replace(
        task,
        attempt=replace(task.attempt, step=AttemptStep.VERIFIED, open_line=None),
        verification=replace(
            task.verification,
            passed_attempt=event.attempt if event.passed else None,
            steps=event.steps,
            proof=event.proof,
        ),
        history=(*_with_worker_line(task, name, at), line),
    )


def _with_worker_line(task: TaskState, name: str, at: str, **changes: Any) -> tuple[HistoryItem, ...]:
    """The history with the attempt's worker line, which is held back until the attempt's end is known."""
    item = task.attempt.open_line
    if item is not None:
        return (*task.history, replace(item, **changes))
    if not changes:
        return task.history
    marked = list(task.history)
    for index in range(len(marked) - 1, -1, -1):
        if marked[index].phase in (Phase.WORKER, Phase.VERIFY) and marked[index].attempt == task.attempts:
            marked[index] = replace(marked[index], **changes)
    return tuple(marked) or (
        HistoryItem(Phase.WORKER, max(1, task.attempts), worker_log(name, task.attempts), at, **changes),
    )


@applies(ev.VerifyRecovered, ev.GatesRestored, ev.WorkspaceReady)
def _noted(_s: RunState, _n: str, task: TaskState, _event: object, _at: str) -> TaskState:
    """Recorded for people; changes nothing."""
    return task


@applies(ev.EditsSeen)
def _edits_seen(state: RunState, name: str, task: TaskState, event: ev.EditsSeen, _at: str) -> TaskState:
    state.files.written.update(event.files)
    state.files.in_place_roles.add(state.specs[name].role)
    return task


@applies(ev.ChangeTaken)
def _change_taken(state: RunState, _n: str, task: TaskState, event: ev.ChangeTaken, _at: str) -> TaskState:
    state.files.artifacts.update(event.dropped)
    return replace(
        task,
        attempt=replace(task.attempt, step=AttemptStep.CHANGE),
        work=replace(task.work, change=ChangeRecord(event.base, event.commit, event.files)),
    )


@applies(ev.ExpectedMissing)
def _expected_missing(_s: RunState, _n: str, task: TaskState, event: ev.ExpectedMissing, _at: str) -> TaskState:
    return replace(task, failure=replace(task.failure, missing_files=event.files))


@applies(ev.WorkSaved)
def _work_saved(_s: RunState, _n: str, task: TaskState, event: ev.WorkSaved, _at: str) -> TaskState:
    return replace(
        task, work=replace(task.work, saved=event.place, saved_files=event.files, saved_refused=event.refused)
    )


@applies(ev.MergeQueued)
def _merge_queued(_s: RunState, _n: str, task: TaskState, _event: ev.MergeQueued, _at: str) -> TaskState:
    return replace(
        task, attempt=replace(task.attempt, step=AttemptStep.MERGE), work=replace(task.work, in_merge_queue=True)
    )


@applies(ev.Merged)
def _merged(state: RunState, name: str, task: TaskState, event: ev.Merged, at: str) -> TaskState:
    repo = state.specs[name].repo
    state.branches.heads[repo] = event.head
    intent = state.branches.intents.get(repo)
    if intent is not None and event.task == intent.tasks[-1]:
        del state.branches.intents[repo]
    task = replace(
        task, work=replace(task.work, merged=event.commit or event.head, saved="", saved_files=(), saved_refused=False)
    )
    fixes_nothing = task.delivery is not None and task.delivery.fixing and not event.commit
    return begun(state, name, task, "" if fixes_nothing else task.work.merged, at)


@applies(ev.AttemptFailed)
def _attempt_failed(state: RunState, name: str, task: TaskState, event: ev.AttemptFailed, at: str) -> TaskState:
    marks = {"failure_class": event.failure_class, "failure_signature": event.signature}
    if task.attempt.usd:
        known = state.money.cost_of_class.get(event.failure_class, 0.0)
        state.money.cost_of_class[event.failure_class] = known + task.attempt.usd
    if event.counter == "worker_attempts" and task.healing.pending:
        repeats = task.counters.repeats + 1 if event.signature == task.healing.signature else 0
        task = replace(
            task, counters=replace(task.counters, repeats=repeats), healing=replace(task.healing, pending=False)
        )
    counters = task.counters
    if event.counter != "worker_attempts":
        counters = counted(counters, "worker_attempts", -_charged(task))
        counters = counters if event.counter == "none" else counted(counters, event.counter)
    now = task.delivery
    if now is not None and now.pending and not task.work.merged and now.review != "wanted" and not now.prepares_revert:
        # An approved change that no longer merges cannot be continued.
        task = replace(task, delivery=dataclasses.replace(now, pending=False))
    return replace(
        task,
        failure=replace(
            task.failure,
            failure_class=event.failure_class,
            signature=event.signature,
            conflicted_files=event.files or task.failure.conflicted_files,
        ),
        detail=event.detail,
        next_start=replace(task.next_start, reminder=event.reminder, answer_log="", resume_session=event.resume),
        counters=counters,
        attempt=replace(task.attempt, step=AttemptStep.FAILED, open_line=None),
        work=replace(task.work, remade=event.remade, in_merge_queue=False),
        agent=replace(task.agent, activity=""),
        history=_with_worker_line(task, name, at, **marks),
    )


def _charged(task: TaskState) -> int:
    """An attempt without a worker, because a delivery continued, was charged to no counter."""
    return 0 if task.attempt.free else 1


@applies(ev.AttemptInterrupted)
def _interrupted(state: RunState, name: str, task: TaskState, event: ev.AttemptInterrupted, at: str) -> TaskState:
    return replace(
        task,
        status=P,
        next_start=replace(
            task.next_start,
            answer_log=task.attempt.log if event.harvest else "",
            resume_session=event.resume,
            lost_session=event.afresh or task.next_start.lost_session,
        ),
        agent=replace(task.agent, activity=""),
        counters=replace(
            task.counters,
            losses=task.counters.losses + 1 if event.lost else task.counters.losses,
            worker_attempts=task.counters.worker_attempts - _charged(task),
        ),
        not_before=event.not_before,
        spent=released(state, task),
        detail=event.why,
        attempt=replace(task.attempt, step=AttemptStep.NONE, backup="", launched=None, open_line=None),
        work=replace(task.work, in_merge_queue=False),
        verification=replace(task.verification, passed_attempt=None),
        history=_with_worker_line(task, name, at),
    )


@applies(ev.AttemptCheckpointed)
def _checkpointed(state: RunState, name: str, task: TaskState, event: ev.AttemptCheckpointed, at: str) -> TaskState:
    return replace(
        task,
        status=P,
        next_start=replace(task.next_start, answer_log="", resume_session="", reminder=""),
        agent=replace(task.agent, activity=""),
        counters=counted(counted(task.counters, "worker_attempts", -1), "checkpoints"),
        spent=released(state, task),
        detail=event.why,
        attempt=replace(task.attempt, step=AttemptStep.NONE, backup="", launched=None, open_line=None),
        work=replace(task.work, in_merge_queue=False),
        verification=replace(task.verification, passed_attempt=None),
        history=_with_worker_line(task, name, at),
    )


@applies(ev.TaskSettled)
def _settled(state: RunState, name: str, task: TaskState, event: ev.TaskSettled, at: str) -> TaskState:
    if event.status is TaskStatus.DONE:
        # A DONE task has the proof, and only that unlocks the repository (D09).
        task = replace(task, locked=False)
        if task.delivery is not None:
            # If only a review was required, nothing was pushed and no milestone reached.
            reached = Milestone.DONE if task.delivery.pushed else task.delivery.milestone
            ended = dataclasses.replace(task.delivery, milestone=reached, substate="", since=at, pending=False)
            task = replace(task, delivery=ended)
    return replace(
        task,
        status=event.status,
        block_reason=event.block_reason if event.status is B else None,
        detail=event.detail,
        attempt=replace(task.attempt, step=AttemptStep.NONE, backup="", launched=None, open_line=None),
        next_start=replace(
            task.next_start, answer_log="", resume_session="" if event.final else task.next_start.resume_session
        ),
        agent=replace(task.agent, activity=""),
        work=replace(task.work, in_merge_queue=False),
        final=event.final,
        waits_for_canary="",
        not_before=event.not_before,
        spent=released(state, task),
        history=_with_worker_line(task, name, at),
    )


@applies(ev.TaskRequeued)
def _requeued(state: RunState, _n: str, task: TaskState, event: ev.TaskRequeued, at: str) -> TaskState:
    """A granted attempt begins a new life: its crash and repeat counters start again when a person granted it."""
    if event.by_person:
        task = replace(task, counters=granted_by_person(task.counters, event.granted))
        if task.delivery is not None and task.delivery.pending:
            task = replace(task, delivery=taken_up(task.delivery, at))
    if task.delivery is not None and (task.delivery.milestone is Milestone.DONE or task.delivery.reverted):
        # A person wants it done again: D07 begins again.
        begun_again = dataclasses.replace(task.delivery, milestone=Milestone.WORKING, substate="", since=at)
        task = replace(task, delivery=begun_again)
    return replace(
        task,
        status=P,
        block_reason=None,
        detail=event.why,
        attempt=replace(task.attempt, step=AttemptStep.NONE, launched=None),
        final=False,
        work=replace(task.work, in_merge_queue=False),
        verification=replace(task.verification, passed_attempt=None),
        waits_for_canary="",
        counters=replace(task.counters, granted=task.counters.granted + (0 if event.by_person else event.granted)),
        not_before=event.not_before,
        next_start=replace(
            task.next_start, hints=(*task.next_start.hints, event.hint) if event.hint else task.next_start.hints
        ),
        spent=released(state, task),
    )


@applies(ev.TaskHeld)
def _held(_s: RunState, _n: str, task: TaskState, event: ev.TaskHeld, _at: str) -> TaskState:
    return replace(task, waits_for_canary=event.canary)

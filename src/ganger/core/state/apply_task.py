"""How each event changes the one task it is about."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ganger.core import events as ev
from ganger.core.model.fast_replace import replace
from ganger.core.model.ledger import Milestone
from ganger.core.model.records import ChangeRecord, Ended, HistoryItem, RunState, TaskState
from ganger.core.money.budgets import released, reserve, settle_cost
from ganger.core.names import verify_log, worker_log
from ganger.core.state.apply_delivery import DELIVERY_CHANGES, begun, rules_of, taken_up
from ganger.core.state.apply_reverts import REVERT_CHANGES
from ganger.core.state.apply_worker import WORKER_CHANGES
from ganger.core.vocabulary import Phase, TaskStatus

P, R, B = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.BLOCKED


def _attempt_started(state: RunState, name: str, task: TaskState, event: ev.AttemptStarted, at: str) -> TaskState:
    state.touched.add(name)
    works = 0 if event.delivers else 1
    state.spent = reserve(
        replace(state.spent, attempts=state.spent.attempts + works), event.reserved_usd, event.reserved_tokens
    )
    kept = bool(task.harvest) or event.delivers
    return replace(
        task,
        status=R,
        block_reason=None,
        detail="",
        final=False,
        attempts=event.attempt,
        worker_attempts=task.worker_attempts + works,
        uncharged=event.delivers,
        locked=rules_of(state, name).locks != "none",
        token=event.token,
        started_at=at,
        step="deliver" if event.delivers else "parse" if task.harvest else "agent",
        summary=task.summary if kept else "",
        verified_attempt=event.attempt if event.delivers else None,
        verify_steps=task.verify_steps if event.delivers else (),
        backup="",
        missing=task.missing if kept else (),
        launched=None,
        ended=task.ended if task.harvest else None,
        log=event.log,
        workspace_of=task.workspace_of if kept or event.session else event.attempt,
        continued=event.session,
        worked_by=task.worked_by if kept else f"{event.agent}/{event.kind}",
        walls=task.walls if kept else event.walls,
        resume="",
        doing="",
        change=task.change if kept else None,
        parked=False,
        merged=task.merged if event.delivers else "",
        attempt_usd=0.0,
        held_by="",
        not_before=0.0,
        account=event.account,
        spent=reserve(
            replace(task.spent, attempts=task.spent.attempts + works), event.reserved_usd, event.reserved_tokens
        ),
        pending_history=None if event.delivers else _worker_line(task, event, at),
    )


def _worker_line(task: TaskState, event: ev.AttemptStarted, at: str) -> HistoryItem:
    return HistoryItem(Phase.WORKER, event.attempt, event.log, at, patches=task.patches)


def _attempt_launched(_s: RunState, _n: str, task: TaskState, event: ev.AttemptLaunched, _at: str) -> TaskState:
    return replace(task, launched=(event.pid, event.start_ticks))


def _agent_heard(_s: RunState, _n: str, task: TaskState, event: ev.AgentHeard, _at: str) -> TaskState:
    totals = task.totals if event.session in ("", task.session) else None
    return replace(
        task,
        session=event.session or task.session,
        totals=totals,
        model=event.model or task.model,
        doing=event.doing,
    )


def _attempt_exited(_s: RunState, _n: str, task: TaskState, event: ev.AttemptExited, at: str) -> TaskState:
    item = task.pending_history
    code = event.exit_code if event.signal is None else -event.signal
    line = None if item is None else replace(item, exit_code=code, duration_sec=event.duration_sec, at=at)
    spent = replace(task.spent, wall_sec=task.spent.wall_sec + event.duration_sec)
    ended = Ended(event.exit_code, event.signal, event.timed_out, event.over_output, event.error, event.log_bytes)
    return replace(task, step="parse", launched=None, ended=ended, losses=0, pending_history=line, spent=spent)


def _cost_settled(state: RunState, _n: str, task: TaskState, event: ev.CostSettled, _at: str) -> TaskState:
    usd, tokens = task.spent.reserved_usd, task.spent.reserved_tokens
    state.spent = settle_cost(state.spent, event, usd, tokens)
    spent = settle_cost(task.spent, event, usd, tokens)
    if event.totals is not None:
        task = replace(task, session=event.session or task.session, totals=event.totals)
    return replace(task, spent=spent, attempt_usd=task.attempt_usd + event.usd)


def _result_accepted(_s: RunState, _n: str, task: TaskState, event: ev.ResultAccepted, _at: str) -> TaskState:
    return replace(task, summary=event.summary)


def _result_refused(_s: RunState, _n: str, task: TaskState, event: ev.ResultRefused, _at: str) -> TaskState:
    return replace(task, detail=f"{event.code}: {event.message}")


def _writes_intended(state: RunState, _n: str, task: TaskState, event: ev.WritesIntended, _at: str) -> TaskState:
    state.written.update(event.files)
    return replace(task, step="write", backup=event.backup)


def _writes_applied(_s: RunState, _n: str, task: TaskState, _event: ev.WritesApplied, _at: str) -> TaskState:
    return replace(task, step="written")


def _rolled_back(_s: RunState, _n: str, task: TaskState, event: ev.WritesRolledBack, at: str) -> TaskState:
    line = HistoryItem(Phase.ROLLBACK, event.attempt, event.log, at, patches=task.patches)
    return replace(task, backup="", history=(*task.history, line))


def _verify_started(_s: RunState, _n: str, task: TaskState, event: ev.VerifyStarted, _at: str) -> TaskState:
    item = task.pending_history
    return replace(
        task, step="verify", pending_history=None if item is None else replace(item, verify_log_path=event.log)
    )


def _verify_finished(state: RunState, name: str, task: TaskState, event: ev.VerifyFinished, at: str) -> TaskState:
    failed = next((s for s in event.steps if s.outcome not in ("passed", "skipped") and s.tier != "quality"), None)
    if event.passed and event.evidence:
        state.evidence.setdefault(event.evidence, event.log)
    line = HistoryItem(
        Phase.VERIFY,
        event.attempt,
        event.log or verify_log(name, event.attempt),
        at,
        verify_log_path=event.log or None,
        exit_code=0 if failed is None else failed.exit_code,
        duration_sec=event.duration_sec,
        patches=task.patches,
    )
    return replace(
        task,
        step="verified",
        verified_attempt=event.attempt if event.passed else None,
        verify_steps=event.steps,
        proof=event.proof,
        history=(*_with_worker_line(task, name, at), line),
        pending_history=None,
    )


def _with_worker_line(task: TaskState, name: str, at: str, **changes: Any) -> tuple[HistoryItem, ...]:
    """The history with the attempt's worker line, which is held back until the attempt's end is known."""
    item = task.pending_history
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


def _noted(_s: RunState, _n: str, task: TaskState, _event: object, _at: str) -> TaskState:
    """Recorded for people; changes nothing."""
    return task


def _edits_seen(state: RunState, name: str, task: TaskState, event: ev.EditsSeen, _at: str) -> TaskState:
    state.written.update(event.files)
    state.in_place_roles.add(state.specs[name].role)
    return task


def _change_taken(state: RunState, _n: str, task: TaskState, event: ev.ChangeTaken, _at: str) -> TaskState:
    state.artifacts.update(event.dropped)
    return replace(task, step="change", change=ChangeRecord(event.base, event.commit, event.files))


def _expected_missing(_s: RunState, _n: str, task: TaskState, event: ev.ExpectedMissing, _at: str) -> TaskState:
    return replace(task, missing=event.files)


def _work_saved(_s: RunState, _n: str, task: TaskState, event: ev.WorkSaved, _at: str) -> TaskState:
    return replace(task, saved=event.place, saved_files=event.files, saved_refused=event.refused)


def _merge_queued(_s: RunState, _n: str, task: TaskState, _event: ev.MergeQueued, _at: str) -> TaskState:
    return replace(task, step="merge", parked=True)


def _merged(state: RunState, name: str, task: TaskState, event: ev.Merged, at: str) -> TaskState:
    repo = state.specs[name].repo
    state.heads[repo] = event.head
    intent = state.intents.get(repo)
    if intent is not None and event.task == intent.tasks[-1]:
        del state.intents[repo]
    task = replace(task, merged=event.commit or event.head, saved="", saved_files=(), saved_refused=False)
    mends_nothing = task.delivery is not None and task.delivery.fixing and not event.commit
    return begun(state, name, task, "" if mends_nothing else task.merged, at)


def _attempt_failed(state: RunState, name: str, task: TaskState, event: ev.AttemptFailed, at: str) -> TaskState:
    marks = {"failure_class": event.failure_class, "failure_signature": event.signature}
    if task.attempt_usd:
        known = state.cost_of_class.get(event.failure_class, 0.0)
        state.cost_of_class[event.failure_class] = known + task.attempt_usd
    if event.counter == "worker_attempts" and task.healed:
        repeats = task.repeats + 1 if event.signature == task.heal_signature else 0
        task = replace(task, repeats=repeats, healed=False)
    if event.counter != "worker_attempts":
        task = replace(task, worker_attempts=task.worker_attempts - _charged(task))
    match event.counter:
        case "format_retries":
            task = replace(task, format_retries=task.format_retries + 1)
        case "respawns":
            task = replace(task, respawns=task.respawns + 1)
        case "transient_retries":
            task = replace(task, transient_retries=task.transient_retries + 1)
        case "merge_retries":
            task = replace(task, merge_retries=task.merge_retries + 1)
        case "no_change_retries":
            task = replace(task, no_change_retries=task.no_change_retries + 1)
        case "denials":
            task = replace(task, denials=task.denials + 1)
        case "stalls":
            task = replace(task, stalls=task.stalls + 1)
        case "ci_fixes":
            task = replace(task, ci_fixes=task.ci_fixes + 1)
        case "reworks":
            task = replace(task, reworks=task.reworks + 1)
    now = task.delivery
    if now is not None and now.pending and not task.merged and now.review != "wanted" and not now.prepares_revert:
        # An approved change that no longer merges cannot be continued.
        task = replace(task, delivery=dataclasses.replace(now, pending=False))
    return replace(
        task,
        last_failure_class=event.failure_class,
        last_failure_signature=event.signature,
        detail=event.detail,
        reminder=event.reminder,
        step="failed",
        harvest="",
        resume=event.resume,
        remade=event.remade,
        doing="",
        parked=False,
        contended=event.files or task.contended,
        history=_with_worker_line(task, name, at, **marks),
        pending_history=None,
    )


def _charged(task: TaskState) -> int:
    """An attempt without a worker, because a delivery continued, was charged to no counter."""
    return 0 if task.uncharged else 1


def _interrupted(state: RunState, name: str, task: TaskState, event: ev.AttemptInterrupted, at: str) -> TaskState:
    return replace(
        task,
        status=P,
        harvest=task.log if event.harvest else "",
        resume=event.resume,
        doing="",
        afresh=event.afresh or task.afresh,
        losses=task.losses + 1 if event.lost else task.losses,
        not_before=event.not_before,
        worker_attempts=task.worker_attempts - _charged(task),
        spent=released(state, task),
        detail=event.why,
        step="",
        backup="",
        launched=None,
        parked=False,
        verified_attempt=None,
        history=_with_worker_line(task, name, at),
        pending_history=None,
    )


def _checkpointed(state: RunState, name: str, task: TaskState, event: ev.AttemptCheckpointed, at: str) -> TaskState:
    return replace(
        task,
        status=P,
        harvest="",
        resume="",
        doing="",
        worker_attempts=task.worker_attempts - 1,
        checkpoints=task.checkpoints + 1,
        spent=released(state, task),
        detail=event.why,
        reminder="",
        step="",
        backup="",
        launched=None,
        parked=False,
        verified_attempt=None,
        history=_with_worker_line(task, name, at),
        pending_history=None,
    )


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
        step="",
        harvest="",
        resume="" if event.final else task.resume,
        doing="",
        parked=False,
        final=event.final,
        held_by="",
        not_before=event.not_before,
        spent=released(state, task),
        backup="",
        launched=None,
        history=_with_worker_line(task, name, at),
        pending_history=None,
    )


def _requeued(state: RunState, _n: str, task: TaskState, event: ev.TaskRequeued, at: str) -> TaskState:
    """A granted attempt begins a new life: its crash and repeat counters start again when a person granted it."""
    if event.by_person:
        extra = task.granted_by_person + event.granted
        task = replace(task, respawns=0, repeats=0, transient_retries=0, granted_by_person=extra)
        task = replace(task, merge_retries=0, no_change_retries=0, stalls=0, checkpoints=0, ci_fixes=0, reworks=0)
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
        step="",
        final=False,
        parked=False,
        launched=None,
        verified_attempt=None,
        held_by="",
        granted=task.granted + (0 if event.by_person else event.granted),
        not_before=event.not_before,
        hints=(*task.hints, event.hint) if event.hint else task.hints,
        spent=released(state, task),
    )


def _held(_s: RunState, _n: str, task: TaskState, event: ev.TaskHeld, _at: str) -> TaskState:
    return replace(task, held_by=event.canary)


TASK_CHANGES: dict[type, Callable[[RunState, str, TaskState, Any, str], TaskState]] = {
    ev.AttemptStarted: _attempt_started,
    ev.AttemptLaunched: _attempt_launched,
    ev.AgentHeard: _agent_heard,
    ev.AttemptExited: _attempt_exited,
    ev.CostSettled: _cost_settled,
    ev.ResultAccepted: _result_accepted,
    ev.ResultRefused: _result_refused,
    ev.WritesIntended: _writes_intended,
    ev.WritesApplied: _writes_applied,
    ev.WritesRolledBack: _rolled_back,
    ev.VerifyStarted: _verify_started,
    ev.VerifyFinished: _verify_finished,
    ev.VerifyRecovered: _noted,
    ev.EditsSeen: _edits_seen,
    ev.GatesRestored: _noted,
    ev.ExpectedMissing: _expected_missing,
    ev.WorkspaceReady: _noted,
    ev.ChangeTaken: _change_taken,
    ev.WorkSaved: _work_saved,
    ev.MergeQueued: _merge_queued,
    ev.Merged: _merged,
    ev.AttemptFailed: _attempt_failed,
    ev.AttemptInterrupted: _interrupted,
    ev.AttemptCheckpointed: _checkpointed,
    **WORKER_CHANGES,
    **DELIVERY_CHANGES,
    **REVERT_CHANGES,
    ev.TaskSettled: _settled,
    ev.TaskRequeued: _requeued,
    ev.TaskHeld: _held,
}

"""The only place where state changes: `apply` takes one recorded event and moves the run.

An event that does not fit (see `misfits`) changes nothing and is kept in `RunState.refused`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ganger.core import events as ev
from ganger.core.misfits import SETTLED, run_misfit, task_misfit
from ganger.core.names import verify_log, worker_log
from ganger.core.plan import make_plan
from ganger.core.records import HistoryItem, RunState, Scope, TaskState, Window
from ganger.core.vocabulary import HealSchedule, Phase, RunStatus, TaskStatus

P, R, D, B = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE, TaskStatus.BLOCKED


def apply(state: RunState, recorded: ev.Recorded) -> None:
    """Moves `state` by one event. Deterministic; never raises on an event that does not fit."""
    event = recorded.event
    state.last_seq = recorded.seq
    run_change = _RUN_CHANGES.get(type(event))
    if run_change is not None:
        problem = run_misfit(state, event)
        if problem:
            _refuse(state, recorded, problem)
        else:
            run_change(state, event, recorded.at)
        return
    name = getattr(event, "task", "")
    task = state.tasks.get(name)
    problem = "no such task" if task is None else task_misfit(state, task, event)
    if problem or task is None:
        _refuse(state, recorded, problem)
        return
    after = _TASK_CHANGES[type(event)](state, name, task, event, recorded.at)
    _put(state, name, task, after)


def _refuse(state: RunState, recorded: ev.Recorded, problem: str) -> None:
    name = getattr(recorded.event, "task", "")
    state.refused.append(f"{recorded.seq} {ev.type_name(recorded.event)} {name}: {problem}")


def _put(state: RunState, name: str, before: TaskState, after: TaskState) -> None:
    """Stores a task's new state and keeps the indexes true."""
    state.tasks[name] = after
    if before.status is after.status:
        return
    state.counts[before.status] -= 1
    state.counts[after.status] += 1
    if after.status is R:
        state.running.add(name)
        state.busy_files.update(dict.fromkeys(state.specs[name].writes, name))
    elif before.status is R:
        state.running.discard(name)
        for file in state.specs[name].writes:
            state.busy_files.pop(file, None)
    if after.status is D or before.status is D:
        _dependents_change(state, name, -1 if after.status is D else 1)
    if after.status is P:
        _offer(state, name)
    if name in state.window_open and after.status in SETTLED:
        state.window_open.discard(name)


def _dependents_change(state: RunState, name: str, step: int) -> None:
    for dependent in state.dependents.get(name, ()):
        state.unmet[dependent] += step
        if state.tasks[dependent].status is P:
            _offer(state, dependent)


def _offer(state: RunState, name: str) -> None:
    """Puts a pending task where scheduling finds it, once nothing is unmet."""
    if not state.unmet[name]:
        heapq.heappush(state.ready, state.rank[name])
        if name in state.window_open:
            heapq.heappush(state.window_ready, state.rank[name])


# --- the run -----------------------------------------------------------------------------------------------------


def _run_started(state: RunState, event: ev.RunStarted, at: str) -> None:
    state.run_id, state.manifest_digest, state.started_at = event.run_id, event.manifest_digest, at
    state.policy = event.policy
    state.specs = {spec.id: spec for spec in event.tasks}
    state.tasks = {spec.id: TaskState() for spec in event.tasks}
    state.by_rank = list(make_plan(event.tasks).order)
    state.rank = {task: rank for rank, task in enumerate(state.by_rank)}
    state.counts = dict.fromkeys(TaskStatus, 0) | {P: len(event.tasks)}
    state.unmet = {spec.id: len(set(spec.depends_on)) for spec in event.tasks}
    state.dependents = {}
    for spec in event.tasks:
        for need in dict.fromkeys(spec.depends_on):
            state.dependents.setdefault(need, []).append(spec.id)
    state.ready = [rank for rank, task in enumerate(state.by_rank) if not state.unmet[task]]
    state.current_batch_size = _first_size(state)


def _first_size(state: RunState) -> int:
    schedule = state.policy.heal_schedule
    if schedule is HealSchedule.BATCH:
        return state.policy.batch_size
    return max(1, len(state.specs)) if schedule in (HealSchedule.EPOCH, HealSchedule.OFF) else 1


def _lead_started(state: RunState, event: ev.LeadStarted, _at: str) -> None:
    changed = state.policy.heal_schedule is not event.policy.heal_schedule
    state.policy = event.policy
    if changed:
        _forget_window(state)
    if changed or event.policy.heal_schedule is not HealSchedule.AUTO:
        state.current_batch_size = _first_size(state)
    state.scope = Scope(None if event.only is None else frozenset(event.only), event.max_tasks)
    state.touched = set()
    state.status, state.abort_reason = RunStatus.RUNNING, None
    state.stopping = state.finished = False
    state.finished_at = ""


def _window_opened(state: RunState, event: ev.WindowOpened, _at: str) -> None:
    state.window = Window(event.index, event.size, event.tasks)
    state.window_open = {t for t in event.tasks if state.tasks[t].status not in SETTLED}
    state.window_ready = sorted(state.rank[t] for t in state.window_open if not state.unmet[t])
    state.windows_opened = event.index


def _window_closed(state: RunState, event: ev.WindowClosed, _at: str) -> None:
    _forget_window(state)
    state.current_batch_size = event.next_size


def _forget_window(state: RunState) -> None:
    state.window, state.window_open, state.window_ready = None, set(), []


def _stop_requested(state: RunState, _event: ev.StopRequested, _at: str) -> None:
    state.stopping = True


def _run_finished(state: RunState, event: ev.RunFinished, at: str) -> None:
    state.status, state.abort_reason = event.run_status, event.abort_reason
    state.finished, state.finished_at = True, at


# --- one task ----------------------------------------------------------------------------------------------------


def _attempt_started(state: RunState, name: str, task: TaskState, event: ev.AttemptStarted, at: str) -> TaskState:
    state.touched.add(name)
    return replace(
        task,
        status=R,
        block_reason=None,
        detail="",
        final=False,
        attempts=event.attempt,
        worker_attempts=task.worker_attempts + 1,
        token=event.token,
        started_at=at,
        step="agent",
        summary="",
        verified_attempt=None,
        verify_steps=(),
        backup="",
        launched=None,
        pending_history=HistoryItem(Phase.WORKER, event.attempt, event.log, at),
    )


def _attempt_launched(_s: RunState, _n: str, task: TaskState, event: ev.AttemptLaunched, _at: str) -> TaskState:
    return replace(task, launched=(event.pid, event.start_ticks))


def _attempt_exited(_s: RunState, _n: str, task: TaskState, event: ev.AttemptExited, at: str) -> TaskState:
    item = task.pending_history
    code = event.exit_code if event.signal is None else -event.signal
    line = None if item is None else replace(item, exit_code=code, duration_sec=event.duration_sec, at=at)
    return replace(task, step="parse", launched=None, pending_history=line)


def _result_accepted(_s: RunState, _n: str, task: TaskState, event: ev.ResultAccepted, _at: str) -> TaskState:
    return replace(task, summary=event.summary)


def _result_refused(_s: RunState, _n: str, task: TaskState, event: ev.ResultRefused, _at: str) -> TaskState:
    return replace(task, detail=f"{event.code}: {event.message}")


def _writes_intended(_s: RunState, _n: str, task: TaskState, event: ev.WritesIntended, _at: str) -> TaskState:
    return replace(task, step="write", backup=event.backup)


def _writes_applied(_s: RunState, _n: str, task: TaskState, _event: ev.WritesApplied, _at: str) -> TaskState:
    return replace(task, step="written")


def _rolled_back(_s: RunState, _n: str, task: TaskState, event: ev.WritesRolledBack, at: str) -> TaskState:
    line = HistoryItem(Phase.ROLLBACK, event.attempt, event.log, at)
    return replace(task, backup="", history=(*task.history, line))


def _verify_started(_s: RunState, _n: str, task: TaskState, event: ev.VerifyStarted, _at: str) -> TaskState:
    item = task.pending_history
    return replace(
        task, step="verify", pending_history=None if item is None else replace(item, verify_log_path=event.log)
    )


def _verify_finished(_s: RunState, name: str, task: TaskState, event: ev.VerifyFinished, at: str) -> TaskState:
    failed = next((s for s in event.steps if s.outcome not in ("passed", "skipped") and s.tier != "quality"), None)
    line = HistoryItem(
        Phase.VERIFY,
        event.attempt,
        event.log or verify_log(name, event.attempt),
        at,
        verify_log_path=event.log or None,
        exit_code=0 if failed is None else failed.exit_code,
        duration_sec=event.duration_sec,
    )
    return replace(
        task,
        verified_attempt=event.attempt if event.passed else None,
        verify_steps=event.steps,
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


def _attempt_failed(_s: RunState, name: str, task: TaskState, event: ev.AttemptFailed, at: str) -> TaskState:
    marks = {"failure_class": event.failure_class, "failure_signature": event.signature}
    counters = (
        {}
        if event.counter == "worker_attempts"
        else {
            event.counter: getattr(task, event.counter) + 1,
            "worker_attempts": task.worker_attempts - 1,
        }
    )
    return replace(
        task,
        last_failure_class=event.failure_class,
        last_failure_signature=event.signature,
        detail=event.detail,
        reminder=event.reminder,
        history=_with_worker_line(task, name, at, **marks),
        pending_history=None,
        **counters,
    )


def _interrupted(_s: RunState, name: str, task: TaskState, event: ev.AttemptInterrupted, at: str) -> TaskState:
    return replace(
        task,
        status=P,
        worker_attempts=task.worker_attempts - 1,
        detail=event.why,
        step="",
        backup="",
        launched=None,
        verified_attempt=None,
        history=_with_worker_line(task, name, at),
        pending_history=None,
    )


def _settled(_s: RunState, name: str, task: TaskState, event: ev.TaskSettled, at: str) -> TaskState:
    return replace(
        task,
        status=event.status,
        block_reason=event.block_reason if event.status is B else None,
        detail=event.detail,
        step="",
        final=event.final,
        backup="",
        launched=None,
        history=_with_worker_line(task, name, at),
        pending_history=None,
    )


def _requeued(_s: RunState, _n: str, task: TaskState, event: ev.TaskRequeued, _at: str) -> TaskState:
    return replace(
        task, status=P, block_reason=None, detail=event.why, step="", final=False, launched=None, verified_attempt=None
    )


_RUN_CHANGES: dict[type, Callable[[RunState, Any, str], None]] = {
    ev.RunStarted: _run_started,
    ev.LeadStarted: _lead_started,
    ev.WindowOpened: _window_opened,
    ev.WindowClosed: _window_closed,
    ev.StopRequested: _stop_requested,
    ev.RunFinished: _run_finished,
}

_TASK_CHANGES: dict[type, Callable[[RunState, str, TaskState, Any, str], TaskState]] = {
    ev.AttemptStarted: _attempt_started,
    ev.AttemptLaunched: _attempt_launched,
    ev.AttemptExited: _attempt_exited,
    ev.ResultAccepted: _result_accepted,
    ev.ResultRefused: _result_refused,
    ev.WritesIntended: _writes_intended,
    ev.WritesApplied: _writes_applied,
    ev.WritesRolledBack: _rolled_back,
    ev.VerifyStarted: _verify_started,
    ev.VerifyFinished: _verify_finished,
    ev.AttemptFailed: _attempt_failed,
    ev.AttemptInterrupted: _interrupted,
    ev.TaskSettled: _settled,
    ev.TaskRequeued: _requeued,
}

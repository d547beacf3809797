"""The only place where state changes: `apply` takes one recorded event and moves the run.

An event that does not fit (see `allowed`) changes nothing and is kept in `RunState.log.refused`.
"""

from __future__ import annotations

import heapq

from ganger.core import events as ev
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState

# Their functions are found by the events that they apply.
from ganger.core.state import apply_run as apply_run, apply_task as apply_task
from ganger.core.state.allowed import SETTLED, run_misfit, task_misfit
from ganger.core.state.apply_healing import cost_of_healer
from ganger.core.state.apply_worker import worker_after
from ganger.core.state.indexes import files_of, is_answered, is_delivering, keeps_files, under_way, waits
from ganger.core.state.reducers import RUN_REDUCERS, TASK_REDUCERS
from ganger.core.vocabulary import MergeMode, TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE


def apply(state: RunState, recorded: ev.Recorded) -> None:
    """Moves `state` by one event. Deterministic; never raises on an event that does not fit."""
    event = recorded.event
    state.log.last_seq = recorded.seq
    run_change = RUN_REDUCERS.get(type(event))
    if isinstance(event, ev.CostSettled) and not event.task:
        run_change = cost_of_healer
    if run_change is not None:
        problem = run_misfit(state, event)
        if problem:
            _refuse(state, recorded, problem)
        else:
            run_change(state, event, recorded.at)
        state.log.last_at = recorded.at
        return
    state.log.last_at = recorded.at
    name = getattr(event, "task", "")
    task = state.tasks.get(name)
    problem = "no such task" if task is None else task_misfit(state, task, event)
    if problem or task is None:
        _refuse(state, recorded, problem)
        return
    after = TASK_REDUCERS[type(event)](state, name, task, event, recorded.at)
    after = worker_after(after, event, recorded.at)
    _put(state, name, task, after)


def _refuse(state: RunState, recorded: ev.Recorded, problem: str) -> None:
    name = getattr(recorded.event, "task", "")
    state.log.refused.append(f"{recorded.seq} {ev.type_name(recorded.event)} {name}: {problem}")


def _put(state: RunState, name: str, before: TaskState, after: TaskState) -> None:
    """Stores a task's new state and keeps the indexes true."""
    state.tasks[name] = after
    if before.waits_for_canary != after.waits_for_canary:
        _hold_change(state, name, before.waits_for_canary, after.waits_for_canary)
    if is_answered(after):
        state.index.answered.add(name)
    else:
        state.index.answered.discard(name)
    if waits(after):
        state.index.waiting.add(name)
    elif before.not_before:
        state.index.waiting.discard(name)
    if before.work.in_merge_queue is not after.work.in_merge_queue:
        _park(state, name, after)
    if before.delivery is not after.delivery or before.status is not after.status:
        _follow(state, name, after)
    if keeps_files(before) is not keeps_files(after):
        _files_change(state, name, after)
    if before.locked is not after.locked:
        _lock_change(state, name, after)
    if state.index.level_of and under_way(before) is not under_way(after):
        level = state.index.level_of[name]
        state.index.level_open[level] = state.index.level_open.get(level, 0) + (1 if under_way(after) else -1)
    if before.status is after.status:
        return
    state.index.counts[before.status] -= 1
    state.index.counts[after.status] += 1
    if after.status is R:
        state.index.running.add(name)
        if after.worker is not None and after.worker.pulled:
            state.index.pulled.add(name)
    elif before.status is R:
        state.index.running.discard(name)
        state.index.pulled.discard(name)
    if after.status is D or before.status is D:
        _dependents_change(state, name, -1 if after.status is D else 1)
    if after.status is P:
        _offer(state, name)
    if name in state.windows.open and after.status in SETTLED:
        state.windows.open.discard(name)


def _park(state: RunState, name: str, after: TaskState) -> None:
    """A level is merged when all of its tasks are finished: until then its windows need not wait for it."""
    if not after.work.in_merge_queue:
        state.index.in_merge_queue.discard(name)
        return
    state.index.in_merge_queue.add(name)
    if state.merging is MergeMode.LEVEL:
        state.windows.open.discard(name)


def _follow(state: RunState, name: str, after: TaskState) -> None:
    """A delivery needs no slot, and its window need not wait for it."""
    if after.status is R and is_delivering(after):
        state.index.delivering.add(name)
        state.windows.open.discard(name)
        return
    state.index.delivering.discard(name)
    if (
        after.delivery is not None
        and after.status is P
        and state.windows.current is not None
        and name in state.windows.current.tasks
    ):
        # Sent back by CI while its own window is open.
        state.windows.open.add(name)


def _files_change(state: RunState, name: str, after: TaskState) -> None:
    for file in files_of(state, name):
        if keeps_files(after):
            state.index.busy_files.setdefault(file, name)
        elif state.index.busy_files.get(file) == name:
            del state.index.busy_files[file]


def _lock_change(state: RunState, name: str, after: TaskState) -> None:
    holders = state.index.locks.setdefault(state.specs[name].repo, set())
    if after.locked:
        holders.add(name)
    else:
        holders.discard(name)


def _hold_change(state: RunState, name: str, before: str, after: str) -> None:
    if before:
        left = [held for held in state.index.held[before] if held != name]
        if left:
            state.index.held[before] = left
        else:
            del state.index.held[before]
    if after:
        state.index.held.setdefault(after, []).append(name)


def _dependents_change(state: RunState, name: str, step: int) -> None:
    for dependent in state.index.dependents.get(name, ()):
        state.index.unmet[dependent] += step
        if state.tasks[dependent].status is P:
            _offer(state, dependent)


def _offer(state: RunState, name: str) -> None:
    """Puts a pending task where scheduling finds it, once nothing is unmet."""
    if not state.index.unmet[name]:
        heapq.heappush(state.index.ready, state.index.rank[name])
        if name in state.windows.open:
            heapq.heappush(state.windows.ready, state.index.rank[name])

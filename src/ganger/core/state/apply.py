"""The only place where state changes: `apply` takes one recorded event and moves the run.

An event that does not fit (see `misfits`) changes nothing and is kept in `RunState.refused`.
"""

from __future__ import annotations

import heapq

from ganger.core import events as ev
from ganger.core.model.records import RunState, TaskState
from ganger.core.state.allowed import SETTLED, run_misfit, task_misfit
from ganger.core.state.apply_healing import cost_of_healer
from ganger.core.state.apply_run import RUN_CHANGES
from ganger.core.state.apply_task import TASK_CHANGES
from ganger.core.state.apply_worker import worker_after
from ganger.core.state.indexes import files_of, is_answered, is_delivering, keeps_files, under_way, waits
from ganger.core.vocabulary import TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE


def apply(state: RunState, recorded: ev.Recorded) -> None:
    """Moves `state` by one event. Deterministic; never raises on an event that does not fit."""
    event = recorded.event
    state.last_seq = recorded.seq
    run_change = RUN_CHANGES.get(type(event))
    if isinstance(event, ev.CostSettled) and not event.task:
        run_change = cost_of_healer
    if run_change is not None:
        problem = run_misfit(state, event)
        if problem:
            _refuse(state, recorded, problem)
        else:
            run_change(state, event, recorded.at)
        state.last_at = recorded.at
        return
    state.last_at = recorded.at
    name = getattr(event, "task", "")
    task = state.tasks.get(name)
    problem = "no such task" if task is None else task_misfit(state, task, event)
    if problem or task is None:
        _refuse(state, recorded, problem)
        return
    after = TASK_CHANGES[type(event)](state, name, task, event, recorded.at)
    after = worker_after(after, event, recorded.at)
    _put(state, name, task, after)


def _refuse(state: RunState, recorded: ev.Recorded, problem: str) -> None:
    name = getattr(recorded.event, "task", "")
    state.refused.append(f"{recorded.seq} {ev.type_name(recorded.event)} {name}: {problem}")


def _put(state: RunState, name: str, before: TaskState, after: TaskState) -> None:
    """Stores a task's new state and keeps the indexes true."""
    state.tasks[name] = after
    if before.held_by != after.held_by:
        _hold_change(state, name, before.held_by, after.held_by)
    if is_answered(after):
        state.answered.add(name)
    else:
        state.answered.discard(name)
    if waits(after):
        state.waiting.add(name)
    elif before.not_before:
        state.waiting.discard(name)
    if before.parked is not after.parked:
        _park(state, name, after)
    if before.delivery is not after.delivery or before.status is not after.status:
        _follow(state, name, after)
    if keeps_files(before) is not keeps_files(after):
        _files_change(state, name, after)
    if before.locked is not after.locked:
        _lock_change(state, name, after)
    if state.level_of and under_way(before) is not under_way(after):
        level = state.level_of[name]
        state.level_open[level] = state.level_open.get(level, 0) + (1 if under_way(after) else -1)
    if before.status is after.status:
        return
    state.counts[before.status] -= 1
    state.counts[after.status] += 1
    if after.status is R:
        state.running.add(name)
        if after.worker is not None and after.worker.pulled:
            state.pulled.add(name)
    elif before.status is R:
        state.running.discard(name)
        state.pulled.discard(name)
    if after.status is D or before.status is D:
        _dependents_change(state, name, -1 if after.status is D else 1)
    if after.status is P:
        _offer(state, name)
    if name in state.window_open and after.status in SETTLED:
        state.window_open.discard(name)


def _park(state: RunState, name: str, after: TaskState) -> None:
    """A level is merged when all of its tasks are finished: until then its windows need not wait for it."""
    if not after.parked:
        state.parked.discard(name)
        return
    state.parked.add(name)
    if state.merging == "level":
        state.window_open.discard(name)


def _follow(state: RunState, name: str, after: TaskState) -> None:
    """A delivery needs no slot, and its window need not wait for it."""
    if after.status is R and is_delivering(after):
        state.delivering.add(name)
        state.window_open.discard(name)
        return
    state.delivering.discard(name)
    if after.delivery is not None and after.status is P and state.window is not None and name in state.window.tasks:
        # Sent back by CI while its own window is open.
        state.window_open.add(name)


def _files_change(state: RunState, name: str, after: TaskState) -> None:
    for file in files_of(state, name):
        if keeps_files(after):
            state.busy_files.setdefault(file, name)
        elif state.busy_files.get(file) == name:
            del state.busy_files[file]


def _lock_change(state: RunState, name: str, after: TaskState) -> None:
    holders = state.locks.setdefault(state.specs[name].repo, set())
    if after.locked:
        holders.add(name)
    else:
        holders.discard(name)


def _hold_change(state: RunState, name: str, before: str, after: str) -> None:
    if before:
        left = [held for held in state.held[before] if held != name]
        if left:
            state.held[before] = left
        else:
            del state.held[before]
    if after:
        state.held.setdefault(after, []).append(name)


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

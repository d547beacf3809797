"""Windows and scheduling: what starts now, when a window closes, when a run has nothing more to do."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from ganger.core.failures import CLASSES, known_class
from ganger.core.records import RunState
from ganger.core.retries import allowed_attempts, may_retry_class
from ganger.core.vocabulary import BlockReason, HealSchedule, RunStatus, TaskStatus


@dataclass(frozen=True, slots=True)
class Start:
    task: str


@dataclass(frozen=True, slots=True)
class OpenWindow:
    size: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CloseWindow:
    done: int
    failed: int
    blocked: int
    failure_rate: float
    next_size: int
    requeue: tuple[str, ...]
    give_up: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    run_status: RunStatus
    abort_reason: str | None
    why: str


Decision = Start | OpenWindow | CloseWindow | Finish


def larger(size: int) -> int:
    """The next Fibonacci number above `size`."""
    a, b = 1, 2
    while a <= size:
        a, b = b, a + b
    return a


def smaller(size: int) -> int:
    """The next Fibonacci number below `size`; 1 stays 1."""
    a, b = 1, 2
    while b < size:
        a, b = b, a + b
    return a


def decide(state: RunState) -> list[Decision]:
    """Everything that should happen now. Call again after each change: an empty list means wait."""
    if state.finished:
        return []
    if state.stopping:
        return [] if state.running else [_finish(state)]
    if state.policy.heal_schedule is HealSchedule.OFF:
        free = state.policy.concurrency - len(state.running)
        starts: list[Decision] = [Start(task) for task in _ready(state, state.ready, free, _startable_now(state))]
        return starts if starts or state.running else [_finish(state)]
    return _decide_windowed(state)


def _decide_windowed(state: RunState) -> list[Decision]:
    window = state.window
    if window is None:
        tasks = _next_window(state)
        return [OpenWindow(len(tasks), tasks)] if tasks else [_finish(state)]
    if not state.window_open:
        return [_close(state)]
    free = state.policy.concurrency - len(state.running)
    fits = _startable_now(state)
    chosen = _ready(state, state.window_ready, free, lambda task: task in state.window_open and fits(task))
    starts: list[Decision] = [Start(task) for task in chosen]
    if starts or state.running:
        return starts
    # What is left waits for a dependency outside this window (epoch) or for a limit: it cannot settle here.
    return [_close(state)]


def _next_window(state: RunState) -> tuple[str, ...]:
    schedule = state.policy.heal_schedule
    if schedule is HealSchedule.EPOCH:
        if not _ready(state, state.ready, 1, lambda t: in_scope(state, t)):
            return ()
        return tuple(t for t in state.by_rank if state.tasks[t].status is TaskStatus.PENDING and in_scope(state, t))
    size = {HealSchedule.TASK: 1, HealSchedule.BATCH: state.policy.batch_size}.get(schedule, state.current_batch_size)
    return tuple(_ready(state, state.ready, size, _startable_now(state)))


def in_scope(state: RunState, task: str) -> bool:
    return _within(state, task, 0)


def _within(state: RunState, task: str, about_to_start: int) -> bool:
    only, most = state.scope.only, state.scope.max_tasks
    if only is not None and task not in only:
        return False
    return most is None or task in state.touched or len(state.touched) + about_to_start < most


def _ready(state: RunState, heap: list[int], limit: int, accept: Callable[[str], bool]) -> list[str]:
    """The first `limit` tasks of the heap in plan order that `accept` takes; entries that are stale are dropped."""
    chosen: list[str] = []
    seen: list[int] = []
    while heap and len(chosen) < limit:
        rank = heapq.heappop(heap)
        task = state.by_rank[rank]
        if state.tasks[task].status is not TaskStatus.PENDING or state.unmet[task] or (seen and seen[-1] == rank):
            continue
        seen.append(rank)
        if accept(task):
            chosen.append(task)
    for rank in seen:
        heapq.heappush(heap, rank)
    return chosen


def _startable_now(state: RunState) -> Callable[[str], bool]:
    """Takes tasks one by one as long as limits allow and their declared files are not being written."""
    new: set[str] = set()
    taken: set[str] = set()

    def accept(task: str) -> bool:
        files = state.specs[task].writes
        if not _within(state, task, len(new)) or any(f in taken or f in state.busy_files for f in files):
            return False
        if task not in state.touched:
            new.add(task)
        taken.update(files)
        return True

    return accept


def healable_failure(state: RunState, task: str) -> bool:
    cls = known_class(state.tasks[task].last_failure_class)
    return cls is not None and CLASSES[cls].healable


def failure_rate(state: RunState, tasks: tuple[str, ...]) -> float:
    """Healable failures over the attempted tasks less blocked and non-healable ones (T11)."""
    status = {t: state.tasks[t].status for t in tasks}
    failed = [t for t in tasks if status[t] in (TaskStatus.FAILED, TaskStatus.ESCALATED)]
    healable = [t for t in failed if healable_failure(state, t)]
    done = sum(1 for t in tasks if status[t] is TaskStatus.DONE)
    counted = done + len(healable)
    return len(healable) / counted if counted else 0.0


def _close(state: RunState) -> CloseWindow:
    window = state.window
    assert window is not None
    tasks = window.tasks
    status = [state.tasks[t].status for t in tasks]
    failed = [t for t in tasks if state.tasks[t].status is TaskStatus.FAILED]
    again = dict.fromkeys(t for t in failed if may_run_again(state, t))
    rate = failure_rate(state, tasks)
    size = state.current_batch_size
    if state.policy.heal_schedule is HealSchedule.AUTO:
        clean = not failed and TaskStatus.ESCALATED not in status
        size = larger(size) if clean else smaller(size) if rate > state.policy.failure_threshold else size
    return CloseWindow(
        done=status.count(TaskStatus.DONE),
        failed=len(failed),
        blocked=status.count(TaskStatus.BLOCKED),
        failure_rate=round(rate, 4),
        next_size=size,
        requeue=tuple(again),
        give_up=tuple(t for t in failed if t not in again and not state.tasks[t].final),
    )


def may_run_again(state: RunState, task: str) -> bool:
    """A failed task with attempts left and a class that is retried."""
    spec, now = state.specs[task], state.tasks[task]
    if now.status is not TaskStatus.FAILED or not may_retry_class(spec, now.last_failure_class or ""):
        return False
    return now.worker_attempts < allowed_attempts(spec, state.policy)


def behind_failed(state: RunState, task: str) -> list[str]:
    """Pending tasks that cannot run because `task` ended other than DONE, nearest first."""
    found: dict[str, None] = {}
    queue = [task]
    for current in queue:
        for dependent in state.dependents.get(current, ()):
            if dependent not in found and state.tasks[dependent].status is TaskStatus.PENDING:
                found[dependent] = None
                queue.append(dependent)
    return list(found)


def _finish(state: RunState) -> Finish:
    open_tasks = [t for t in state.specs if state.tasks[t].status is not TaskStatus.DONE]
    if not open_tasks:
        return Finish(RunStatus.COMPLETED, None, "every task is DONE")
    if state.stopping:
        return Finish(RunStatus.RUNNING, None, "stopped on request; the run can be continued")
    pending = [t for t in open_tasks if state.tasks[t].status is TaskStatus.PENDING]
    if pending and state.scope.limited:
        return Finish(RunStatus.RUNNING, None, f"limit reached; {len(pending)} tasks are still to be run")
    return Finish(RunStatus.ABORTED, abort_reason(state, open_tasks), "nothing more can run")


def abort_reason(state: RunState, open_tasks: list[str]) -> str:
    """What is not done and why, short enough to read."""
    shown = [f"{t} {_shown_status(state, t)}" for t in open_tasks[:12]]
    more = [f"and {len(open_tasks) - 12} more"] if len(open_tasks) > 12 else []
    return f"{len(open_tasks)} of {len(state.specs)} tasks are not done: {', '.join(shown + more)}"


def _shown_status(state: RunState, task: str) -> str:
    now = state.tasks[task]
    if now.block_reason is BlockReason.DEPENDENCY_FAILED:
        return "BLOCKED (dependency_failed)"
    word = now.block_reason.value if now.block_reason else now.last_failure_signature
    return f"{now.status.value} ({word})" if word else now.status.value

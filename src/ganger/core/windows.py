"""Windows and scheduling: what starts now, when a window closes, when a run has nothing more to do."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.budgets import Purse, reservation, run_refusal, task_refusal
from ganger.core.dependents import blocked_behind
from ganger.core.healing import Verdict, after_window, failure_rate, passed, questions_for
from ganger.core.indexes import files_of
from ganger.core.misfits import open_round
from ganger.core.moments import stamp
from ganger.core.quota import account_of, has_room, paused_until, running_by_account
from ganger.core.records import RunState
from ganger.core.vocabulary import BlockReason, HealSchedule, RunStatus, TaskStatus


@dataclass(frozen=True, slots=True)
class Start:
    task: str


@dataclass(frozen=True, slots=True)
class OpenWindow:
    size: int
    tasks: tuple[str, ...]
    retry_of: int = 0


@dataclass(frozen=True, slots=True)
class CloseWindow:
    done: int
    failed: int
    blocked: int
    failure_rate: float
    next_size: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Wake:
    """Time has passed: these wait no longer for their account's quota."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before this moment (Unix time), unless something happens."""

    until: float


@dataclass(frozen=True, slots=True)
class MergeLevel:
    """Nothing more of this level can run now: what is verified is merged."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    run_status: RunStatus
    abort_reason: str | None
    why: str
    question: str = ""


Decision = Start | OpenWindow | CloseWindow | Wake | Wait | MergeLevel | Finish


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


def decide(state: RunState, now: float) -> list[Decision]:
    """Everything that should happen now. Call again after each change: an empty list means wait."""
    if state.finished:
        return []
    decisions = _decide(state, now)
    if state.merging == "level" and not state.stopping and state.parked and state.parked == state.running:
        over = not decisions or isinstance(decisions[0], Finish)
        if over and open_round(state) is None:
            return [MergeLevel(tuple(sorted(state.parked, key=state.rank.__getitem__)))]
    return decisions


def _decide(state: RunState, now: float) -> list[Decision]:
    if state.stopping or state.draining:
        return [] if state.running else [_finish(state)]
    if open_round(state) is not None:
        return []
    if state.heal_abandoned:
        return [] if state.running else [_finish(state)]
    due = _due(state, now)
    if due:
        return [Wake(due)]
    if state.paused:
        over = not state.running and not state.counts[TaskStatus.PENDING] and not state.waiting
        return [_finish(state)] if over and (state.window is None or not _unfinished(state)) else []
    return (
        _decide_continuous(state, now)
        if state.policy.heal_schedule is HealSchedule.OFF
        else _decide_windowed(state, now)
    )


def _unfinished(state: RunState) -> bool:
    return state.counts[TaskStatus.DONE] < len(state.tasks)


def _due(state: RunState, now: float) -> tuple[str, ...]:
    blocked = [name for name in state.waiting if state.tasks[name].status is TaskStatus.BLOCKED]
    return tuple(sorted((name for name in blocked if _quota_until(state, name) <= now), key=state.rank.__getitem__))


def _quota_until(state: RunState, name: str) -> float:
    task = state.tasks[name]
    return max(task.not_before, state.accounts_paused.get(task.account, 0.0))


def _free(state: RunState) -> int:
    """Slots for workers; what only waits to be merged needs none."""
    return state.policy.concurrency - len(state.running) + len(state.parked)


def _level_now(state: RunState) -> int | None:
    """The level that is being worked on; None where there are no levels."""
    if state.merging != "level":
        return None
    return min((level for level, left in state.level_open.items() if left > 0), default=0)


def _decide_continuous(state: RunState, now: float) -> list[Decision]:
    free = _free(state)
    starts: list[Decision] = [Start(task) for task in _ready(state, state.ready, free, _startable_now(state, now))]
    return starts if starts or state.running else [_later_or_never(state, now)]


def _decide_windowed(state: RunState, now: float) -> list[Decision]:
    if state.window is None:
        return [_next_window(state, now) or _later_or_never(state, now)]
    if not state.window_open:
        return [_close(state)]
    free = _free(state)
    fits = _startable_now(state, now)
    chosen = _ready(state, state.window_ready, free, lambda task: task in state.window_open and fits(task))
    starts: list[Decision] = [Start(task) for task in chosen]
    if starts or state.running:
        return starts
    if until := _earliest(state, now, state.window_open):
        return [Wait(until)]
    # What is left waits for a dependency outside this window (epoch) or for a limit: it cannot settle here.
    return [_close(state)]


def _later_or_never(state: RunState, now: float) -> Decision:
    """Nothing can start now: either only time must pass, or the run is over."""
    until = _earliest(state, now, state.waiting | _behind_accounts(state, now))
    return Wait(until) if until else _finish(state, _spent_out(state, now))


def _earliest(state: RunState, now: float, names: set[str]) -> float:
    """The next moment at which one of these may start; 0 when none of them waits for time alone."""
    moments = [until for name in names if in_scope(state, name) and (until := starts_after(state, name, now))]
    return min(moments, default=0.0)


def starts_after(state: RunState, name: str, now: float) -> float:
    """When a task that waits for time or its account's quota alone may start; 0 when something else holds it."""
    task = state.tasks[name]
    if task.block_reason is BlockReason.QUOTA_WAIT:
        return _quota_until(state, name)
    if task.status is not TaskStatus.PENDING or state.unmet[name]:
        return 0.0
    until = max(task.not_before, paused_until(state, account_of(state, name), now))
    return until if until > now else 0.0


def _behind_accounts(state: RunState, now: float) -> set[str]:
    if not any(until > now for until in state.accounts_paused.values()):
        return set()
    return set(_ready(state, state.ready, len(state.ready), lambda name: bool(starts_after(state, name, now))))


def _spent_out(state: RunState, now: float) -> str:
    """The budget that stands in the way of tasks which could run otherwise."""
    if not any(in_scope(state, name) for name in _ready(state, state.ready, len(state.ready), lambda _: True)):
        return ""
    refusal = run_refusal(state, stamp(now))
    if refusal:
        return refusal
    wanted = reservation(state)
    stuck = _ready(state, state.ready, 1, lambda t: bool(task_refusal(state.budget, state.tasks[t], wanted)))
    return f"{stuck[0]}: {task_refusal(state.budget, state.tasks[stuck[0]], wanted)}" if stuck else ""


def _next_window(state: RunState, now: float) -> OpenWindow | None:
    retry = tuple(t for t in state.retry_now if state.tasks[t].status is TaskStatus.PENDING and not state.unmet[t])
    if retry and run_refusal(state, stamp(now)) == "":
        return OpenWindow(len(retry), retry, state.retry_of)
    schedule = state.policy.heal_schedule
    if schedule is HealSchedule.EPOCH:
        if not _ready(state, state.ready, 1, _startable_now(state, now)):
            return None
        every = (t for t in state.by_rank if state.tasks[t].status is TaskStatus.PENDING and in_scope(state, t))
        tasks = tuple(every)
        return OpenWindow(len(tasks), tasks)
    size = {HealSchedule.TASK: 1, HealSchedule.BATCH: state.policy.batch_size}.get(schedule, state.current_batch_size)
    tasks = tuple(_ready(state, state.ready, size, _startable_now(state, now)))
    return OpenWindow(len(tasks), tasks) if tasks else None


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


def _startable_now(state: RunState, now: float) -> Callable[[str], bool]:
    """Takes tasks one by one as long as limits, budgets and accounts allow and their files are not being written."""
    new: set[str] = set()
    taken: set[str] = set()
    running = running_by_account(state)
    purse, wanted, at = Purse(), reservation(state), stamp(now)
    level = _level_now(state)
    alone = state.in_place_roles if state.mode == "direct" else set()
    occupied = [state.specs[name].role for name in state.running] if alone else []

    def accept(task: str) -> bool:
        files, account = files_of(state, task), account_of(state, task)
        if not _within(state, task, len(new)) or any(f in taken or f in state.busy_files for f in files):
            return False
        if alone and occupied and (state.specs[task].role in alone or not alone.isdisjoint(occupied)):
            return False
        if level is not None and state.level_of[task] != level:
            return False
        if starts_after(state, task, now) or not has_room(state, account, running):
            return False
        if task_refusal(state.budget, state.tasks[task], wanted) or run_refusal(state, at, purse):
            return False
        if task not in state.touched:
            new.add(task)
        taken.update(files)
        if alone:
            occupied.append(state.specs[task].role)
        running[account] += 1
        purse.add(wanted)
        return True

    return accept


def _close(state: RunState) -> CloseWindow:
    window = state.window
    assert window is not None
    verdict = after_window(state, window)
    status = [state.tasks[t].status for t in window.tasks]
    failed = status.count(TaskStatus.FAILED)
    rate = failure_rate(state, window.tasks)
    size = state.current_batch_size
    if state.policy.heal_schedule is HealSchedule.AUTO:
        clean = not failed and TaskStatus.ESCALATED not in status
        size = larger(size) if clean else smaller(size) if rate > state.policy.failure_threshold else size
    return CloseWindow(
        done=sum(passed(state.tasks[t]) for t in window.tasks),
        failed=failed,
        blocked=status.count(TaskStatus.BLOCKED),
        failure_rate=round(rate, 4),
        next_size=size,
        verdict=verdict,
    )


def closing_events(state: RunState, close: CloseWindow) -> list[ev.Event]:
    """The end of the open window and everything that follows from it, but for the healer's start."""
    window, verdict = state.window, close.verdict
    assert window is not None
    events: list[ev.Event] = [
        ev.WindowClosed(window.index, close.done, close.failed, close.blocked, close.failure_rate, close.next_size)
    ]
    events += [ev.TaskRequeued(name, "retried after its window") for name in verdict.requeue]
    events += [ev.TaskRequeued(name, "its canary passed", granted=1) for name in verdict.release]
    for canary in verdict.promote:
        first, *rest = state.held[canary]
        why = f"the canary {canary} could not tell; this one runs first"
        events.append(ev.TaskRequeued(first, why, granted=1))
        events += [ev.TaskHeld(name, first) for name in rest]
    settled = [ev.TaskSettled(name, TaskStatus.FAILED, state.tasks[name].detail) for name in verdict.give_up]
    settled += [ev.TaskSettled(name, TaskStatus.ESCALATED, why) for name, why in verdict.escalate]
    events += [*settled, *questions_for(settled), *blocked_behind(state, [event.task for event in settled])]
    return [*events, ev.HealAbandoned(verdict.abandon)] if verdict.abandon else events


def _finish(state: RunState, spent_out: str = "") -> Finish:
    open_tasks = [t for t in state.specs if state.tasks[t].status is not TaskStatus.DONE]
    if not open_tasks:
        return Finish(RunStatus.COMPLETED, None, "every task is DONE")
    if state.stopping or state.draining:
        return Finish(RunStatus.RUNNING, None, "stopped on request; the run can be continued")
    if state.heal_abandoned:
        reason = f"{state.heal_abandoned}; {abort_reason(state, open_tasks)}"
        return Finish(RunStatus.ABORTED, reason, "healing no longer helps")
    pending = [t for t in open_tasks if state.tasks[t].status is TaskStatus.PENDING]
    if spent_out:
        reason = f"the budget is used up ({spent_out}); {abort_reason(state, open_tasks)}"
        return Finish(RunStatus.ABORTED, reason, "the budget is used up", question=spent_out)
    if pending and state.scope.limited:
        return Finish(RunStatus.RUNNING, None, f"limit reached; {len(pending)} tasks are still to be run")
    reason = abort_reason(state, open_tasks)
    last = state.heal_rounds[-1] if state.heal_rounds else None
    if last is not None and any(state.tasks[t].healer_attempts for t in open_tasks):
        brought = last.problem or f"the last said {last.decision}: {last.root_cause}"
        reason = f"healing did not help in {len(state.heal_rounds)} rounds ({brought}); {reason}"
    return Finish(RunStatus.ABORTED, reason, "nothing more can run")


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

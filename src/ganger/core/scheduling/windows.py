"""Windows and scheduling: what starts now, when a window closes, when a run has nothing left to do."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection

from ganger.core import events as ev
from ganger.core.healing.policy import (
    after_window,
    failure_rate,
    given_up,
    larger as larger,
    passed,
    questions_for,
    smaller as smaller,
)
from ganger.core.model.run_state import RunState
from ganger.core.money.budgets import reservation, run_refusal, task_refusal
from ganger.core.planning.dependents import blocked_behind
from ganger.core.planning.repos import RepoLocks, is_guarded
from ganger.core.scheduling.accounts import needs_answer
from ganger.core.scheduling.choosing import NEVER, Choice, For, due_at, finish, in_scope as in_scope, within
from ganger.core.scheduling.decisions import (
    CloseWindow as CloseWindow,
    Decision as Decision,
    Finish as Finish,
    MergeLevel as MergeLevel,
    OpenWindow as OpenWindow,
    Start as Start,
    Wait as Wait,
    Wake as Wake,
)
from ganger.core.scheduling.quota import spread_after
from ganger.core.state.allowed import open_round
from ganger.core.state.indexes import is_delivering
from ganger.core.times import stamp
from ganger.core.vocabulary import BlockReason, HealSchedule, MergeMode, TaskStatus

# A session may ask for a task at any moment, which is recorded: no need to look again before that.
_UNTIL_ASKED_SEC = 3600.0
# A default that counts from some moment on is recorded shortly after it.
_ANSWERED_WITHIN_SEC = 5.0


def decide(state: RunState, now: float) -> list[Decision]:
    """Everything that should happen now. Call again after each change: an empty list means wait."""
    if state.finished:
        return []
    decisions = _decide(state, now)
    parked = state.index.in_merge_queue and state.index.running == state.index.in_merge_queue | state.index.delivering
    if state.merging is MergeMode.LEVEL and not state.lead.stopping and parked:
        over = not decisions or isinstance(decisions[0], Finish | Wait)
        if over and open_round(state) is None:
            return [MergeLevel(tuple(sorted(state.index.in_merge_queue, key=state.index.rank.__getitem__)))]
    return decisions


def _decide(state: RunState, now: float) -> list[Decision]:
    if state.lead.stopping or state.lead.draining:
        return [] if state.index.running else [finish(state)]
    if open_round(state) is not None:
        # A healer whose key was refused waits for a person, and so does everything behind it.
        return (
            [finish(state)]
            if not state.index.running and needs_answer(state, state.quota.accounts.get("healer", ""))
            else []
        )
    if state.healing.abandoned:
        return [] if state.index.running else [finish(state)]
    due = _due(state, now)
    if due:
        return [Wake(due)]
    if state.lead.paused:
        over = not state.index.running and not state.index.counts[TaskStatus.PENDING] and not state.index.waiting
        return [finish(state)] if over and (state.windows.current is None or not _unfinished(state)) else []
    if deliveries := _deliveries(state, now):
        return deliveries
    return (
        _decide_continuous(state, now)
        if state.policy.heal_schedule is HealSchedule.OFF
        else _decide_windowed(state, now)
    )


def _deliveries(state: RunState, now: float) -> list[Decision]:
    """Deliveries that continue: they use no worker, so they need no slot, no window, no account and no money."""
    found = [name for name in state.index.answered if is_delivering(state.tasks[name])]
    gate = RepoLocks(state) if found and is_guarded(state) else None
    starts: list[Decision] = []
    for name in sorted(found, key=state.index.rank.__getitem__):
        due = state.tasks[name].not_before <= now and not state.index.unmet[name] and within(state, name, len(starts))
        if due and (gate is None or gate.admits(name)):
            starts.append(Start(name))
            if gate is not None:
                gate.take(name)
    return starts


def _unfinished(state: RunState) -> bool:
    return state.index.counts[TaskStatus.DONE] < len(state.tasks)


def _due(state: RunState, now: float) -> tuple[str, ...]:
    blocked = [name for name in state.index.waiting if state.tasks[name].status is TaskStatus.BLOCKED]
    return tuple(
        sorted((name for name in blocked if _quota_until(state, name) <= now), key=state.index.rank.__getitem__)
    )


def _quota_until(state: RunState, name: str) -> float:
    task = state.tasks[name]
    return max(task.not_before, state.quota.paused.get(task.attempt.account, 0.0))


def _free(state: RunState) -> int:
    """Slots for agents to start. Tasks that wait for a merge or are being delivered need none, nor do tasks of a
    session that someone else opened."""
    return (
        state.policy.concurrency
        - len(state.index.running)
        + len(state.index.in_merge_queue | state.index.pulled | state.index.delivering)
    )


def _decide_continuous(state: RunState, now: float) -> list[Decision]:
    fits = Choice(state, now, For.START)
    starts = _starts(state, state.index.ready, fits)
    if starts or state.index.running:
        return starts or _until_then(state, now, fits.later)
    return [_later_or_never(state, now)]


def _decide_windowed(state: RunState, now: float) -> list[Decision]:
    if state.windows.current is None:
        if opened := _next_window(state, now):
            return [opened]
        # A task that is being delivered has left its window, and may be what others wait for.
        return _while_delivering(state, now) if state.index.running else [_later_or_never(state, now)]
    if not state.windows.open:
        return [_close(state)]
    fits = Choice(state, now, For.START)
    starts = _starts(state, state.windows.ready, fits)
    if starts or state.index.running:
        return starts or _until_then(state, now, fits.later)
    if until := _earliest(state, now, state.windows.open):
        return [Wait(until)]
    if _a_session_may_ask(state, now):
        return [Wait(now + _UNTIL_ASKED_SEC)]
    # The rest waits for a dependency outside this window (epoch) or for a limit: it cannot settle here.
    return [_close(state)]


def _starts(state: RunState, heap: list[int], fits: Choice) -> list[Decision]:
    if _no_account_is_free(state, fits) or _no_repo_is_free(state, heap, fits):
        return []
    return [Start(task) for task in _ready(state, heap, _free(state), fits)]


def _no_account_is_free(state: RunState, fits: Choice) -> bool:
    """Saves examining every task while none of them can start anyway."""
    if not (state.lead.pull_roles or state.quota.paused or state.quota.shut) or state.index.answered:
        return False
    accounts = {state.quota.accounts.get(role, "") for role in _roles(state) - state.lead.pull_roles}
    moments = [fits.account_free_at(account) for account in accounts]
    if not all(moments):
        return False
    fits.later = min(moments, default=NEVER)
    return True


def _no_repo_is_free(state: RunState, heap: list[int], fits: Choice) -> bool:
    """Saves examining a long queue while every task in it waits for a repository."""
    if fits.gate is None or state.chains.broken:
        return False
    return fits.gate.shuts_all({state.specs[state.index.by_rank[rank]].repo for rank in heap})


def _roles(state: RunState) -> set[str]:
    return {spec.role for spec in state.specs.values()}


def _until_then(state: RunState, now: float, later: float) -> list[Decision]:
    """Something runs, and time alone may change something before it ends."""
    blocked = [
        _quota_until(state, name) for name in state.index.waiting if state.tasks[name].status is TaskStatus.BLOCKED
    ]
    until = min([later, *(moment for moment in blocked if moment > now)])
    return [Wait(until)] if until < NEVER else []


def _while_delivering(state: RunState, now: float) -> list[Decision]:
    """No window can open now; a delivery, or time, may change that."""
    until = _next_moment(state, now)
    return [Wait(until)] if until else []


def _next_moment(state: RunState, now: float) -> float:
    """When something may change without an event; 0 when nothing will."""
    moments = [_earliest(state, now, state.index.waiting | _behind_accounts(state, now)), _next_default(state, now)]
    return min((moment for moment in moments if moment), default=0.0)


def _later_or_never(state: RunState, now: float) -> Decision:
    """Nothing can start now: either only time must pass or a session must ask, or the run is over."""
    if until := _next_moment(state, now):
        return Wait(until)
    if _a_session_may_ask(state, now):
        return Wait(now + _UNTIL_ASKED_SEC)
    return finish(state, _spent_out(state, now))


def _earliest(state: RunState, now: float, names: set[str]) -> float:
    """The next moment at which one of these can start; 0 if none of them waits only for time."""
    moments = [until for name in names if in_scope(state, name) and (until := _moves_at(state, name, now))]
    return min(moments, default=0.0)


def _moves_at(state: RunState, name: str, now: float) -> float:
    """A blocked task is queued again as soon as its account is back, so that it gets a place in a window."""
    blocked = state.tasks[name].block_reason is BlockReason.QUOTA_WAIT
    return _quota_until(state, name) if blocked else starts_after(state, name, now)


def _next_default(state: RunState, now: float) -> float:
    """When the next open question answers itself, and may bring its task back; 0 if none does."""
    due = [
        question.deadline + _ANSWERED_WITHIN_SEC
        for question in state.inbox.questions.values()
        if question.answer is None and question.default and question.deadline and question.task in state.tasks
        if state.tasks[question.task].status is not TaskStatus.DONE
    ]
    return min((moment for moment in due if moment > now), default=0.0)


def starts_after(state: RunState, name: str, now: float) -> float:
    """When a task that waits only for time or its account's quota may start; 0 if something else holds it."""
    task = state.tasks[name]
    if task.block_reason is BlockReason.QUOTA_WAIT:
        back = _quota_until(state, name)
        rest = state.quota.paused.get(task.attempt.account, 0.0)
        return max(back, spread_after(state, rest, name)) if rest else back
    if task.status is not TaskStatus.PENDING or state.index.unmet[name]:
        return 0.0
    due = due_at(state, name, now, For.START)
    return due if due < NEVER else 0.0


def _behind_accounts(state: RunState, now: float) -> set[str]:
    rest = max(state.quota.paused.values(), default=0.0)
    if rest + state.policy.quota_spread_sec <= now:
        return set()
    return set(
        _ready(state, state.index.ready, len(state.index.ready), lambda name: bool(starts_after(state, name, now)))
    )


def offer(state: RunState, now: float, roles: Collection[str] | None = None) -> str | None:
    """The next task that a session which asks for one may have now; of these roles, if any are named."""
    if state.finished or state.lead.stopping or state.lead.draining or state.lead.paused or state.healing.abandoned:
        return None
    windowed = state.policy.heal_schedule is not HealSchedule.OFF
    if open_round(state) is not None or (windowed and state.windows.current is None):
        return None
    fits = Choice(state, now, For.PULL, None if roles is None else frozenset(roles))
    return next(iter(_ready(state, state.windows.ready if windowed else state.index.ready, 1, fits)), None)


def _a_session_may_ask(state: RunState, now: float) -> bool:
    """Whether there is a task that only a session which asks for it can do."""
    return bool(state.lead.pull_roles) and offer(state, now, state.lead.pull_roles) is not None


def _spent_out(state: RunState, now: float) -> str:
    """The budget that blocks tasks which could otherwise run."""
    if not any(
        in_scope(state, name) for name in _ready(state, state.index.ready, len(state.index.ready), lambda _: True)
    ):
        return ""
    refusal = run_refusal(state, stamp(now))
    if refusal:
        return refusal
    wanted = reservation(state)
    stuck = _ready(
        state, state.index.ready, 1, lambda t: bool(task_refusal(state.money.budget, state.tasks[t], wanted))
    )
    return f"{stuck[0]}: {task_refusal(state.money.budget, state.tasks[stuck[0]], wanted)}" if stuck else ""


def _next_window(state: RunState, now: float) -> OpenWindow | None:
    retry = tuple(
        t for t in state.windows.retry_now if state.tasks[t].status is TaskStatus.PENDING and not state.index.unmet[t]
    )
    if retry and run_refusal(state, stamp(now)) == "":
        return OpenWindow(len(retry), retry, state.windows.retry_of)
    schedule = state.policy.heal_schedule
    if schedule is HealSchedule.EPOCH:
        if not _ready(state, state.index.ready, 1, Choice(state, now, For.WINDOW)):
            return None
        every = (t for t in state.index.by_rank if state.tasks[t].status is TaskStatus.PENDING and in_scope(state, t))
        tasks = tuple(every)
        return OpenWindow(len(tasks), tasks)
    size = {HealSchedule.TASK: 1, HealSchedule.BATCH: state.policy.batch_size}.get(schedule, state.windows.batch_size)
    tasks = _window_tasks(state, size, Choice(state, now, For.WINDOW))
    return OpenWindow(len(tasks), tasks) if tasks else None


def _window_tasks(state: RunState, size: int, fits: Choice) -> tuple[str, ...]:
    """Tasks that can start at once come first. Remaining places go to tasks that only wait for tasks before them in the
    same window, so that a repository's tasks can follow each other there."""
    tasks = _ready(state, state.index.ready, size, fits)
    if tasks and len(tasks) < size and fits.gate is not None:
        fits.queueing, first = True, frozenset(tasks)
        tasks += _ready(state, state.index.ready, size - len(tasks), lambda name: name not in first and fits(name))
        tasks.sort(key=state.index.rank.__getitem__)
    return tuple(tasks)


def _ready(state: RunState, heap: list[int], limit: int, accept: Callable[[str], bool]) -> list[str]:
    """The first `limit` tasks of the heap in plan order that `accept` takes; stale entries are dropped."""
    chosen: list[str] = []
    seen: list[int] = []
    while heap and len(chosen) < limit:
        rank = heapq.heappop(heap)
        task = state.index.by_rank[rank]
        if state.tasks[task].status is not TaskStatus.PENDING or state.index.unmet[task] or (seen and seen[-1] == rank):
            continue
        seen.append(rank)
        if accept(task):
            chosen.append(task)
    for rank in seen:
        heapq.heappush(heap, rank)
    return chosen


def _close(state: RunState) -> CloseWindow:
    window = state.windows.current
    assert window is not None
    verdict = after_window(state, window)
    status = [state.tasks[t].status for t in window.tasks]
    failed = status.count(TaskStatus.FAILED)
    rate = failure_rate(state, window.tasks)
    size = state.windows.batch_size
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
    """The end of the open window and everything that follows from it, except the healer's start."""
    window, verdict = state.windows.current, close.verdict
    assert window is not None
    events: list[ev.Event] = [
        ev.WindowClosed(window.index, close.done, close.failed, close.blocked, close.failure_rate, close.next_size)
    ]
    events += [ev.TaskRequeued(name, "its window has closed") for name in verdict.requeue]
    events += [ev.TaskRequeued(name, "its canary passed", granted=1) for name in verdict.release]
    for canary in verdict.promote:
        first, *rest = state.index.held[canary]
        why = f"the canary {canary} gave no verdict; this one runs first"
        events.append(ev.TaskRequeued(first, why, granted=1))
        events += [ev.TaskHeld(name, first) for name in rest]
    settled = [given_up(state, name, state.tasks[name].detail) for name in verdict.give_up]
    settled += [ev.TaskSettled(name, TaskStatus.ESCALATED, why) for name, why in verdict.escalate]
    events += [*settled, *questions_for(settled), *blocked_behind(state, [event.task for event in settled])]
    return [*events, ev.HealAbandoned(verdict.abandon)] if verdict.abandon else events

"""Taking a run up again: which tasks come back, which are given up, and what waits behind them (T20)."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.failures.retries import attempts_left
from ganger.core.healing.policy import given_up, may_run_again, questions_for
from ganger.core.model.records import RunState
from ganger.core.state.allowed import open_round
from ganger.core.vocabulary import BlockReason, HealSchedule, TaskStatus

# A person, or the account's clock, brings these back.
_WAITS_FOR_SOMEBODY = frozenset({BlockReason.PAUSED, BlockReason.PERMISSION_DENIED, BlockReason.QUOTA_WAIT})
_UNDER_WAY = frozenset({TaskStatus.PENDING, TaskStatus.RUNNING})
_BAD = frozenset({TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED})


def taken_up(state: RunState) -> list[ev.Event]:
    """A person ran the same command again. One pass in plan order, so every task is judged after what it needs."""
    events: list[ev.Event] = []
    bad: set[str] = set()
    window = _undecided(state)
    for name in state.by_rank:
        if state.tasks[name].status is TaskStatus.DONE or (state.tasks[name].status is TaskStatus.PENDING and not bad):
            continue
        event = _verdict(state, name, bad, in_window=name in window)
        if event is not None:
            events.append(event)
        if isinstance(event, ev.TaskSettled) or (event is None and _stays_bad(state, name, in_window=name in window)):
            bad.add(name)
    return [*events, *questions_for(events)]


def _verdict(state: RunState, name: str, bad: set[str], *, in_window: bool) -> ev.TaskRequeued | ev.TaskSettled | None:
    task = state.tasks[name]
    if state.scope.only is not None and name not in state.scope.only:
        return None
    behind = next((need for need in state.specs[name].depends_on if need in bad), None)
    if task.block_reason is BlockReason.DEPENDENCY_FAILED:
        return None if behind else ev.TaskRequeued(name, "its dependency may run again")
    if task.status is TaskStatus.PENDING and behind:
        why = f"dependency {behind} did not end DONE"
        return ev.TaskSettled(name, TaskStatus.BLOCKED, why, BlockReason.DEPENDENCY_FAILED)
    if _comes_back(state, name, in_window=in_window):
        return ev.TaskRequeued(name, "continued; attempts are left")
    if task.status is TaskStatus.FAILED and not task.final and not in_window:
        return given_up(state, name, task.detail)
    return None


def _undecided(state: RunState) -> frozenset[str]:
    """Failures that an open window, a healer at work or a canary will decide about."""
    round_ = open_round(state)
    judged = {*(state.window.tasks if state.window else ()), *(round_.failed if round_ else ())}
    if state.policy.heal_schedule is HealSchedule.OFF:
        return frozenset(judged)
    canaries = [name for name in state.held if name in judged or state.tasks[name].status in _UNDER_WAY]
    return frozenset(judged.union(*(state.held[name] for name in canaries)))


def _comes_back(state: RunState, name: str, *, in_window: bool) -> bool:
    """What failed in a window that is still open is judged when that closes."""
    task = state.tasks[name]
    if task.status is TaskStatus.BLOCKED:
        if task.block_reason in _WAITS_FOR_SOMEBODY or name in _asked_about(state):
            return False
        if task.block_reason is BlockReason.EXTERNAL and not task.final:
            # It waits for its account alone, and that holds it wherever it stands.
            return True
        return attempts_left(state.specs[name], task, state.policy) > 0
    return not in_window and may_run_again(state, name)


def _asked_about(state: RunState) -> set[str]:
    return {question.task for question in state.questions.values() if question.answer is None}


def _stays_bad(state: RunState, name: str, *, in_window: bool) -> bool:
    task = state.tasks[name]
    undecided = task.status is TaskStatus.FAILED and not task.final and in_window
    return task.status in _BAD and not undecided

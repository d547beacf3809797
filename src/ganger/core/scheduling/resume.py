"""How tasks return: when a run is continued, and when a person asks for it."""

from __future__ import annotations

import math

from ganger.core import events as ev
from ganger.core.command_result import counted
from ganger.core.delivery.shared_pushes import BASE_RED, FOR_ALL, PUSH_REFUSED, TAKEN_OUT, UNREAD_WORKFLOW
from ganger.core.failures.retries import attempts_left
from ganger.core.healing.policy import given_up, may_run_again, questions_for
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.scheduling.quota import account_of, paused_until
from ganger.core.state.allowed import open_round
from ganger.core.state.indexes import is_delivering
from ganger.core.vocabulary import BlockReason, HealSchedule, TaskStatus

_BAD = frozenset({TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED})


def bring_back(state: RunState, name: str, why: str, hint: str) -> list[ev.Event]:
    """The task with one more attempt, and in plan order the tasks that were blocked only because of it."""
    waiting = state.tasks[name].status is TaskStatus.PENDING
    events: list[ev.Event] = []
    if waiting:
        # Only a settled task can be queued again, and only then does a hint reach it.
        events.append(ev.TaskSettled(name, TaskStatus.BLOCKED, "set aside by a person", BlockReason.PAUSED))
    events.append(ev.TaskRequeued(name, why, granted=0 if waiting else 1, hint=hint, by_person=True))
    need = bad_need(state, name)
    if need is not None:
        waits = f"it waits for {need}, which is {state.tasks[need].status.value}"
        return [*events, ev.TaskSettled(name, TaskStatus.BLOCKED, waits, BlockReason.DEPENDENCY_FAILED)]
    back = {name}
    events += back_beside(state, name, f"{name} runs again", why)
    for other in sorted(_behind(state, name), key=state.index.rank.__getitem__):
        blocked = state.tasks[other].block_reason is BlockReason.DEPENDENCY_FAILED
        if blocked and not any(n not in back and _is_bad(state, n) for n in state.specs[other].depends_on):
            back.add(other)
            events.append(ev.TaskRequeued(other, f"{name} runs again"))
    return events


def back_beside(state: RunState, name: str, why: str, answer: str = "") -> list[ev.Event]:
    """Whatever waited for this task because its change keeps the branch that they share red."""
    events: list[ev.Event] = []
    for other in _beside(state, name):
        events += [*close_questions(state, other, answer or why), ev.TaskRequeued(other, why)]
    return events


def after_push(state: RunState, repo: str) -> list[ev.Event]:
    """The branch takes pushes: what a refused push stopped continues. What CI said of the branch still stands."""
    stopped = [name for name in parked(state, repo) if state.tasks[name].block_reason is BlockReason.EXTERNAL]
    by_ci = _is_stopped_by(state, stopped, (BASE_RED, UNREAD_WORKFLOW))
    return [] if by_ci else _freed(state, stopped, "the branch takes pushes again")


def after_green(state: RunState, repo: str) -> list[ev.Event]:
    """CI is green on a tip of the branch: what is below it and has no verdict of its own continues, and finds that one.

    A task that has been green keeps its question: what stopped it is not CI."""
    if repo in state.branches.removals:
        return []
    stopped = [
        name for name in state.index.by_rank if state.specs[name].repo == repo and _lacks_green(state.tasks[name])
    ]
    by_remote = _is_stopped_by(state, stopped, (TAKEN_OUT, PUSH_REFUSED))
    return [] if by_remote else _freed(state, stopped, "CI is green on the branch again")


def _lacks_green(task: TaskState) -> bool:
    now = task.delivery
    stopped = task.status is TaskStatus.BLOCKED and task.block_reason is BlockReason.EXTERNAL and is_delivering(task)
    return stopped and now is not None and bool(now.pushed) and now.green != now.commit


def _is_stopped_by(state: RunState, names: list[str], signals: tuple[str, ...]) -> bool:
    asked = [state.tasks[name].failure.signature or "" for name in names if state.tasks[name].final]
    return any(signal in signature for signature in asked for signal in signals)


def _freed(state: RunState, names: list[str], why: str) -> list[ev.Event]:
    events: list[ev.Event] = []
    for name in names:
        events += [*close_questions(state, name, why), ev.TaskRequeued(name, why)]
    return events


def parked(state: RunState, repo: str) -> list[str]:
    """Deliveries that wait for what stands in the way of others as well."""
    return [name for name in state.index.by_rank if state.specs[name].repo == repo and _is_parked(state.tasks[name])]


def _beside(state: RunState, name: str) -> list[str]:
    """Deliveries of the same repository that cannot continue without it: its change keeps their branch red, or its
    question concerns them as well."""
    return [other for other in parked(state, state.specs[name].repo) if other != name]


def _is_parked(task: TaskState) -> bool:
    reasons = (BlockReason.EXTERNAL, BlockReason.DEPENDENCY_FAILED)
    waits = not task.final or any(signal in (task.failure.signature or "") for signal in FOR_ALL)
    return task.status is TaskStatus.BLOCKED and waits and is_delivering(task) and task.block_reason in reasons


def bad_need(state: RunState, name: str) -> str | None:
    return next((need for need in state.specs[name].depends_on if _is_bad(state, need)), None)


def _is_bad(state: RunState, name: str) -> bool:
    """Finally ended other than DONE; a failure that its window has yet to judge, or a wait for quota, is not final."""
    task = state.tasks[name]
    return task.status in _BAD and task.final


def _behind(state: RunState, name: str) -> set[str]:
    found: set[str] = set()
    queue = [name]
    for current in queue:
        new = [d for d in state.index.dependents.get(current, ()) if d not in found]
        found.update(new)
        queue.extend(new)
    return found


def close_questions(state: RunState, name: str, text: str) -> list[ev.QuestionAnswered]:
    asked = [q.id for q in state.inbox.questions.values() if q.task == name and q.answer is None]
    return [ev.QuestionAnswered(question, text) for question in asked]


def but(state: RunState, name: str, now: float) -> str:
    """Why it does not start right now, as far as a person needs to know."""
    until = paused_until(state, account_of(state, name), now)
    if state.lead.paused:
        return ", once the run is resumed"
    if state.lead.stopping or state.lead.draining:
        return ", when the run is continued: this lead is ending"
    if state.lead.scope.only is not None and name not in state.lead.scope.only:
        return ", when ganger run is called without --only"
    if state.quota.shut.get(account_of(state, name)) == 0.0:
        return f", when its account works again: ganger inbox shows the question about {account_of(state, name)}"
    return f", when its account's quota is back in {math.ceil(until - now)} s" if until else ""


def following(events: tuple[ev.Event, ...], name: str) -> str:
    count = sum(1 for event in events if isinstance(event, ev.TaskRequeued) and event.task != name)
    return f"; {counted(count, 'task')} blocked behind it may run too" if count else ""


# A person, or the account's clock, brings these back.
_WAITS_FOR_SOMEBODY = frozenset({BlockReason.PAUSED, BlockReason.PERMISSION_DENIED, BlockReason.QUOTA_WAIT})
_UNDER_WAY = frozenset({TaskStatus.PENDING, TaskStatus.RUNNING})


def taken_up(state: RunState) -> list[ev.Event]:
    """The operator ran the same command again. One pass in plan order: each task is judged after its dependencies."""
    events: list[ev.Event] = []
    bad: set[str] = set()
    window = _undecided(state)
    for name in state.index.by_rank:
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
    if state.lead.scope.only is not None and name not in state.lead.scope.only:
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
    """Failures that an open window, a running healer or a canary will decide about."""
    round_ = open_round(state)
    judged = {*(state.windows.current.tasks if state.windows.current else ()), *(round_.failed if round_ else ())}
    if state.policy.heal_schedule is HealSchedule.OFF:
        return frozenset(judged)
    canaries = [name for name in state.index.held if name in judged or state.tasks[name].status in _UNDER_WAY]
    return frozenset(judged.union(*(state.index.held[name] for name in canaries)))


def _comes_back(state: RunState, name: str, *, in_window: bool) -> bool:
    """A failure in a window that is still open is judged when the window closes."""
    task = state.tasks[name]
    if task.status is TaskStatus.BLOCKED:
        if task.block_reason in _WAITS_FOR_SOMEBODY or name in _asked_about(state):
            return False
        if task.block_reason is BlockReason.EXTERNAL and not task.final:
            # It waits only for its account, which holds it wherever it is.
            return True
        return attempts_left(state.specs[name], task, state.policy) > 0
    return not in_window and may_run_again(state, name)


def _asked_about(state: RunState) -> set[str]:
    return {question.task for question in state.inbox.questions.values() if question.answer is None}


def _stays_bad(state: RunState, name: str, *, in_window: bool) -> bool:
    task = state.tasks[name]
    undecided = task.status is TaskStatus.FAILED and not task.final and in_window
    return task.status in _BAD and not undecided

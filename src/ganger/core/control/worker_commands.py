"""What a person can do with a worker at work: give it more time, end it, or have another one begin anew."""

from __future__ import annotations

from collections.abc import Mapping

from ganger.core import events as ev
from ganger.core.command_result import Effect, Refusal, number_of, task_named, text_of
from ganger.core.model.records import RunState, TaskState
from ganger.core.state.apply_worker import BY_PERSON, is_at_work
from ganger.core.state.indexes import is_delivering
from ganger.core.vocabulary import TaskStatus

ENDED = "ended by a person"
SKIPPED = "skipped by a person"
NOT_FOLLOWED = "a person does not want to wait for its delivery"
REASSIGNED = "given to another worker by a person"
LIMIT_HOLDS = (
    "its time limit cannot be moved: it is being ended, or it is held by a keeper of an earlier version;"
    " ganger retry runs the task again"
)
_LONGEST_SEC = 7 * 86_400.0


def extend(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    name, task = _at_work(state, data, "extend")
    seconds = number_of(data.get("sec"))
    if not 0 < seconds <= _LONGEST_SEC:
        raise Refusal(f"it needs more than 0 and at most {_LONGEST_SEC:.0f} seconds, not {str(data.get('sec'))[:80]!r}")
    if task.worker is not None and task.worker.verdict:
        raise Refusal(f"the worker of {name} is being ended already: {task.worker.why}")
    given = ev.LimitExtended(name, task.attempts, "person", now + seconds, "extended by a person")
    return Effect(f"the worker of {name} may go on for {seconds:g} s from now", (given,))


def end(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    name = task_named(state, data)
    task = state.tasks[name]
    if (
        task.status is TaskStatus.RUNNING
        and is_delivering(task)
        and task.worker is not None
        and not task.worker.verdict
    ):
        said = (
            f"{name} is not followed any longer; it waits as BLOCKED (paused), and ganger retry {name} goes on with it"
        )
        return Effect(said, (ev.WorkerEnding(name, task.attempts, "ended", NOT_FOLLOWED),))
    require_running(state, name)
    who = f"the worker of {name}" if is_at_work(task) and task.step == "agent" else f"the attempt on {name}"
    said = f"{who} is ended; {name} waits as BLOCKED (paused) until ganger retry {name}"
    return Effect(said, (ev.WorkerEnding(name, task.attempts, "ended", ENDED),))


def reassign(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    name, task = _at_work(state, data, "reassign")
    if task.worker is not None and task.worker.verdict:
        return Effect(f"the worker of {name} is being ended already: {task.worker.why}")
    return begin_anew(name, task, text_of(data, "hint"))


def begin_anew(name: str, task: TaskState, hint: str) -> Effect:
    """Whatever becomes of this attempt, the task is done by another one."""
    # Only an answer reaches the attempts to come.
    told = (ev.MessageLeft(name, task.attempts, "answer", hint),) if hint else ()
    with_hint = " with your hint" if hint else ""
    said = f"the worker of {name} is ended and another one begins anew{with_hint}; no attempt is used up"
    return Effect(said, (*told, ev.WorkerEnding(name, task.attempts, "reassigned", REASSIGNED)))


def leave_out(name: str, task: TaskState) -> Effect:
    said = f"the attempt on {name} is ended and {name} is left out; ganger retry {name} takes it in again"
    return Effect(said, (ev.WorkerEnding(name, task.attempts, "skipped", SKIPPED),))


def require_running(state: RunState, name: str) -> None:
    """From wherever it stands it can be ended, but for the moment in which the branch moves to it."""
    task = state.tasks[name]
    if task.status is not TaskStatus.RUNNING:
        raise Refusal(f"{name} is {task.status.value}: nobody works on it; ganger why {name} tells how it stands")
    if is_being_merged(state, name):
        raise Refusal(f"{name} is verified and being merged at this moment; ganger why {name} tells the rest")


def is_being_merged(state: RunState, name: str) -> bool:
    return any(name in intent.tasks for intent in state.intents.values())


def is_ended_by_person(task: TaskState) -> bool:
    return task.worker is not None and task.worker.verdict in BY_PERSON


def _at_work(state: RunState, data: Mapping[str, object], what: str) -> tuple[str, TaskState]:
    name = task_named(state, data)
    task = state.tasks[name]
    if task.status is not TaskStatus.RUNNING:
        raise Refusal(f"{name} is {task.status.value}: nobody works on it; ganger why {name} tells how it stands")
    if not is_at_work(task) or task.step != "agent":
        raise Refusal(f"the worker of {name} is through, there is nothing to {what}; ganger why {name} tells the rest")
    return name, task

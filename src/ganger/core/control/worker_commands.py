"""What a person can do with a running worker: give it more time, stop it, or start over with another one."""

from __future__ import annotations

from collections.abc import Mapping

from ganger.core import events as ev
from ganger.core.command_result import Effect, Refusal, number_of, task_named, text_of
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.state.apply_worker import BY_PERSON, is_at_work
from ganger.core.state.indexes import is_delivering
from ganger.core.vocabulary import AttemptStep, TaskStatus, WorkerVerdict

ENDED = "ended by a person"
SKIPPED = "skipped by a person"
NOT_FOLLOWED = "a person does not want to wait for its delivery"
REASSIGNED = "given to another worker by a person"
LIMIT_HOLDS = (
    "its time limit cannot be moved: it is being stopped, or a keeper of an earlier version holds it;"
    " ganger retry runs the task again"
)
_LONGEST_SEC = 7 * 86_400.0


def extend(state: RunState, data: Mapping[str, object], now: float) -> Effect:
    name, task = _at_work(state, data, "extend")
    seconds = number_of(data.get("sec"))
    if not 0 < seconds <= _LONGEST_SEC:
        raise Refusal(f"it needs more than 0 and at most {_LONGEST_SEC:.0f} seconds, not {str(data.get('sec'))[:80]!r}")
    if task.worker is not None and task.worker.verdict:
        raise Refusal(f"the worker of {name} is already being stopped: {task.worker.why}")
    given = ev.LimitExtended(name, task.attempts, "person", now + seconds, "extended by a person")
    return Effect(f"the worker of {name} may continue for {seconds:g} s from now", (given,))


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
            f"the delivery of {name} is no longer followed; {name} is BLOCKED (paused) until ganger retry {name} "
            "continues it"
        )
        return Effect(said, (ev.WorkerEnding(name, task.attempts, WorkerVerdict.ENDED, NOT_FOLLOWED),))
    require_running(state, name)
    who = (
        f"the worker of {name}"
        if is_at_work(task) and task.attempt.step == AttemptStep.AGENT
        else f"the attempt on {name}"
    )
    said = f"{who} is stopped; {name} is BLOCKED (paused) until ganger retry {name}"
    return Effect(said, (ev.WorkerEnding(name, task.attempts, WorkerVerdict.ENDED, ENDED),))


def reassign(state: RunState, data: Mapping[str, object], _now: float) -> Effect:
    name, task = _at_work(state, data, "reassign")
    if task.worker is not None and task.worker.verdict:
        return Effect(f"the worker of {name} is already being stopped: {task.worker.why}")
    return start_over(name, task, text_of(data, "hint"))


def start_over(name: str, task: TaskState, hint: str) -> Effect:
    """Stops this attempt, whatever it has achieved; another one does the task."""
    # Only an answer reaches later attempts.
    message = (ev.MessageLeft(name, task.attempts, "answer", hint),) if hint else ()
    with_hint = " with your hint" if hint else ""
    said = f"the worker of {name} is stopped and another one starts over{with_hint}; no attempt is used up"
    return Effect(said, (*message, ev.WorkerEnding(name, task.attempts, WorkerVerdict.REASSIGNED, REASSIGNED)))


def leave_out(name: str, task: TaskState) -> Effect:
    said = f"the attempt on {name} is stopped and {name} is left out; ganger retry {name} includes it again"
    return Effect(said, (ev.WorkerEnding(name, task.attempts, WorkerVerdict.SKIPPED, SKIPPED),))


def require_running(state: RunState, name: str) -> None:
    """It can be stopped at any step, except while the branch moves to it."""
    task = state.tasks[name]
    if task.status is not TaskStatus.RUNNING:
        raise Refusal(f"{name} is {task.status.value}: no worker is running; ganger why {name} shows its state")
    if is_being_merged(state, name):
        raise Refusal(f"{name} is verified and being merged right now; ganger why {name} shows its state")


def is_being_merged(state: RunState, name: str) -> bool:
    return any(name in intent.tasks for intent in state.branches.intents.values())


def is_ended_by_person(task: TaskState) -> bool:
    return task.worker is not None and task.worker.verdict in BY_PERSON


def _at_work(state: RunState, data: Mapping[str, object], what: str) -> tuple[str, TaskState]:
    name = task_named(state, data)
    task = state.tasks[name]
    if task.status is not TaskStatus.RUNNING:
        raise Refusal(f"{name} is {task.status.value}: no worker is running; ganger why {name} shows its state")
    if not is_at_work(task) or task.attempt.step != AttemptStep.AGENT:
        raise Refusal(
            f"the worker of {name} has finished, there is nothing to {what}; ganger why {name} shows its state"
        )
    return name, task

"""Which events do not fit a run as it stands: the table of allowed pairs, and the rules no event may break."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.records import RunState, TaskState
from ganger.core.vocabulary import TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
B, F, E = TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.ESCALATED

ALLOWED: dict[type, dict[TaskStatus, TaskStatus | None]] = {
    ev.AttemptStarted: {P: R},
    ev.AttemptLaunched: {R: R},
    ev.AttemptExited: {R: R},
    ev.ResultAccepted: {R: R},
    ev.ResultRefused: {R: R},
    ev.WritesIntended: {R: R},
    ev.WritesApplied: {R: R},
    ev.WritesRolledBack: {R: R},
    ev.VerifyStarted: {R: R},
    ev.VerifyFinished: {R: R},
    ev.AttemptFailed: {R: R},
    ev.AttemptInterrupted: {R: P},
    ev.TaskSettled: {R: None, P: None, F: None, B: None},
    ev.TaskRequeued: {R: P, F: P, B: P, E: P, D: P},
}
SETTLED = frozenset({D, B, F, E})
COUNTERS = frozenset({"worker_attempts", "format_retries", "respawns"})


def run_misfit(state: RunState, event: ev.Event) -> str:
    if isinstance(event, ev.RunStarted):
        return "the run has begun already" if state.specs else ""
    if not state.specs:
        return "no run has begun"
    if isinstance(event, ev.WindowOpened):
        if state.window is not None:
            return f"window {state.window.index} is still open"
        return "a task of it does not exist" if not state.specs.keys() >= set(event.tasks) else ""
    if isinstance(event, ev.WindowClosed) and (state.window is None or state.window.index != event.index):
        return "that window is not open"
    return ""


def task_misfit(state: RunState, task: TaskState, event: ev.Event) -> str:
    if task.status not in ALLOWED[type(event)]:
        return f"not possible while {task.status.value}"
    if isinstance(event, ev.AttemptEvent) and event.attempt != task.attempts:
        return f"attempt {event.attempt} is not the current one ({task.attempts})"
    if isinstance(event, ev.AttemptStarted):
        return _start_misfit(state, task, event)
    if isinstance(event, ev.TaskSettled):
        return _settle_misfit(task, event)
    if isinstance(event, ev.AttemptFailed) and event.counter not in COUNTERS:
        return f"there is no counter {event.counter!r}"
    return ""


def _start_misfit(state: RunState, task: TaskState, event: ev.AttemptStarted) -> str:
    if event.attempt != task.attempts + 1:
        return f"attempt {event.attempt} does not follow {task.attempts}"
    if state.unmet[event.task]:
        return "a dependency is not DONE"
    return "the run has ended" if state.finished else ""


def _settle_misfit(task: TaskState, event: ev.TaskSettled) -> str:
    if event.status not in SETTLED:
        return f"{event.status.value} settles nothing"
    if event.status is D and (task.status is not R or task.verified_attempt != task.attempts):
        return "DONE without passed verification of this attempt"
    return ""

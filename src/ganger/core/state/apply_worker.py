"""How events change what is known about a task's worker, and the states of a worker from SPAWNED to STOPPED."""

from __future__ import annotations

from typing import Any

from ganger.core import events as ev
from ganger.core.model.fast_replace import replace
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.model.workers import Message, WorkerNow
from ganger.core.state.reducers import applied_in, applies
from ganger.core.vocabulary import FailureClass, TaskStatus, WorkerState, WorkerVerdict

_MOST_SEEN = 500
_MOST_MESSAGES = 50
# Verdicts on a worker that only a person gives.
BY_PERSON = (WorkerVerdict.ENDED, WorkerVerdict.REASSIGNED, WorkerVerdict.SKIPPED)
_OVER = frozenset({WorkerState.STOPPED, WorkerState.STALLED, WorkerState.CRASHED, WorkerState.CHECKPOINTED})
_OFF_ROAD = {FailureClass.CRASH.value: WorkerState.CRASHED, FailureClass.STALLED.value: WorkerState.STALLED}


def worker_after(after: TaskState, event: ev.Event, at: str) -> TaskState:
    """The task, its worker moved by an event that is not about workers alone."""
    match event:
        case ev.AttemptStarted(delivers=True):
            # That a person ended it counts for the attempt they ended.
            known = after.worker
            return after if known is None else replace(after, worker=replace(known, verdict=WorkerVerdict.NONE, why=""))
        case ev.AttemptStarted():
            begun = _begun(event, at)
            if after.next_start.answer_log and after.worker is not None:
                # Its answer is the one that was given before.
                begun = replace(begun, report=after.worker.report)
            return replace(after, worker=begun)
        case ev.AttemptLaunched():
            return _moved(after, WorkerState.EXECUTING, at)
        case ev.ResultAccepted():
            return _moved(after, WorkerState.REPORTING, at)
        case ev.AttemptFailed(failure_class=cls):
            return _moved(after, _OFF_ROAD.get(cls, WorkerState.STOPPED), at)
        case ev.AttemptCheckpointed():
            return _moved(after, WorkerState.CHECKPOINTED, at)
        case ev.AttemptInterrupted() | ev.TaskSettled() | ev.TaskRequeued():
            return _moved(after, WorkerState.STOPPED, at)
    return after


def _begun(event: ev.AttemptStarted, at: str) -> WorkerNow:
    if event.worker:
        return WorkerNow(
            event.worker, WorkerState.EXECUTING, at, pulled=True, claim=event.claim, session=event.worker_session
        )
    return WorkerNow(f"{event.agent}/{event.task}.{event.attempt}", WorkerState.SPAWNED, at)


def _moved(task: TaskState, state: WorkerState, at: str) -> TaskState:
    worker = task.worker
    if worker is None or worker.state is state or worker.state in _OVER:
        return task
    if state in _OVER:
        # Its reports stay known: one whose acknowledgement was lost is sent again, and must be acknowledged.
        worker = replace(worker, messages=(), suspicious="")
    return replace(task, worker=replace(worker, state=state, since=at))


def _seen(worker: WorkerNow, request: str, **changes: Any) -> WorkerNow:
    seen = (*worker.seen, request)[-_MOST_SEEN:] if request else worker.seen
    if worker.state is WorkerState.SPAWNED:
        changes = {"state": WorkerState.EXECUTING, **changes}
    return replace(worker, seen=seen, suspicious="", **changes)


def _of(task: TaskState) -> WorkerNow:
    """Journals from before workers were recorded have none."""
    return task.worker or WorkerNow("")


@applies(ev.WorkerBeat)
def _beat(_s: RunState, _n: str, task: TaskState, event: ev.WorkerBeat, at: str) -> TaskState:
    worker = _of(task)
    changes: dict[str, Any] = {"beat_at": at}
    for name in ("step", "percent", "note", "tiers", "context_pct"):
        given = getattr(event, name)
        if given not in ("", None, ()):
            changes[name] = given
    return replace(task, worker=_seen(worker, event.report, **changes))


@applies(ev.WorkerMilestone)
def _milestone(_s: RunState, _n: str, task: TaskState, event: ev.WorkerMilestone, at: str) -> TaskState:
    return replace(task, worker=_seen(_of(task), event.report, milestone=event.name, note=event.note, beat_at=at))


@applies(ev.CheckpointTaken)
def _checkpoint(_s: RunState, _n: str, task: TaskState, event: ev.CheckpointTaken, at: str) -> TaskState:
    worker, said = _of(task), event.checkpoint
    if said.by == "worker":
        worker = _seen(worker, event.report, beat_at=at, context_pct=said.context_pct or worker.context_pct)
        return replace(task, worker=worker, checkpoint=said)
    known = task.checkpoint
    # A worker's own checkpoint, also an earlier one, is worth more than what is observed from outside.
    return task if known is not None and known.by == "worker" else replace(task, checkpoint=said)


@applies(ev.WorkerReported)
def _reported(_s: RunState, _n: str, task: TaskState, event: ev.WorkerReported, at: str) -> TaskState:
    worker = _seen(_of(task), event.report, report=event.file, beat_at=at)
    return replace(task, worker=replace(worker, state=WorkerState.REPORTING, since=at))


@applies(ev.WorkerDone)
def _done(_s: RunState, _n: str, task: TaskState, event: ev.WorkerDone, at: str) -> TaskState:
    return replace(task, worker=_seen(_of(task), event.report, done=True, beat_at=at))


@applies(ev.WorkerSuspected)
def _suspected(_s: RunState, _n: str, task: TaskState, event: ev.WorkerSuspected, _at: str) -> TaskState:
    worker = _of(task)
    return replace(task, worker=replace(worker, suspicious=event.why, probes=worker.probes + bool(event.probe)))


@applies(ev.WorkerCleared)
def _cleared(_s: RunState, _n: str, task: TaskState, _event: ev.WorkerCleared, _at: str) -> TaskState:
    return replace(task, worker=replace(_of(task), suspicious=""))


@applies(ev.LimitWarned)
def _warned(_s: RunState, _n: str, task: TaskState, event: ev.LimitWarned, _at: str) -> TaskState:
    return replace(task, worker=replace(_of(task), warned=event.text))


@applies(ev.LimitExtended)
def _extended(_s: RunState, _n: str, task: TaskState, _event: ev.LimitExtended, _at: str) -> TaskState:
    worker = _of(task)
    return replace(task, worker=replace(worker, extended=worker.extended + 1))


@applies(ev.WorkerEnding)
def _ending(_s: RunState, _n: str, task: TaskState, event: ev.WorkerEnding, _at: str) -> TaskState:
    """The first verdict holds, because processes are stopped once; but a person decides what follows."""
    worker = _of(task)
    return (
        task
        if worker.verdict and event.verdict not in BY_PERSON
        else replace(task, worker=replace(worker, verdict=event.verdict, why=event.why))
    )


@applies(ev.MessageLeft)
def _message(_s: RunState, _n: str, task: TaskState, event: ev.MessageLeft, at: str) -> TaskState:
    worker = _of(task)
    number = worker.messages[-1].number + 1 if worker.messages else 1
    messages = (*worker.messages, Message(number, event.kind, event.text, at, event.about))[-_MOST_MESSAGES:]
    hints = (*task.next_start.hints, event.text) if event.kind == "answer" else task.next_start.hints
    return replace(task, worker=replace(worker, messages=messages), next_start=replace(task.next_start, hints=hints))


def escalated_by(task: TaskState, question: str, report: str) -> TaskState:
    """A worker asked a person something."""
    return replace(task, worker=_seen(_of(task), report, escalated=question))


def is_at_work(task: TaskState) -> bool:
    return task.status is TaskStatus.RUNNING and task.worker is not None and task.worker.state not in _OVER


WORKER_EVENTS = applied_in(__name__)

"""What an attempt's end means without an answer to read: its worker's own words and Ganger's verdict on it."""

from __future__ import annotations

from ganger.contracts.task_result import TaskResult
from ganger.core import events as ev
from ganger.core.model.records import Ended, Question
from ganger.core.model.task_state import TaskState
from ganger.core.state.apply_worker import BY_PERSON
from ganger.core.vocabulary import BlockReason, FailureClass, WorkerVerdict
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.errors import EXIT_BLOCKED, EXIT_CHECKPOINT, EXIT_ESCALATED

_LEFT = (*BY_PERSON, WorkerVerdict.UNTOLD)


class Left(Exception):
    """The worker is finished, its task is not: `context` (it saved its state), `ended`, `reassigned` or `skipped` by a
    person, `answered` (its question is answered), `untold` (the session that asked never learned that it has the task).
    """

    def __init__(self, how: str, why: str) -> None:
        super().__init__(why)
        self.how, self.why = how, why


class Waits(Exception):
    """Nothing failed, and the next step is someone else's: a reviewer's, or the person's who lifts a halt.
    `escalated`: a person has to decide between two that disagree."""

    def __init__(
        self,
        reason: BlockReason,
        why: str,
        *,
        question: str = "",
        text: str = "",
        options: tuple[str, ...] = (),
        before: tuple[ev.Event, ...] = (),
        escalated: bool = False,
    ) -> None:
        """`before` is recorded together with the wait."""
        super().__init__(why)
        self.escalated = escalated
        self.reason, self.why, self.question, self.text, self.options = reason, why, question, text, options
        self.before = before


def raise_if_person_decided(task: TaskState) -> None:
    """A person's decision counts, whatever the worker said at its end."""
    worker = task.worker
    if worker is not None and worker.verdict in _LEFT:
        raise Left(worker.verdict, worker.why)


def meaning(case: RunningAttempt, ended: Ended) -> Failed | None:
    """Z07: why there is no answer, if Ganger itself or the worker said so; raises Left if another worker continues."""
    worker = case.now.worker
    if worker is None:
        return None
    if worker.verdict is WorkerVerdict.STALLED:
        return case.failed(FailureClass.STALLED, worker.why, f"the worker stalled: {worker.why}")
    if worker.verdict is WorkerVerdict.CRASHED:
        return case.failed(FailureClass.CRASH, "done mark without a report", worker.why)
    if worker.verdict is WorkerVerdict.CONTEXT:
        raise Left(WorkerVerdict.CONTEXT, worker.why)
    if ended.code == EXIT_CHECKPOINT and has_checkpoint(case.now):
        raise Left(WorkerVerdict.CONTEXT, "the worker saved its state and ended")
    if worker.escalated and ended.code in (0, EXIT_BLOCKED, EXIT_ESCALATED) and not ended.timed_out:
        return _asked(case)
    if ended.code == EXIT_BLOCKED and worker.beat_at:
        said = worker.note or worker.step or "it ended with exit code 3"
        return case.failed(FailureClass.BLOCKED_EXTERNAL, said, f"the worker is blocked: {said}")
    return None


def _asked(case: RunningAttempt) -> Failed:
    """Z06: it ended with a question. A worker that gets an answer starts again, but not without limit."""
    asked = open_question(case)
    if asked is not None:
        problem = case.failed(FailureClass.BLOCKED_EXTERNAL, asked.kind, f"the worker asks: {asked.text}")
        problem.escalated = True
        return problem
    every = [question for question in case.state.inbox.questions.values() if question.task == case.task]
    before = {(q.kind, q.text) for q in every if q.attempt != case.number}
    again = next((q for q in every if q.attempt == case.number and (q.kind, q.text) in before), None)
    if again is not None:
        return case.failed(FailureClass.PROMPT_GAP, again.kind, f"the worker asks again: {again.text}")
    times = len({q.attempt for q in every})
    if times > case.state.policy.checkpoints:
        detail = f"the worker ended with a question {times} times, and each was answered"
        return case.failed(FailureClass.PROMPT_GAP, "questions", detail)
    raise Left("answered", "its worker's question is answered")


def open_question(case: RunningAttempt) -> Question | None:
    """What this attempt's worker asked and has no answer yet."""
    asked = case.state.inbox.questions.values()
    return next((q for q in asked if q.task == case.task and q.attempt == case.number and q.answer is None), None)


def speaks_for_itself(task: TaskState) -> bool:
    """H06: a done mark, and a checkpoint of this very attempt that leaves nothing to do."""
    worker, known = task.worker, task.checkpoint
    if worker is None or not worker.done or known is None:
        return False
    return known.by == "worker" and known.attempt == task.attempts and not known.remaining and bool(known.done)


def result_of(name: str, task: TaskState) -> TaskResult:
    """The report that never came, rebuilt from the checkpoint; verification decides whether it is true."""
    known = task.checkpoint
    assert known is not None
    summary = known.summary or f"done: {', '.join(known.done)}"
    return TaskResult(contract_version="2.0", task_id=name, status="DONE", summary=summary)


def has_checkpoint(task: TaskState) -> bool:
    """Whether its worker saved its state in this attempt."""
    return task.checkpoint is not None and task.checkpoint.by == "worker" and task.checkpoint.attempt == task.attempts

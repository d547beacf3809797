"""What follows a failed attempt: which counter pays, and whether the task runs again, waits or ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ganger.core.failures import CLASSES, Failure, known_class
from ganger.core.records import Policy, TaskSpec, TaskState
from ganger.core.vocabulary import BlockReason, FailureClass, TaskStatus


class Then(StrEnum):
    AGAIN_NOW = "again_now"
    AGAIN_LATER = "again_later"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True)
class Next:
    """The decision, with the counter that pays and a reason a person can read."""

    then: Then
    counter: str
    why: str
    status: TaskStatus = TaskStatus.FAILED
    block_reason: BlockReason | None = None


def allowed_attempts(spec: TaskSpec, policy: Policy) -> int:
    """The policy's number, widened by `metadata.max_attempts`, narrowed by `retry_policy` (T13)."""
    limit = spec.widened_attempts or policy.max_worker_attempts_per_task
    return min(limit, spec.max_attempts) if spec.max_attempts is not None else limit


def may_retry_class(spec: TaskSpec, failure_class: str) -> bool:
    if spec.retry_on is not None:
        return failure_class in spec.retry_on
    cls = known_class(failure_class)
    return cls is not None and CLASSES[cls].retryable


def after_failure(spec: TaskSpec, task: TaskState, policy: Policy, failure: Failure) -> Next:
    """`task` is the state while the failed attempt still runs, so its counters include that attempt."""
    cls = failure.failure_class
    if cls is FailureClass.CONTRACT_ERROR and task.format_retries < policy.format_retries:
        return Next(
            Then.AGAIN_NOW, "format_retries", "the answer broke the contract; asked once more with a strict reminder"
        )
    if cls is FailureClass.CRASH and task.respawns < policy.respawns:
        return Next(Then.AGAIN_NOW, "respawns", "the worker crashed; run again once")
    row = CLASSES[cls]
    if row.blocks_as is not None:
        return Next(Then.SETTLE, "worker_attempts", row.then, TaskStatus.BLOCKED, row.blocks_as)
    limit = allowed_attempts(spec, policy)
    used = f"{task.worker_attempts} of {limit} worker attempts used"
    if not may_retry_class(spec, cls.value):
        by = "the task's retry_on" if spec.retry_on is not None else "its class"
        return Next(Then.SETTLE, "worker_attempts", f"{cls.value} is not retried ({by}); {used}")
    if task.worker_attempts < limit:
        return Next(Then.AGAIN_LATER, "worker_attempts", used)
    return Next(Then.SETTLE, "worker_attempts", used)

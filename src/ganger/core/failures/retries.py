"""What follows a failed attempt: which counter is charged, and whether the task runs again, waits or ends."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum

from ganger.core.failures.classes import CLASSES, VERIFY_SIGNAL, Failure, known_class
from ganger.core.model.ledger import BY_GANGER
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import BlockReason, FailureClass, TaskStatus

End = tuple[TaskStatus, BlockReason | None]


class Then(StrEnum):
    AGAIN_NOW = "again_now"
    AGAIN_AFTER = "again_after"
    AGAIN_LATER = "again_later"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True)
class NextStep:
    """The decision, with the counter that is charged and a reason for people."""

    then: Then
    counter: str
    why: str
    status: TaskStatus = TaskStatus.FAILED
    block_reason: BlockReason | None = None
    delay_sec: float = 0.0


def allowed_attempts(spec: TaskSpec, policy: Policy, granted: int = 0, by_person: int = 0) -> int:
    """The policy's number, widened by `metadata.max_attempts` and by healing, narrowed by `retry_policy` (T13).

    What a person granted comes on top.
    """
    limit = (spec.widened_attempts or policy.max_worker_attempts_per_task) + granted
    return (min(limit, spec.max_attempts) if spec.max_attempts is not None else limit) + by_person


def attempts_left(spec: TaskSpec, task: TaskState, policy: Policy) -> int:
    return (
        allowed_attempts(spec, policy, task.counters.granted, task.counters.granted_by_person)
        - task.counters.worker_attempts
    )


REWORK = "rework"
# What the project's own checks and rules rejected, as far as the class says.
_JUDGED = frozenset(
    {
        *(FailureClass.BUILD_ERROR, FailureClass.TEST_ERROR, FailureClass.SMOKE_ERROR),
        *(FailureClass.POLICY_VIOLATION, FailureClass.NO_CHANGE),
    }
)
_CHECK_TOO_LONG = f"{FailureClass.TIMEOUT}:{VERIFY_SIGNAL}"


def end_of(failure_class: str | None, signature: str | None, policy: Policy, *, healing: bool) -> End:
    """How a task ends when its attempts, and its healing if there is a healer, are used up.

    A failure that healing cannot fix goes to a person if there is a healer for the others (a rule of the 2.0 format).
    With `policy.exhausted = "rework"`, what checks or rules rejected waits for a person to take over (W05 W07).
    """
    cls = known_class(failure_class)
    judged = cls in _JUDGED or (signature or "").startswith(_CHECK_TOO_LONG)
    if judged and policy.exhausted == REWORK:
        return TaskStatus.BLOCKED, BlockReason.NEEDS_REWORK
    if healing and cls is not None and not CLASSES[cls].healable:
        return TaskStatus.ESCALATED, None
    return TaskStatus.FAILED, None


_FIRST_DELAY_SEC, _LONGEST_DELAY_SEC = 5.0, 60.0


def backoff_sec(task: str, retry: int) -> float:
    """5 s, doubled up to 60 s, plus up to a quarter: the same for the same task and retry, spread over tasks."""
    delay = min(_LONGEST_DELAY_SEC, _FIRST_DELAY_SEC * 2.0**retry)
    share = zlib.crc32(f"{task}:{retry}".encode()) / 2**32
    return round(delay * (1 + share / 4), 3)


def may_retry_class(spec: TaskSpec, failure_class: str) -> bool:
    if spec.retry_on is not None:
        return failure_class in spec.retry_on
    cls = known_class(failure_class)
    return cls is not None and CLASSES[cls].retryable


def _after_stall(task: TaskState, policy: Policy) -> NextStep:
    """Z03: restarts, then another worker, then a person."""
    if task.counters.stalls < policy.stall_restarts:
        why = f"the worker stalled; started again ({task.counters.stalls + 1} of {policy.stall_restarts})"
        return NextStep(Then.AGAIN_NOW, "stalls", why)
    if task.counters.stalls == policy.stall_restarts:
        return NextStep(Then.AGAIN_NOW, "stalls", "it stalled again; another worker starts over")
    return NextStep(Then.SETTLE, "stalls", "it stalled under another worker too", TaskStatus.ESCALATED)


def is_reassigned(task: TaskState, policy: Policy) -> bool:
    """Whether another worker than the one that stalled has the task: a new session with the role's fallback."""
    return task.counters.stalls > policy.stall_restarts


def _fixes_ci(task: TaskState) -> bool:
    """What a reviewer sent back after the push is not a fault that CI found."""
    return task.delivery is not None and task.delivery.fixing and task.delivery.review != "rework"


def _after_ci(task: TaskState, fixes: int) -> NextStep:
    """D06: CI is fixed up to so many times, whatever the reason a fix fails."""
    if task.counters.ci_fixes < fixes:
        return NextStep(Then.AGAIN_NOW, "ci_fixes", f"CI is red; fix {task.counters.ci_fixes + 1} of {fixes}")
    return NextStep(Then.SETTLE, "worker_attempts", f"CI is red after {fixes} attempts to fix it", TaskStatus.ESCALATED)


def _after_revert(chosen: NextStep) -> NextStep:
    """A revert that a person chose is Ganger's own, so no worker fixes it: the person is asked again, unless it waits
    for something outside or for time."""
    if chosen.block_reason is not None or chosen.then is Then.AGAIN_AFTER:
        return chosen
    return NextStep(Then.SETTLE, "none", "the revert did not come to its end", TaskStatus.ESCALATED)


def _after_review(task: TaskState, rounds: int) -> NextStep:
    """W08: a reviewing agent may send a change back so often; then a person decides."""
    if task.counters.reworks < rounds:
        return NextStep(
            Then.AGAIN_NOW, "reworks", f"sent back by its reviewer; done again, {task.counters.reworks + 1} of {rounds}"
        )
    times = f"{rounds + 1} times" if rounds else "and policy.rework_rounds is 0"
    return NextStep(Then.SETTLE, "none", f"its reviewer sent it back {times}", TaskStatus.ESCALATED)


# Causes outside the task use up none of its attempts.
_PAID_BY = {
    FailureClass.QUOTA: "none",
    FailureClass.BLOCKED_EXTERNAL: "none",
    FailureClass.ENVIRONMENT: "none",
    FailureClass.PERMISSION_DENIED: "denials",
}


def after_failure(
    spec: TaskSpec,
    task: TaskState,
    policy: Policy,
    failure: Failure,
    *,
    healing: bool = False,
    asks: bool = False,
    fixes: int = 5,
    sent_back: bool = False,
) -> NextStep:
    """`task` is the state while the failed attempt still runs, so its counters include that attempt. `asks`: its worker
    left an open question. `fixes`: how many CI fixes are allowed; `sent_back`: a reviewer rejected the change."""
    chosen = _usually(spec, task, policy, failure, healing=healing, asks=asks, fixes=fixes, sent_back=sent_back)
    now = task.delivery
    reverts = now is not None and now.revert is not None and now.revert.how == BY_GANGER
    return _after_revert(chosen) if reverts else chosen


def _usually(
    spec: TaskSpec,
    task: TaskState,
    policy: Policy,
    failure: Failure,
    *,
    healing: bool,
    asks: bool,
    fixes: int,
    sent_back: bool,
) -> NextStep:
    cls = failure.failure_class
    if sent_back:
        return _after_review(task, policy.rework_rounds)
    if asks and cls is FailureClass.BLOCKED_EXTERNAL:
        return NextStep(Then.SETTLE, "none", "it waits for an answer", TaskStatus.ESCALATED)
    if cls is FailureClass.CONTRACT_ERROR and task.counters.format_retries < policy.format_retries:
        return NextStep(
            Then.AGAIN_NOW, "format_retries", "the answer broke the contract; asked again with a strict reminder"
        )
    if cls is FailureClass.CRASH and task.counters.respawns < policy.respawns:
        return NextStep(Then.AGAIN_NOW, "respawns", "the worker crashed; run again once")
    if cls is FailureClass.STALLED:
        return _after_stall(task, policy)
    if cls is FailureClass.TRANSIENT_INFRA and task.counters.transient_retries < policy.transient_retries:
        delay = backoff_sec(spec.id, task.counters.transient_retries)
        why = f"a temporary error; tried again in {delay:.0f} s"
        return NextStep(Then.AGAIN_AFTER, "transient_retries", why, delay_sec=delay)
    if cls is FailureClass.MERGE_CONFLICT:
        if task.counters.merge_retries < policy.merge_retries:
            why = "the change does not fit the newest head; done again on that head, with the conflict in the prompt"
            return NextStep(Then.AGAIN_NOW, "merge_retries", why)
        return NextStep(
            Then.SETTLE, "worker_attempts", "it conflicts again", TaskStatus.BLOCKED, BlockReason.NEEDS_REWORK
        )
    if cls is FailureClass.NO_CHANGE and task.counters.no_change_retries < policy.no_change_retries:
        return NextStep(Then.AGAIN_NOW, "no_change_retries", "nothing was changed; asked again")
    if failure.undecided:
        why = "a signal ends its check, with the change and without it"
        return NextStep(Then.SETTLE, "none", why, TaskStatus.BLOCKED, BlockReason.NEEDS_REWORK)
    row = CLASSES[cls]
    if cls is FailureClass.CI_ERROR or (_fixes_ci(task) and row.retryable):
        return _after_ci(task, fixes)
    if row.blocks_as is not None:
        pays = _PAID_BY.get(cls, "worker_attempts")
        return NextStep(Then.SETTLE, pays, row.then, TaskStatus.BLOCKED, row.blocks_as)
    limit = allowed_attempts(spec, policy, task.counters.granted, task.counters.granted_by_person)
    used = f"{task.counters.worker_attempts} of {limit} worker attempts used"
    ended = end_of(cls.value, failure.signature, policy, healing=healing)
    if not may_retry_class(spec, cls.value):
        by = "the task's retry_on" if spec.retry_on is not None else "its class"
        return NextStep(Then.SETTLE, "worker_attempts", f"{cls.value} is not retried ({by}); {used}", *ended)
    hopeful = (
        healing and row.healable and (spec.max_attempts is None or task.counters.worker_attempts < spec.max_attempts)
    )
    if task.counters.worker_attempts < limit or hopeful:
        return NextStep(Then.AGAIN_LATER, "worker_attempts", used)
    return NextStep(Then.SETTLE, "worker_attempts", used, *ended)

"""Which counter pays for a failed attempt, and what follows."""

from __future__ import annotations

import pytest

from ganger.core.failures.classes import Failure
from ganger.core.failures.retries import NextStep, Then, after_failure, allowed_attempts, is_reassigned
from ganger.core.model.counters import Counters
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import BlockReason, FailureClass, TaskStatus

POLICY = Policy()


def after(cls: FailureClass, state: TaskState, spec: TaskSpec | None = None, policy: Policy = POLICY) -> NextStep:
    return after_failure(spec or TaskSpec("a"), state, policy, Failure(cls, f"{cls}:x", "it broke"))


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        (TaskSpec("a"), 2),
        (TaskSpec("a", max_attempts=1), 1),
        (TaskSpec("a", max_attempts=5), 2),
        (TaskSpec("a", widened_attempts=3), 3),
        (TaskSpec("a", widened_attempts=3, max_attempts=1), 1),
        (TaskSpec("a", widened_attempts=1), 1),
    ],
)
def test_two_attempts_unless_retry_policy_narrows_or_metadata_widens(spec: TaskSpec, allowed: int) -> None:
    """T13 Z10: the policy's number, narrowed by retry_policy, up to 3 by metadata.max_attempts."""
    assert allowed_attempts(spec, POLICY) == allowed


def test_a_failed_verification_is_retried_later_once_and_then_settles_as_failed() -> None:
    """T13: worker attempts pay; two in all."""
    first = after(FailureClass.TEST_ERROR, TaskState(counters=Counters(worker_attempts=1)))
    second = after(FailureClass.TEST_ERROR, TaskState(counters=Counters(worker_attempts=2)))
    assert (first.then, first.counter) == (Then.AGAIN_LATER, "worker_attempts")
    assert (second.then, second.status) == (Then.SETTLE, TaskStatus.FAILED)
    assert "2 of 2" in second.why


def test_a_contract_error_gets_one_format_retry_that_no_budget_pays() -> None:
    """T08: once at once, then it is a worker failure like any other."""
    first = after(FailureClass.CONTRACT_ERROR, TaskState(counters=Counters(worker_attempts=1)))
    second = after(FailureClass.CONTRACT_ERROR, TaskState(counters=Counters(worker_attempts=1, format_retries=1)))
    assert (first.then, first.counter) == (Then.AGAIN_NOW, "format_retries")
    assert (second.then, second.counter) == (Then.AGAIN_LATER, "worker_attempts")


def test_the_format_retry_is_given_even_when_the_task_retries_nothing() -> None:
    """T08: it stands outside retry_on and max_attempts."""
    spec = TaskSpec("a", max_attempts=1, retry_on=())
    assert (
        after(FailureClass.CONTRACT_ERROR, TaskState(counters=Counters(worker_attempts=1)), spec).then is Then.AGAIN_NOW
    )


def test_a_crash_is_run_again_once_and_then_paused() -> None:
    """H04: one respawn outside the budgets, then BLOCKED(paused)."""
    first = after(FailureClass.CRASH, TaskState(counters=Counters(worker_attempts=1)))
    second = after(FailureClass.CRASH, TaskState(counters=Counters(worker_attempts=1, respawns=1)))
    assert (first.then, first.counter) == (Then.AGAIN_NOW, "respawns")
    assert (second.then, second.status) == (Then.SETTLE, TaskStatus.BLOCKED)
    assert second.block_reason is BlockReason.PAUSED


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (FailureClass.BLOCKED_EXTERNAL, BlockReason.EXTERNAL),
        (FailureClass.QUOTA, BlockReason.QUOTA_WAIT),
        (FailureClass.PERMISSION_DENIED, BlockReason.PERMISSION_DENIED),
    ],
)
def test_what_waits_for_the_outside_is_blocked_with_its_reason(cls: FailureClass, reason: BlockReason) -> None:
    """W07 D12: never retried, whatever budget is left."""
    chosen = after(cls, TaskState(counters=Counters(worker_attempts=1)))
    assert (chosen.then, chosen.status, chosen.block_reason) == (Then.SETTLE, TaskStatus.BLOCKED, reason)


@pytest.mark.parametrize(
    ("stalls", "then", "reassigned"),
    [(0, Then.AGAIN_NOW, False), (1, Then.AGAIN_NOW, False), (2, Then.AGAIN_NOW, False), (3, Then.SETTLE, True)],
)
def test_two_restarts_then_another_worker_then_a_person(stalls: int, then: Then, reassigned: bool) -> None:
    """Z03: stalls pay for themselves; the fourth one is under another worker and goes to a person."""
    state = TaskState(counters=Counters(worker_attempts=1, stalls=stalls))
    chosen = after(FailureClass.STALLED, state)
    assert (chosen.then, chosen.counter, is_reassigned(state, POLICY)) == (then, "stalls", reassigned)
    assert chosen.then is not Then.SETTLE or chosen.status is TaskStatus.ESCALATED


@pytest.mark.parametrize(("restarts", "again"), [(0, [True, False]), (1, [True, True, False])])
def test_the_number_of_restarts_is_the_operators(restarts: int, again: list[bool]) -> None:
    """Z03: without any, the first stall goes to another worker at once."""
    policy = Policy(stall_restarts=restarts)
    found = [
        after(FailureClass.STALLED, TaskState(counters=Counters(stalls=n)), policy=policy) for n in range(len(again))
    ]
    assert [chosen.then is Then.AGAIN_NOW for chosen in found] == again


def test_a_stall_uses_up_no_other_counter_and_no_other_counter_a_stall() -> None:
    """T13 Z03 H04: crash, stall and failure are told apart."""
    used = TaskState(counters=Counters(worker_attempts=2, respawns=1, format_retries=1, transient_retries=3))
    assert after(FailureClass.STALLED, used).then is Then.AGAIN_NOW
    assert after(FailureClass.CRASH, TaskState(counters=Counters(worker_attempts=1, stalls=4))).counter == "respawns"


def test_retry_on_decides_which_classes_are_retried() -> None:
    """T13: a class that is not listed settles at once and says why."""
    spec = TaskSpec("a", retry_on=("timeout",))
    refused = after(FailureClass.TEST_ERROR, TaskState(counters=Counters(worker_attempts=1)), spec)
    assert refused.then is Then.SETTLE and "retry_on" in refused.why
    assert after(FailureClass.TIMEOUT, TaskState(counters=Counters(worker_attempts=1)), spec).then is Then.AGAIN_LATER


def test_a_real_bug_is_not_retried() -> None:
    """No prompt can mend it."""
    chosen = after(FailureClass.REAL_BUG, TaskState(counters=Counters(worker_attempts=1)))
    assert (chosen.then, chosen.status) == (Then.SETTLE, TaskStatus.FAILED)


def test_no_counter_borrows_from_another() -> None:
    """T13: used-up format retries and respawns leave the worker attempts alone."""
    used = TaskState(counters=Counters(worker_attempts=1, format_retries=1, respawns=1))
    assert after(FailureClass.TEST_ERROR, used).then is Then.AGAIN_LATER
    assert (
        after(FailureClass.CRASH, TaskState(counters=Counters(worker_attempts=2, format_retries=1))).counter
        == "respawns"
    )


def test_an_operator_can_switch_format_retries_and_respawns_off() -> None:
    """T08 H04: each counter is settable."""
    policy = Policy(format_retries=0, respawns=0)
    assert (
        after(FailureClass.CONTRACT_ERROR, TaskState(counters=Counters(worker_attempts=1)), policy=policy).counter
        == "worker_attempts"
    )
    assert (
        after(FailureClass.CRASH, TaskState(counters=Counters(worker_attempts=1)), policy=policy).status
        is TaskStatus.BLOCKED
    )

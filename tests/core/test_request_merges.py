"""Decisions about change requests on their way into the target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ganger.core import events as ev
from ganger.core.delivery.request_merges import (
    LandedRequest,
    MergeStep,
    RequestLook,
    judge_landed,
    method_of,
    next_in_line,
    next_step,
)
from ganger.core.model.ci import CiRules, JobFact, RunFact, Word
from ganger.core.model.ledger import Delivery, RequestRef
from ganger.core.model.run_state import Indexes, RunState
from ganger.core.model.task_state import TaskState
from ganger.core.state.apply_delivery import delivery_misfit
from ganger.core.state.reducers import TASK_REDUCERS

SHA, OTHER = "a" * 40, "b" * 40
OPEN = {"tested": SHA, "state": "open", "head": SHA, "tip": SHA, "in_target": False, "holds_target": True}


def run_of(test: Word, *, word: Word = Word.SUCCESS, name: str = "test") -> RunFact:
    run = RunFact("7", SHA, word, jobs=(JobFact(name, test),))
    return RunFact("7", SHA, word, jobs=run.jobs, asked=run.state)


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({}, MergeStep.MERGE),
        ({"holds_target": False}, MergeStep.UPDATE),
        ({"in_target": True, "state": "open"}, MergeStep.LANDED),
        ({"in_target": True, "state": "closed", "tip": ""}, MergeStep.LANDED),
        ({"state": "merged", "tip": ""}, MergeStep.LANDED),
        ({"state": "merged", "head": OTHER}, MergeStep.OTHER_MERGED),
        ({"state": "", "tip": SHA}, MergeStep.CLOSED),
        ({"state": "closed", "tip": ""}, MergeStep.BRANCH_GONE),
        ({"tip": OTHER, "head": OTHER}, MergeStep.BRANCH_MOVED),
    ],
)
def test_what_is_in_the_target_counts_and_then_what_the_forge_says(change: dict[str, object], step: MergeStep) -> None:
    """D02 W02: an answer that was lost leaves a request open that is merged."""
    assert next_step(RequestLook(**{**OPEN, **change}), updates=True) is step  # type: ignore[arg-type]


def test_a_forge_s_own_queue_needs_no_update() -> None:
    """D02: it tests what it makes of both."""
    assert next_step(RequestLook(**{**OPEN, "holds_target": False}), updates=False) is MergeStep.MERGE  # type: ignore[arg-type]


def test_who_was_brought_up_to_date_goes_first_and_then_the_run_s_order() -> None:
    """G03 W02: its test would be worthless if another went before it."""
    state = RunState(index=Indexes(rank={"a": 0, "b": 1, "c": 2}))
    state.tasks = {name: TaskState(delivery=Delivery(request=RequestRef(name, "main"))) for name in "abc"}
    assert next_in_line(state, {"c", "b"}) == "b" and next_in_line(state, set()) == ""
    state.tasks["c"] = TaskState(delivery=Delivery(request=RequestRef("c", "main", updates=1)))
    assert next_in_line(state, {"a", "b", "c"}) == "c"


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ((), LandedRequest.WAIT),
        ((run_of(Word.SUCCESS),), LandedRequest.GREEN),
        ((run_of(Word.FAILURE, word=Word.FAILURE),), LandedRequest.RED),
        ((run_of(Word.RUNNING, word=Word.RUNNING),), LandedRequest.WAIT),
        ((run_of(Word.CANCELLED, word=Word.CANCELLED),), LandedRequest.NONE),
        ((run_of(Word.SUCCESS, name="deploy"),), LandedRequest.NONE),
    ],
)
def test_ci_of_what_landed_is_a_verdict_or_none(runs: tuple[RunFact, ...], verdict: LandedRequest) -> None:
    """D02 D03: a job that does not run in the target, or a run that a later commit stopped, turns nobody red."""
    assert judge_landed(SHA, runs, CiRules(("test",)))[0] is verdict


@pytest.mark.parametrize(
    ("wanted", "allowed", "method"),
    [
        ("", (), "merge"),
        ("", ("squash", "merge"), "merge"),
        ("", ("squash",), "squash"),
        ("rebase", ("rebase", "merge"), "rebase"),
        ("rebase", ("merge",), ""),
        ("squash", (), "squash"),
    ],
)
def test_a_request_is_merged_in_a_way_that_the_forge_allows(wanted: str, allowed: tuple[str, ...], method: str) -> None:
    """W02: as it is asked for, or not at all."""
    assert method_of(wanted, allowed) == method


def updated(now: Delivery) -> Delivery:
    state = RunState(tasks={"a": TaskState(delivery=now)})
    event = ev.UpdateIntended("a", 1, "1", SHA, OTHER, OTHER)
    task = TASK_REDUCERS[ev.UpdateIntended](state, "a", state.tasks["a"], event, "2026-11-18T00:00:00Z")
    after = task.delivery
    assert after is not None and after.request is not None and after.request.updates == 1
    return after


def test_an_approval_holds_for_the_update_of_what_was_approved() -> None:
    """W08: the change is the same, so nobody is asked twice; and what was not approved is not approved by it."""
    now = Delivery(commit=SHA, pushed=SHA, review="approved", reviewed=SHA, request=RequestRef("x", "main", "1"))
    assert updated(now).reviewed == OTHER
    assert updated(replace(now, reviewed="c" * 40)).reviewed == "c" * 40


@pytest.mark.parametrize(
    "event",
    [
        ev.UpdateIntended("a", 1, "1", OTHER, OTHER, OTHER),
        ev.UpdateIntended("a", 1, "1", SHA, OTHER, "short"),
        ev.UpdateConflicted("a", 1, "1", OTHER, SHA),
        ev.MergeIntended("a", 1, "1", OTHER),
        ev.TrackingMoved("a", 1, OTHER, "main", SHA),
        ev.TrackingMoved("a", 1, OTHER, "main", OTHER, "queue"),
        ev.LandedUnjudged("a", 1, OTHER, "why"),
    ],
)
def test_what_is_about_another_commit_can_not_enter_the_ledger(event: ev.Event) -> None:
    """D02: only what was tested is brought up to date and merged, and only what that became is followed."""
    now = Delivery(commit=SHA, pushed=SHA, request=RequestRef("x", "main", "1"))
    assert delivery_misfit(TaskState(delivery=now), event)
    assert delivery_misfit(TaskState(delivery=replace(now, request=None)), event) == "there is no change request"

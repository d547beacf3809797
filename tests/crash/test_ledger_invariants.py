"""The judge of ledgers: content with a good delivery, and every rule of it can be broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checker.invariants import Seen, broken
from checker.ledger_invariants import LedgerWalk
from ganger.core import events as ev
from ganger.core.model.ci import Word
from ganger.core.model.ledger import Milestone
from ganger.core.model.records import TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import TaskStatus
from tests.crash.good_delivery import (
    A1,
    A2,
    APP,
    B1,
    GOOD,
    LIB,
    OTHER,
    POLICY,
    judged,
    merged,
    pushed,
    run_of,
    seen,
)
from tests.crash.good_run import Tale, start


def rules(tale: Tale) -> list[str]:
    return [problem.partition(":")[0] for problem in broken(tale.recorded(), Seen())]


def swapped(*kinds: type[ev.Event]) -> Tale:
    """Two that follow each other, in the other order."""
    events = list(GOOD.events)
    place = next(n for n, e in enumerate(events) if (type(e), type(events[n + 1])) == kinds)
    events[place : place + 2] = reversed(events[place : place + 2])
    return Tale(tuple(events))


def changed(old: ev.Event, **fields: object) -> Tale:
    new = replace(old, **fields)  # type: ignore[type-var]
    return Tale(tuple(new if event is old else event for event in GOOD.events))


def first(kind: type[ev.Event], task: str) -> ev.Event:
    return next(e for e in GOOD.events if isinstance(e, kind) and getattr(e, "task", "") == task)


def before_end(task: str, *more: ev.Event) -> Tale:
    """Something more while the task is at work, right before it is DONE."""
    place = next(n for n, e in enumerate(GOOD.events) if isinstance(e, ev.TaskSettled) and e.task == task)
    return Tale((*GOOD.events[:place], *more, *GOOD.events[place:]))


def test_a_good_delivery_breaks_no_rule() -> None:
    """D01 D07: and neither does it when it is cut off anywhere."""
    assert broken(GOOD.recorded(), Seen()) == []
    for length in range(2, len(GOOD.events)):
        assert broken(Tale(GOOD.events[:length]).recorded(), Seen()) == []


RERUN = ev.RetriggerIntended("a", 2, A2, "mirror_skipped", "rerun", "7")
AGAIN = ev.Retriggered("a", 2, A2, "mirror_skipped", "rerun")
HALT = ev.ChainHalted("lib", "a", "a key is out")

BAD: dict[str, tuple[str, Tale]] = {
    "pushed without an intent": ("pushes", GOOD.without(ev.PushIntended, "a")),
    "another commit pushed than intended": ("pushes", changed(first(ev.Pushed, "a"), commit=OTHER)),
    "another branch pushed than intended": ("pushes", changed(first(ev.Pushed, "b"), branch="main")),
    "one commit pushed twice": ("pushes", GOOD.with_after(ev.Pushed, ev.Pushed("a", 1, A1, "main"))),
    "pushed before anything is merged": ("pushes", GOOD.with_after(ev.MergeQueued, *pushed("a", 1, A1))),
    "DONE without a push": ("proof", GOOD.without(ev.Pushed, "b")),
    "DONE without a verdict": ("proof", GOOD.without(ev.CiJudged, "b")),
    "DONE without the mirror": ("proof", GOOD.without(ev.MirrorProved)),
    "DONE for a commit that was to be pushed later": ("proof", before_end("b", pushed("b", 1, OTHER)[0])),
    "CI seen for another commit": ("verdicts", changed(first(ev.CiSeen, "b"), sha=OTHER)),
    "a run of another commit": ("verdicts", changed(first(ev.CiSeen, "b"), runs=(run_of(OTHER),))),
    "a verdict on another commit": ("verdicts", changed(first(ev.CiJudged, "b"), sha=OTHER)),
    "a verdict on the commit before": ("verdicts", before_end("a", judged("a", 2, A1, "red"))),
    "a mirror of another commit": ("verdicts", changed(first(ev.MirrorProved, "a"), sha=A1)),
    "a verdict before the push": ("verdicts", GOOD.with_after(ev.PushIntended, judged("a", 1, A1, "red"))),
    "green that nobody saw": ("verdicts", GOOD.without(ev.CiSeen, "b")),
    "green without a run": ("verdicts", changed(first(ev.CiSeen, "b"), runs=())),
    "green without a required job": ("verdicts", changed(first(ev.CiSeen, "b"), runs=(run_of(B1, Word.SKIPPED),))),
    "mirrored by a job that was skipped": (
        "verdicts",
        Tale(tuple(replace(e, runs=(run_of(A2, mirror=Word.SKIPPED),))
                   if isinstance(e, ev.CiSeen) and e.sha == A2 else e for e in GOOD.events)),
    ),
    "green seen before it ran again": ("verdicts", swapped(ev.Retriggered, ev.CiSeen)),
    "back to WORKING": ("milestones", before_end("b", ev.MilestoneReached("b", 1, Milestone.WORKING))),
    "red twice without a push": ("milestones", GOOD.with_after(ev.Merged, judged("a", 1, A1, "red"))),
    "DONE while CI is mended": ("milestones", before_end("b", judged("b", 1, B1, "red"))),
    "one cause twice": ("retriggers", GOOD.with_after(ev.Retriggered, RERUN, AGAIN)),
    "an empty commit for a cause that was tried": (
        "retriggers",
        before_end("a", ev.PushIntended("a", 2, "lib", "main", OTHER, "tree", "mirror_skipped")),
    ),
    "more causes than allowed": (
        "retriggers",
        GOOD.with_after(ev.Retriggered, *(ev.Retriggered("a", 2, A2, cause, "rerun") for cause in ("x", "y"))),
    ),
    "run again although it is red": (
        "retriggers",
        GOOD.with_after(ev.CiJudged, ev.RetriggerIntended("a", 1, A1, "cancelled", "rerun", "7")),
    ),
    "the mirror again although CI goes on": (
        "retriggers",
        changed(first(ev.RetriggerIntended, "a"), cause="mirror_failure").with_after(
            ev.Pushed, ev.RetriggerIntended("a", 1, A1, "mirror_skipped", "rerun", "7")
        ),
    ),
    "mended once too often": (
        "fixes",
        GOOD.with_lead(repos=(replace(LIB, fixes=0), APP)),
    ),
    "mended although nobody judged": ("fixes", GOOD.without(ev.CiJudged, "a")),
    "two tasks in one chain": ("locks", GOOD.with_after(ev.Merged, start("b"))),
    "a start in a halted chain": ("halts", GOOD.with_after(ev.LeadStarted, HALT)),
    "a push in a halted chain": ("halts", GOOD.with_after(ev.Merged, HALT)),
    "a second change request": ("requests", GOOD.with_after(ev.RequestOpened, ev.RequestOpened("b", 1, "102", "url"))),
    "a change request without an intent": ("requests", GOOD.without(ev.RequestIntended)),
    "a change request wanted again": (
        "requests",
        GOOD.with_after(ev.RequestOpened, ev.RequestIntended("b", 1, "ganger/run/b", "main")),
    ),
    "another task's change request": ("requests", changed(first(ev.RequestChanged, "b"), number="7")),
    "asked to be merged before it is green": (
        "requests",
        GOOD.with_after(ev.RequestOpened, ev.MergeIntended("b", 1, "101", B1)),
    ),
    "merged at another commit than was tested": (
        "requests",
        changed(first(ev.RequestChanged, "b"), tested=OTHER),
    ),
    "followed for what was made of another commit": (
        "pushes",
        before_end("b", ev.TrackingMoved("b", 1, OTHER, "main", A1)),
    ),
    "DONE although what landed is not judged": (
        "proof",
        before_end("b", ev.TrackingMoved("b", 1, OTHER, "main", B1)),
    ),
    "merged before it is green": ("requests", swapped(ev.CiJudged, ev.RequestChanged)),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "tale"), BAD.values(), ids=BAD)
def test_a_planted_violation_of_a_ledger_is_named_by_its_rule(rule: str, tale: Tale) -> None:
    """D01 D02 D04 D06 D07 D09 D12 D17: every rule of the judge can fail."""
    assert rule in rules(tale)


def test_a_person_lifts_a_halt_and_takes_a_lock_away() -> None:
    """D09 D12: what comes after that is no violation."""
    lifted = GOOD.with_after(ev.LeadStarted, HALT, ev.RepoUnlocked("lib", "replaced"))
    assert rules(lifted) == []
    freed = GOOD.with_after(ev.TaskRequeued, ev.RepoUnlocked("lib", "let b go first", ("a",)), start("b"))
    assert "locks" not in rules(Tale(freed.events[: freed.events.index(start("b")) + 1]))


def test_shared_repositories_are_worked_on_side_by_side() -> None:
    """D08: on one repository, never along a chain."""
    shared = replace(LIB, locks="shared")
    walk = LedgerWalk()
    told: list[ev.Event] = [ev.RunStarted("r", "d", POLICY, (TaskSpec("a", repo="lib"), TaskSpec("b", repo="lib"))),
            ev.LeadStarted(1, policy=POLICY, repos=(shared, APP)), start("a"), start("b")]  # fmt: skip
    assert [wrong for event in told for wrong in walk.take(event)] == []


def test_the_account_and_the_state_must_tell_the_same_story() -> None:
    """D09 D11: a lock or a proof that only one of them knows is named."""
    walk = LedgerWalk()
    now = RunState()
    for entry in Tale(GOOD.events[:20]).recorded():
        apply(now, entry)
        list(walk.take(entry.event))
    assert walk.at_end(now) == []
    now.index.locks["lib"].clear()
    walk.of("a").pushed = OTHER
    assert [problem.partition(":")[0] for problem in walk.at_end(now)] == ["locks", "account"]


def test_done_again_by_a_person_begins_the_milestones_anew() -> None:
    """D07: WORKING → PUSHED_TO_CI → DONE, a second time."""
    again = ev.TaskRequeued("b", "once more", by_person=True, granted=1)
    more = [again, *merged("b", 2, B1, OTHER, B1), *pushed("b", 2, OTHER, "ganger/run/b"),
            seen("b", 2, OTHER, "green", run_of(OTHER)), judged("b", 2, OTHER),
            ev.TaskSettled("b", TaskStatus.DONE, "proved")]  # fmt: skip
    assert rules(GOOD.at_end(*more)) == []

"""Decisions about merging change requests into the target, and the part of their text that is kept current."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from ganger.core.model.ci import MISSING_JOB, OVER, Ci, CiRules, Finding, RunFact, chosen, judge
from ganger.core.model.ledger import RequestRef
from ganger.core.model.run_state import RunState

BEGIN, END = "<!-- ganger: kept current from here -->", "<!-- ganger: to here -->"


def framed(text: str) -> str:
    return f"{BEGIN}\n{text}\n{END}"


def renewed(shown: str, text: str) -> str:
    """`shown` with Ganger's part replaced; unchanged if someone removed the markers."""
    before, begun, rest = shown.partition(BEGIN)
    _, ended, after = rest.partition(END)
    return f"{before}{framed(text)}{after}" if begun and ended else shown


def renewed_title(shown: str, given: str, wanted: str) -> str:
    """A title that differs from the last given one was changed by a person and is kept. `given` is empty if unknown."""
    return wanted if given and shown == given else shown


def next_in_line(state: RunState, waiting: Collection[str]) -> str:
    """Updated requests go first, because waiting makes an update worthless; then the run's order decides."""

    def place(name: str) -> tuple[bool, int]:
        known = _request_of(state, name)
        return known is None or not (known.updates or known.merging), state.index.rank.get(name, len(state.index.rank))

    return min(waiting, key=place, default="")


def _request_of(state: RunState, name: str) -> RequestRef | None:
    task = state.tasks.get(name)
    return task.delivery.request if task is not None and task.delivery is not None else None


class MergeStep(StrEnum):
    """The next step for a change request whose tested commit is green."""

    LANDED = "landed"
    MERGE = "merge"
    UPDATE = "update"
    CLOSED = "closed"
    BRANCH_GONE = "branch_gone"
    BRANCH_MOVED = "branch_moved"
    OTHER_MERGED = "other_merged"


@dataclass(frozen=True, slots=True)
class RequestLook:
    """What forge and remote show at one moment. `state` and `head` are those of the request (empty: not found); `tip`
    is that of its branch, empty if there is none. `in_target`: the target contains the tested commit, or a later commit
    with its tree. `holds_target`: the tested commit contains the target's tip."""

    tested: str
    state: str
    head: str
    tip: str
    in_target: bool
    holds_target: bool


def next_step(look: RequestLook, *, updates: bool) -> MergeStep:
    """The content of the target decides, whatever the state of the request: a lost answer can leave it open for ever.

    `updates`: a request must contain its target before it is merged.
    """
    if look.in_target:
        return MergeStep.LANDED
    if look.state == "merged":
        return MergeStep.LANDED if look.head == look.tested else MergeStep.OTHER_MERGED
    if not look.tip:
        return MergeStep.BRANCH_GONE
    if look.tip != look.tested:
        return MergeStep.BRANCH_MOVED
    if look.state != "open":
        return MergeStep.CLOSED
    return MergeStep.UPDATE if updates and not look.holds_target else MergeStep.MERGE


class LandedRequest(StrEnum):
    """CI's verdict on a commit in the target, as far as it counts there."""

    WAIT = "wait"
    GREEN = "green"
    RED = "red"
    NONE = "none"


def judge_landed(sha: str, runs: Iterable[RunFact], rules: CiRules) -> tuple[LandedRequest, Finding]:
    """A verdict that CI gives by itself, or none: the tested commit has the same tree, so jobs that do not run in the
    target, and runs that a later commit there canceled, prove nothing."""
    runs = tuple(runs)
    finding = judge(sha, runs, rules)
    counted = chosen(sha, runs, rules.events)
    real = [job for job in finding.jobs if job.reason != MISSING_JOB]
    if finding.ci is Ci.RED and real:
        return LandedRequest.RED, finding
    if finding.ci is Ci.GREEN:
        return LandedRequest.GREEN, finding
    over = bool(counted) and all(run.word in OVER and run.asked == run.state for run in counted)
    return (LandedRequest.NONE if over or finding.ci is Ci.NEEDS_APPROVAL else LandedRequest.WAIT), finding


METHODS = ("merge", "squash", "rebase", "fast-forward")
STRAIGHT = ("rebase", "fast-forward", "squash")
LINEAR = frozenset({"rebase", "fast-forward"})


def method_of(wanted: str, allowed: Collection[str], *, is_linear: bool = False) -> str:
    """How a request is merged: by the configured method, or by the first one that the forge allows. Empty: by none.
    `is_linear`: without a merge commit."""
    if wanted:
        return wanted if not allowed or wanted in allowed else ""
    methods = STRAIGHT if is_linear else METHODS
    return next((method for method in methods if method in (allowed or methods)), "")

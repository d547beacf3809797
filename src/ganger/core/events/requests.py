"""What can happen to a change request on its way into its target: brought up to date, merged, followed there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpdateIntended:
    """`commit` holds what was tested so far (`before`) and the target's tip `onto`; its push is intended with it.
    `replaces`: it does not build on `before`, so the branch is moved from there, and from nowhere else."""

    task: str
    attempt: int
    number: str
    before: str
    onto: str
    commit: str
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class UpdateConflicted:
    """The request does not fit its target, which is at `onto` now. Its task does it again on that."""

    task: str
    attempt: int
    number: str
    commit: str
    onto: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeIntended:
    """Recorded before the forge is asked to merge exactly `commit` into the target, whose tip is `onto`. `how` is the
    method, or `queue`: the forge's own queue or train tests what it makes of it, and merges that."""

    task: str
    attempt: int
    number: str
    commit: str
    how: str = "merge"
    onto: str = ""


@dataclass(frozen=True, slots=True)
class TrackingMoved:
    """The forge made `commit` of the tested one (`of`), and CI's verdict on it is what counts. `what` is `landed`: it
    is in the target; or `queue`: it is what the forge's queue tried."""

    task: str
    attempt: int
    commit: str
    branch: str
    of: str
    what: str = "landed"


@dataclass(frozen=True, slots=True)
class LandedUnjudged:
    """CI gave no verdict on what landed. Its tree is that of the commit that was tested, so that proof stands."""

    task: str
    attempt: int
    commit: str
    why: str


RequestMerge = UpdateIntended | UpdateConflicted | MergeIntended | TrackingMoved | LandedUnjudged

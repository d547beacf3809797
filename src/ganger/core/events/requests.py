"""What can happen to a change request until it is in its target: updates, merges, and CI there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UpdateIntended:
    """`commit` contains what was tested so far (`before`) and the target's tip `onto`; its push is intended with it.
    `replaces`: it does not build on `before`, so the branch is moved, and only from there."""

    task: str
    attempt: int
    number: str
    before: str
    onto: str
    commit: str
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class UpdateConflicted:
    """The request conflicts with its target, which is now at `onto`. Its task runs again on top of that."""

    task: str
    attempt: int
    number: str
    commit: str
    onto: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeIntended:
    """Recorded before the forge is requested to merge exactly `commit` into the target, whose tip is `onto`. `how` is
    the method, or `queue`: the forge's own queue or train tests the result, and merges that."""

    task: str
    attempt: int
    number: str
    commit: str
    how: str = "merge"
    onto: str = ""


@dataclass(frozen=True, slots=True)
class TrackingMoved:
    """The forge made `commit` from the tested one (`of`), and CI's verdict on it decides. `what` is `landed`: it is in
    the target; or `queue`: the forge's queue tests it."""

    task: str
    attempt: int
    commit: str
    branch: str
    of: str
    what: str = "landed"


@dataclass(frozen=True, slots=True)
class LandedUnjudged:
    """CI gave no verdict on what landed. It has the tree of the tested commit, so that proof stands."""

    task: str
    attempt: int
    commit: str
    why: str


RequestMerge = UpdateIntended | UpdateConflicted | MergeIntended | TrackingMoved | LandedUnjudged

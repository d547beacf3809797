"""What can happen to a change request until it is in its target: updates, merges, and CI there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import AttemptEvent
from ganger.core.events.wording import SHORT, listed


class RequestMerge(AttemptEvent, kind=True):
    """On the way of a change request into its target."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UpdateIntended(RequestMerge):
    """`commit` contains what was tested so far (`before`) and the target's tip `onto`; its push is intended with it.
    `replaces`: it does not build on `before`, so the branch is moved, and only from there."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    number: str
    before: str
    onto: str
    commit: str
    replaces: bool = False

    def sentence(self) -> str:
        return f"{self.task}: updating change request #{self.number} to its target at {self.onto[:SHORT]}"


@dataclass(frozen=True, slots=True)
class UpdateConflicted(RequestMerge):
    """The request conflicts with its target, which is now at `onto`. Its task runs again on top of that."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    number: str
    commit: str
    onto: str
    files: tuple[str, ...] = ()

    def sentence(self) -> str:
        return (
            f"{self.task}: change request #{self.number} conflicts with its target at {self.onto[:SHORT]} in "
            f"{listed(self.files)}; the task runs again on top of it"
        )


@dataclass(frozen=True, slots=True)
class MergeIntended(RequestMerge):
    """Recorded before the forge is requested to merge exactly `commit` into the target, whose tip is `onto`. `how` is
    the method, or `queue`: the forge's own queue or train tests the result, and merges that."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    number: str
    commit: str
    how: str = "merge"
    onto: str = ""

    def sentence(self) -> str:
        if self.how == "queue":
            return (
                f"{self.task}: adding change request #{self.number} to the forge's merge queue at {self.commit[:SHORT]}"
            )
        return f"{self.task}: merging change request #{self.number} at {self.commit[:SHORT]} ({self.how})"


@dataclass(frozen=True, slots=True)
class TrackingMoved(RequestMerge):
    """The forge made `commit` from the tested one (`of`), and CI's verdict on it decides. `what` is `landed`: it is in
    the target; or `queue`: the forge's queue tests it."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    commit: str
    branch: str
    of: str
    what: str = "landed"

    def sentence(self) -> str:
        made = "landed on" if self.what == "landed" else "is tested by the forge's queue for"
        return f"{self.task}: {self.commit[:SHORT]} {made} {self.branch}; CI's verdict on this commit decides"


@dataclass(frozen=True, slots=True)
class LandedUnjudged(RequestMerge):
    """CI gave no verdict on what landed. It has the tree of the tested commit, so that proof stands."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    commit: str
    why: str

    def sentence(self) -> str:
        return f"{self.task}: CI gave no verdict on {self.commit[:SHORT]}, whose tree is the tested one: {self.why}"

"""People at the forge: reviews and their remarks, labels, milestones, statuses of anybody."""

from __future__ import annotations

from dataclasses import dataclass, field

MAINTAINER = "maintainer"
ROBOT = "robot"
# What a review may say, whatever the forge calls it.
STATES = frozenset({"approve", "changes", "comment", "pending"})


@dataclass(frozen=True)
class Remark:
    """A comment on a line."""

    id: int
    path: str
    line: int
    body: str


@dataclass
class Review:
    id: int
    by: str
    state: str
    body: str
    commit: str
    remarks: list[Remark] = field(default_factory=list)
    dismissed: bool = False

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"{self.state} is nothing a review says")


@dataclass(frozen=True)
class Label:
    """Names are no keys: two with one name can be there."""

    id: int
    name: str


@dataclass(frozen=True)
class Milestone:
    id: int
    title: str


@dataclass(frozen=True)
class Status:
    """What somebody said of a commit beside CI. The newest of a context counts."""

    id: int
    sha: str
    context: str
    state: str
    text: str
    url: str


@dataclass
class Comment:
    id: int
    by: str
    body: str


def counted(reviews: list[Review], head: str, *, stale_counts: bool = True) -> dict[str, str]:
    """The last word of each reviewer that is a verdict and stands."""
    found: dict[str, str] = {}
    for one in reviews:
        if one.state in ("approve", "changes"):
            found.pop(one.by, None)
            if not one.dismissed and (stale_counts or one.commit == head):
                found[one.by] = one.state
    return found

"""Reviews of a change on its forge, and their verdict on the commit that will be merged (W08)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

APPROVED, REWORK = "approved", "rework"
_MOST_REMARKS = 40
_MOST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment on one line of the change."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """`verdict` is `approved`, `rework`, or empty for a comment. `commit` is the reviewed one; empty if the forge does
    not report it: then it is the head of the request. `counts`: this person's verdict counts on the forge.
    `dismissed`, `stale`: it no longer does."""

    id: str
    by: str
    verdict: str
    commit: str = ""
    counts: bool = True
    dismissed: bool = False
    stale: bool = False
    text: str = ""
    url: str = ""
    remarks: tuple[Remark, ...] = ()

    @property
    def stands(self) -> bool:
        return self.counts and not self.dismissed and not self.stale


class Opinion(StrEnum):
    """`HELD`: an objection still stands, and a worker has received it already."""

    NONE = ""
    APPROVED = "approved"
    REWORK = "rework"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class ReviewSaid:
    """The verdict of all reviews together, and the reviews that decide it."""

    opinion: Opinion
    reviews: tuple[Review, ...] = ()
    approvals: int = 0

    @property
    def who(self) -> str:
        return ", ".join(dict.fromkeys(review.by for review in self.reviews if review.by))

    @property
    def url(self) -> str:
        return next((review.url for review in self.reviews if review.url), "")


def said_of(
    reviews: Sequence[Review],
    commit: str,
    *,
    same: Collection[str] = (),
    heeded: Collection[str] = (),
    needed: int = 1,
) -> ReviewSaid:
    """The newest verdict of each person counts. `reviews` are sorted, the oldest first; `same` are commits with the
    same files as `commit`; `heeded` are requests for changes that a worker has received. An approval is for one commit
    only; a request for changes stands until the forge reports otherwise."""
    newest = {review.by: review for review in reviews if review.verdict and review.counts}
    standing = [review for review in newest.values() if review.stands]
    against = [review for review in standing if review.verdict == REWORK]
    approved = tuple(
        review
        for review in standing
        if review.verdict == APPROVED and (review.commit in ("", commit) or review.commit in same)
    )
    fresh = tuple(review for review in against if review.id not in heeded)
    if fresh:
        return ReviewSaid(Opinion.REWORK, fresh, len(approved))
    if against:
        return ReviewSaid(Opinion.HELD, tuple(against), len(approved))
    if len(approved) >= max(1, needed):
        return ReviewSaid(Opinion.APPROVED, approved, len(approved))
    return ReviewSaid(Opinion.NONE, (), len(approved))


def too_few(commit: str, approvals: int, needed: int) -> str:
    return f"{commit[:12]} has {approvals} of the {needed} approvals that the forge asks for"


def rework_text(said: ReviewSaid) -> str:
    """For the worker that does it again: each person's comment, then each remark with its place."""
    parts = []
    for review in said.reviews:
        head = f"{review.by} asked for changes" + (f" ({review.url})" if review.url else "")
        words = _cut(review.text)
        listed = [f"- {_place(remark)}: {_cut(remark.text)}" for remark in review.remarks[:_MOST_REMARKS]]
        if len(review.remarks) > _MOST_REMARKS:
            listed.append(f"- and {len(review.remarks) - _MOST_REMARKS} more remarks there")
        parts.append("\n".join([f"{head}:", *([words] if words else []), *listed]))
    return "\n\n".join(parts)[: _MOST_TEXT * 8]


def _place(remark: Remark) -> str:
    return f"{remark.path}:{remark.line}" if remark.line else remark.path


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} …"

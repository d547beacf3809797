"""What people say of a change on its forge, and what that comes to for the commit that is to be merged (W08)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

APPROVED, REWORK = "approved", "rework"
_MOST_REMARKS = 40
_MOST_TEXT = 2000


@dataclass(frozen=True, slots=True)
class Remark:
    """What was said about one line of the change."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """`verdict` is `approved`, `rework`, or empty for one that only says something. `commit` is what was looked at;
    empty where the forge does not tell: then it is what the request stands at. `counts`: the forge takes this person's
    word. `dismissed`, `stale`: it no longer does."""

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
    """`HELD`: somebody still objects, and a worker has been told already."""

    NONE = ""
    APPROVED = "approved"
    REWORK = "rework"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class ReviewSaid:
    """What all of them together come to, and whose reviews make it so."""

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
    """Of each person the newest verdict counts. `reviews` are the oldest first; `same` are commits that show the same
    files as `commit`; `heeded` are the requests for changes that a worker was told of. An approval of another commit
    is none of this one; whoever asks for changes goes on asking until the forge says otherwise."""
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
    """For the worker who does it again: each person's words, then each remark with its place."""
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

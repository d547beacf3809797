"""Reviews of one change on the forge, read before its delivery continues: they may be older than the wait for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ganger.core import events as ev
from ganger.core.control.answers import OPTIONS
from ganger.core.control.reviews import APPROVED, FORGE, PERSON, REVIEW, WANTED
from ganger.core.delivery.forge_reviews import Opinion, ReviewSaid, too_few
from ganger.core.vocabulary import BlockReason
from ganger.engine.attempt_outcome import Waits
from ganger.engine.delivery.context import DeliveryContext
from ganger.engine.delivery.reviews.review import Reviewing

T = TypeVar("T")


class ForgeReviewing:
    def __init__(self, at: DeliveryContext, reviewing: Reviewing) -> None:
        self.at, self.reviewing = at, reviewing

    @property
    def _by_person(self) -> bool:
        return self.reviewing.of == PERSON and self.reviewing.when == "after"

    async def before_review(self) -> None:
        """Before a person is asked, they may have answered already."""
        if self._by_person:
            await self._act_on()

    async def after_review(self) -> None:
        """An agent's approval, or the lack of one, does not outvote people on the forge."""
        if not self._by_person:
            await self._act_on()

    async def check_again(self) -> None:
        """Others were merged first, and people may have reviewed it meanwhile."""
        await self._act_on()

    async def _act_on(self) -> None:
        """The repository's review poller handles requested changes: it sends the waiting task back."""
        now, watch, task = self.at.now, self.at.reviews, self.at.case.task
        if watch is None or now.request is None or not now.request.number or now.request.merged:
            return
        commit = now.commit
        said = await self._patiently(lambda: watch.said(task, commit))
        needed = await self._patiently(watch.needed)
        if said.opinion is Opinion.REWORK:
            await self._ask(commit)
            raise Waits(BlockReason.AWAITING_REVIEW, f"{said.who} asks for changes on the forge ({said.url})")
        if said.opinion is Opinion.HELD and not self._is_approved_here(commit):
            why = f"{said.who} asked for changes on the forge and has not looked again"
            await self._wait(commit, why, f"{why}: approve or dismiss it there, or run ganger approve {task}")
        if said.opinion is Opinion.APPROVED and (self._by_person or needed):
            await self._approve(commit, said)
        elif said.approvals < needed:
            why = too_few(commit, said.approvals, needed)
            await self._wait(commit, why, f"{why}; only people can give them, on the forge")

    def _is_approved_here(self, commit: str) -> bool:
        now = self.at.now
        by_person = now.review_of != self.at.rules.reviewer
        return by_person and now.review == APPROVED and now.reviewed == commit

    async def _approve(self, commit: str, said: ReviewSaid) -> None:
        if not self._is_approved_here(commit):
            await self._ask(commit)
            names = tuple(review.id for review in said.reviews)
            verdict = ev.Reviewed(self.at.case.task, APPROVED, PERSON, "", commit, said.who, said.url, names)
            await self.at.case.record(verdict)

    async def _ask(self, commit: str) -> None:
        now, case = self.at.now, self.at.case
        asked = PERSON if self._by_person else FORGE
        if (now.review, now.reviewed, now.review_of) != (WANTED, commit, asked):
            await case.record(ev.ReviewAsked(case.task, case.number, asked, commit))

    async def _wait(self, commit: str, why: str, told: str) -> None:
        await self._ask(commit)
        request = self.at.now.request
        text = f"{told}; it is at {request.url if request is not None else 'the forge'}"
        raise Waits(BlockReason.AWAITING_REVIEW, why, question=REVIEW, text=text, options=OPTIONS[REVIEW])

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self.at.sending.patiently(
            self.at.case.task, lambda: self.at.unless_stopped(call()), self.at.rules.ci_sec
        )

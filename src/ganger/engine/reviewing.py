"""Review (W08): whether a change must be approved, whether exactly this commit was, and who is asked."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.delivery_changes import rules_of
from ganger.core.vocabulary import BlockReason
from ganger.engine.case import Case
from ganger.engine.settling import Waits
from ganger.ports import Repository


class Reviewing:
    def __init__(self, case: Case, repository: Repository) -> None:
        self.case, self.repository = case, repository
        self.rules = rules_of(case.state, case.task)

    @property
    def of(self) -> str:
        """`person`, `agent`, or empty; a task's own word counts before its repository's."""
        own = self.case.spec.review
        return "" if own == "none" else own or self.rules.review

    @property
    def when(self) -> str:
        return self.rules.review_when if self.rules.delivers else "before"

    async def require(self, commit: str, *, when: str) -> None:
        """Raises Waits until `commit` is approved, Failed when it is sent back."""
        if not self.of or when != self.when:
            return
        known = self.case.now.delivery
        if known is not None and known.review == "approved" and known.reviewed == commit:
            return
        case = self.case
        if known is None or known.review != "wanted" or known.reviewed != commit:
            await case.record(ev.ReviewAsked(case.task, case.number, self.of, commit))
        why = f"{commit[:12]} waits for a review"
        text = f"{why}: ganger approve {case.task}, or ganger rework {case.task} TEXT; git show {commit[:12]} shows it"
        raise Waits(BlockReason.AWAITING_REVIEW, why, question="review", text=text)

"""Review (W08): whether a change must be approved, whether exactly this commit was, and who is asked."""

from __future__ import annotations

from ganger.contracts.parser import neutralise
from ganger.core import events as ev
from ganger.core.control.answers import OPTIONS
from ganger.core.control.reviews import APPROVED, PERSON, REVIEW, REWORK, WANTED
from ganger.core.names import repo_store
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import BlockReason, FailureClass
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.attempt_outcome import Waits
from ganger.engine.delivery.reviews.reviewing_agent import Reviewer, ReviewerOpinion
from ganger.engine.prompts.assemble import quoted
from ganger.engine.resources.run_resources import one_line
from ganger.ports.repository import Repository

_BY_PERSON = f"review asked of {PERSON}"


class Reviewing:
    def __init__(self, case: RunningAttempt, repository: Repository) -> None:
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
        """Raises Waits while `commit` is not approved, Failed when it is sent back."""
        if not self.of or when != self.when:
            return
        known, case = self.case.now.delivery, self.case
        if known is not None and known.review == APPROVED and known.reviewed == commit:
            return
        by_agent = self.of != PERSON
        if known is None or known.review != WANTED or known.reviewed != commit:
            asked = self.rules.reviewer if by_agent else PERSON
            await case.record(ev.ReviewAsked(case.task, case.number, asked, commit))
        why, used_up = f"{commit[:12]} waits for a review", False
        if by_agent and not self._is_persons(commit):
            opinion = await Reviewer(case, self.repository, self.rules.reviewer, commit).opinion()
            if opinion.verdict and not self._is_used_up(opinion):
                await self._act_on(opinion, commit)
                return
            why, used_up = f"{why}: {self._why_not(opinion)}", bool(opinion.verdict)
            await case.record(*opinion.costs, ev.ReviewAsked(case.task, case.number, PERSON, commit))
        said = f" ({one_line(case.now.attempt.summary, 200)})" if case.now.attempt.summary else ""
        told = f"{why}{said}; {self._where(commit)}"
        text = f"{told}; ganger approve {case.task}, or ganger rework {case.task} TEXT"
        options = OPTIONS[REVIEW]
        reason = BlockReason.AWAITING_REVIEW
        raise Waits(reason, why, question=REVIEW, text=text, options=options, escalated=used_up)

    def _is_persons(self, commit: str) -> bool:
        """An agent was asked and gave no verdict."""
        known = self.case.now.delivery
        return known is not None and any(fact.what == _BY_PERSON and fact.commit == commit for fact in known.facts)

    def _is_used_up(self, opinion: ReviewerOpinion) -> bool:
        """The reviewer has sent it back as often as allowed: from then on a person decides on the change as it is."""
        return opinion.verdict == REWORK and self.case.now.counters.reworks >= self.case.state.policy.rework_rounds

    def _why_not(self, opinion: ReviewerOpinion) -> str:
        if not opinion.verdict:
            return f"the reviewer gave no usable answer ({opinion.text})"
        rounds = self.case.state.policy.rework_rounds
        times = f"{rounds + 1} times" if rounds else "and policy.rework_rounds is 0"
        return f"its reviewer sent it back {times}, now for this: {one_line(opinion.text)}"

    def _where(self, commit: str) -> str:
        request = self.case.now.delivery.request if self.case.now.delivery is not None else None
        if request is not None and request.url:
            return f"it is at {request.url}"
        store = self.case.tools.folder.path.parent / repo_store(self.case.spec.repo)
        return f"git --git-dir={store} show {commit[:12]} shows it"

    async def _act_on(self, opinion: ReviewerOpinion, commit: str) -> None:
        """The verdict, its cost and its consequences are one commit, so no lead pays or judges twice."""
        case = self.case
        reviewed = ev.Reviewed(case.task, opinion.verdict, self.rules.reviewer, opinion.text, commit)
        if opinion.verdict == REWORK:
            problem = self._sent_back(opinion.text)
            problem.before = (*opinion.costs, reviewed)
            raise problem
        await case.record(*opinion.costs, reviewed)

    def _sent_back(self, text: str) -> Failed:
        problem = self.case.failed(
            FailureClass.POLICY_VIOLATION, f"review: {text}", f"the reviewer sent it back: {one_line(text)}"
        )
        merged = " It is merged already; this folder holds it." if self.case.now.work.merged else ""
        problem.reminder = f"A reviewer sent your change back.{merged} The reason:\n\n{quoted(neutralise(text))}"
        problem.sent_back = problem.goes_on = True
        return problem

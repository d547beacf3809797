"""A task's change goes to the remote: to the branch all share, or to one of its own."""

from __future__ import annotations

from ganger.engine.delivery_case import DeliveryCase
from ganger.engine.request_commits import RequestCommits
from ganger.engine.sending import PushFailed
from ganger.ports.forge import Behind, Rejected, Sent


class Pushing:
    def __init__(self, at: DeliveryCase) -> None:
        self.at, self.commits = at, RequestCommits(at.case, at.sending)

    async def push(self) -> None:
        task, now = self.at.case.task, self.at.now
        if now.commit and now.pushed == now.commit:
            return
        if self.at.rules.style == "request":
            await self._push_own()
            return
        async with self.at.merging.turn:
            await self.at.sending.patiently(task, lambda: self.at.sending.to_branch(task), self.at.rules.ci_sec)

    async def _push_own(self) -> None:
        """A branch that nobody else pushes to."""
        task = self.at.case.task
        if not self.at.now.branch or not self.at.now.tree:
            branch, commit, tree = await self.at.sending.patiently(task, self.commits.published, self.at.rules.ci_sec)
            await self.at.sending.intend(task, branch, commit, tree)
        known = self.at.now.request
        expected = known.replaces if known is not None and known.branch == self.at.now.branch else ""
        outcome = await self.at.sending.patiently(
            task, lambda: self.at.sending.push(task, replaces=expected), self.at.rules.ci_sec
        )
        if isinstance(outcome, Sent):
            return
        where = f"{self.at.now.branch} of {self.at.outlet.place_of(self.at.now.branch).address}"
        if isinstance(outcome, Rejected):
            raise PushFailed(f"{where} refuses the push: {outcome.why}")
        assert isinstance(outcome, Behind)
        raise PushFailed(f"somebody else pushed {outcome.head[:12]} to {where}")

"""Pushes a task's change to the remote: to the shared branch, or to one of its own."""

from __future__ import annotations

from ganger.engine.delivery.context import DeliveryContext
from ganger.engine.delivery.request_commits import RequestCommits
from ganger.engine.delivery.shared_push import Train
from ganger.engine.merging.push_queue import PushFailed
from ganger.ports.forge import Behind, Rejected, Sent


class Pushing:
    def __init__(self, at: DeliveryContext, train: Train | None) -> None:
        """`train`: to the shared branch; else to one of its own."""
        self.at, self.train, self.commits = at, train, RequestCommits(at.case, at.sending)

    async def push(self) -> None:
        if self.train is not None:
            await self.train.ensure_pushed(self.at)
            return
        now = self.at.now
        if not now.commit or now.pushed != now.commit:
            await self._push_own()

    async def _push_own(self) -> None:
        """Pushes to a branch that no one else uses."""
        task = self.at.case.task
        if not self.at.now.branch or not self.at.now.tree or self.at.now.branch == self.at.rules.branch:
            branch, commit, tree = await self.at.sending.patiently(task, self.commits.published, self.at.rules.ci_sec)
            if branch == self.at.rules.branch:
                await self.at.sending.find(task, branch, commit, tree)
                return
            replaces = await self._replaced(branch, commit)
            await self.at.sending.intend(task, branch, commit, tree, replaces=replaces)
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
        raise PushFailed(f"someone else pushed {outcome.head[:12]} to {where}")

    async def _replaced(self, branch: str, commit: str) -> str:
        """In a linear history, the next commit of a change request may not build on its current one."""
        known, before = self.at.now.request, self.at.now.pushed
        if not self.at.rules.is_linear or known is None or known.merged or known.branch != branch or not before:
            return ""
        return "" if await self.at.sending.repository.is_ancestor(before, commit) else before

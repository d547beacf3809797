"""This run's own commits below a commit of the shared branch, as far as nothing proves them."""

from __future__ import annotations

from ganger.core.delivery.shared_pushes import suspects
from ganger.core.model.ledger import Delivery
from ganger.core.model.records import RunState
from ganger.ports import Repository


class OwnCommits:
    def __init__(self, state: RunState, repo: str, repository: Repository) -> None:
        self.state, self.repo, self.repository = state, repo, repository

    async def by_task(self, sha: str) -> dict[str, list[str]]:
        """For every task with a change in the branch, its commits in `sha` that no green tip holds."""
        return {name: await self.of(name, sha) for name in suspects(self.state, self.repo)}

    async def of(self, name: str, sha: str) -> list[str]:
        proved = self.state.proved.get(self.repo, "")
        merges = (self.state.tasks[name].delivery or Delivery()).merges
        there = [commit for commit in merges if await self.repository.is_ancestor(commit, sha)]
        return [one for one in there if not proved or not await self.repository.is_ancestor(one, proved)]

    async def any_in(self, sha: str) -> bool:
        """Whether what CI says of `sha` may be due to this run."""
        return any((await self.by_task(sha)).values())

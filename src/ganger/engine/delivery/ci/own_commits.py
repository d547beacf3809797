"""A commit of the shared branch: which of this run's commits it holds that nothing proves, and what is below them."""

from __future__ import annotations

from ganger.core.delivery.shared_pushes import suspects
from ganger.core.model.ledger import Delivery
from ganger.core.model.run_state import RunState
from ganger.ports.repository import Repository


class OwnCommits:
    def __init__(self, state: RunState, repo: str, repository: Repository) -> None:
        self.state, self.repo, self.repository = state, repo, repository

    async def proved(self, sha: str) -> str:
        """The newest green tip; empty where the branch was set back below it since, so that it proves nothing here."""
        tip = self.state.pushes.proved.get(self.repo, "")
        in_line = tip and (await self._holds(sha, tip) or await self._holds(tip, sha))
        return tip if in_line else ""

    async def _holds(self, tip: str, commit: str) -> bool:
        return await self.repository.is_ancestor(commit, tip)

    async def by_task(self, sha: str) -> dict[str, list[str]]:
        """For every task with a change in the branch, its commits in `sha` that no green tip holds."""
        return {name: await self.of(name, sha) for name in suspects(self.state, self.repo)}

    async def of(self, name: str, sha: str) -> list[str]:
        proved = await self.proved(sha)
        merges = (self.state.tasks[name].delivery or Delivery()).merges
        there = [commit for commit in merges if await self._holds(sha, commit)]
        return [one for one in there if not proved or not await self._holds(proved, one)]

    async def any_in(self, sha: str) -> bool:
        """Whether what CI says of `sha` may be due to this run."""
        return any((await self.by_task(sha)).values())

    async def below(self, sha: str) -> str:
        """The newest commit in `sha` that others pushed; empty where a green tip holds it."""
        theirs, proved = self.state.pushes.theirs.get(self.repo, ""), await self.proved(sha)
        if not theirs or not await self._holds(sha, theirs):
            return ""
        return "" if proved and await self._holds(proved, theirs) else theirs

    async def told(self, sha: str) -> str:
        """For people: where the branch is red without this run."""
        base = self.state.pushes.bases.get(self.repo)
        below = base.commit if base is not None and base.verdict == "red" else await self.below(sha)
        if not below:
            return "was red without any change of this run"
        if await self.any_in(below):
            return f"is red at {below[:12]} also without this run's changes"
        return f"was red at {below[:12]} before this run's changes came"

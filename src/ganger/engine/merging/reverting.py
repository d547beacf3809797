"""Commits that revert a task's change on the run's branch: made by Ganger, without an agent.

The same change on the same head at the same moment gives the same commits, so the next lead makes them again or finds
them merged.
"""

from __future__ import annotations

from collections.abc import Sequence

from ganger.core import events as ev
from ganger.core.model.ledger import Delivery
from ganger.core.times import unix_time
from ganger.core.vocabulary import FailureClass
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.merging.commit_messages import revert_message
from ganger.engine.merging.merge_queue import MergeQueue
from ganger.ports.repository import Conflict


class Reverting:
    def __init__(self, case: RunningAttempt, merging: MergeQueue) -> None:
        self.case, self.merging, self.repository = case, merging, merging.repository

    @property
    def now(self) -> Delivery:
        return self.case.now.delivery or Delivery()

    @property
    def is_due(self) -> bool:
        return self.now.prepares_revert

    @property
    def is_under_way(self) -> bool:
        """True also once the revert is merged and on its way to the remote."""
        return self.now.revert is not None

    async def make(self) -> None:
        """The revert becomes the attempt's change, as if an agent had made it. It is empty where someone else already
        reverted the change."""
        case, now = self.case, self.now
        assert now.revert is not None
        files = case.now.work.change.files if case.now.work.change is not None else ()
        async with self.merging.turn:
            head = await self.merging.newest_head()
            there = [one for one in now.standing if await self.repository.is_ancestor(one, head)]
            message = revert_message(case.state.run_id, case.task, there)
            top = await self._at_once(there, head, message) or await self._one_by_one(there, head, message)
        await case.record(ev.ChangeTaken(case.task, case.number, head, top, files))

    async def _at_once(self, there: Sequence[str], head: str, message: str) -> str:
        """The change and its fixes as one commit; empty where they cannot be combined without other commits between
        them."""
        whole = await self.repository.together(there) if there else Conflict((), "")
        if isinstance(whole, Conflict):
            return ""
        back = await self.repository.take_back(whole.commit, head, message, self._moment)
        return "" if isinstance(back, Conflict) else back.commit

    async def _one_by_one(self, there: Sequence[str], head: str, message: str) -> str:
        """The newest first; the merge queue makes one commit of them."""
        for commit in reversed(there):
            back = await self.repository.take_back(commit, head, message, self._moment)
            if isinstance(back, Conflict):
                raise self.conflict(back, commit)
            head = back.commit
        return head

    @property
    def _moment(self) -> float:
        """When the revert was chosen, so that every lead makes the same commit."""
        return unix_time(self.now.revert.at) if self.now.revert is not None else 0.0

    def conflict(self, met: Conflict, commit: str = "") -> Failed:
        files = ", ".join(met.files[:10])
        what = f"reverting {commit[:12]}" if commit else "the revert"
        detail = f"{what} conflicts with what came later in {files}"
        return self.failed(self.case.failed(FailureClass.MERGE_CONFLICT, files, detail))

    def failed(self, problem: Failed) -> Failed:
        """A worker takes up nothing of it."""
        problem.keep_changes, problem.goes_on, problem.files = True, False, ()
        return problem

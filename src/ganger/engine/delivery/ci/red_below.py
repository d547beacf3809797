"""A commit in the target that is red by what another task landed below it, and that task is mending it.

Every later commit of a branch has the faults of those before it. Whoever did not bring a fault in waits until it is
mended.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from ganger.core.logs.ci_logs import faults
from ganger.core.model.ledger import Delivery
from ganger.core.vocabulary import TaskStatus
from ganger.engine.attempt_context import Case
from ganger.engine.merging.push_queue import Sending

_GOES_ON = (TaskStatus.PENDING, TaskStatus.RUNNING)


class RedBelow:
    def __init__(self, case: Case, sending: Sending) -> None:
        self.case, self.sending, self.state = case, sending, case.state
        self.repository, self.repo = sending.repository, case.spec.repo
        self._known: dict[str, frozenset[str]] = {}

    async def culprit(self, sha: str, log: str) -> str:
        """The task that brought the faults of `log` in at or below `sha` and is at it; empty where there is none.
        Of two that are red by one commit each has its own turn to mend it first."""
        self._known.pop(log, None)
        own_turn_over = any(one.task == self.case.task and one.commit == sha for one in self.state.verdicts)
        for verdict in self.state.verdicts:
            if verdict.green or verdict.repo != self.repo or verdict.task == self.case.task:
                continue
            if not await self._mends(verdict.task, sha, log) or (verdict.commit == sha and not own_turn_over):
                continue
            if await self.repository.is_ancestor(verdict.commit, sha):
                return verdict.task
        return ""

    def _delivery(self, task: str) -> Delivery:
        known = self.state.tasks.get(task)
        return known.delivery if known is not None and known.delivery is not None else Delivery()

    async def _mends(self, task: str, sha: str, log: str) -> bool:
        """Whether it was last red by everything that `log` tells of, and something is being done about it."""
        now = self._delivery(task)
        if task not in self.state.tasks or self.state.tasks[task].status not in _GOES_ON:
            return False
        if now.needs_no_ci or not (now.fixing or now.commit != sha):
            return False
        own, others = await self._faults(log), await self._faults(now.log)
        return bool(own) and own <= others

    async def _faults(self, log: str) -> frozenset[str]:
        if log not in self._known:
            self._known[log] = await asyncio.to_thread(_read, self.case.tools.folder.path / log) if log else frozenset()
        return self._known[log]

    async def is_mended(self, sha: str, culprit: str, log: str, most_sec: float) -> bool:
        """Waits. False where nobody mended it."""
        clock, since, looked = self.case.tools.clock, self.case.tools.clock.monotonic(), ""
        while clock.monotonic() - since < most_sec:
            proved = self.state.proved.get(self.repo, "")
            if proved != looked:
                looked = proved
                if await self._holds(proved, sha):
                    return True
            if not await self._mends(culprit, sha, log):
                newest = next((one.commit for one in reversed(self.state.verdicts) if one.task == culprit), "")
                return await self._holds(newest, sha) or self._is_done(culprit)
            await self.sending.pause(self.sending.outlet.poll_sec)
        return False

    async def _holds(self, commit: str, sha: str) -> bool:
        return commit not in ("", sha) and await self.repository.is_ancestor(sha, commit)

    def _is_done(self, task: str) -> bool:
        known, now = self.state.tasks.get(task), self._delivery(task)
        return known is not None and (known.status is TaskStatus.DONE or now.needs_no_ci)


def _read(path: Path) -> frozenset[str]:
    """What cannot be read tells of nothing."""
    try:
        return faults(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return frozenset()

"""Sets the run's branch back to the remote's branch, without what a maintainer removed there.

What was merged on top is merged again from there and verified like any merge, so the history that is pushed next does
not hold what was removed. A lead that dies at any point does no harm: the decision stands until the move of the branch
is recorded, and after the intent the branch shows whether it moved.
"""

from __future__ import annotations

from collections.abc import Sequence

from ganger.core import events as ev
from ganger.core.control.removals import go_on, is_skipped, restored, restored_tasks
from ganger.core.model.records import Removal
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import TaskStatus, WorkerVerdict
from ganger.engine.merging.push_queue import PushQueue
from ganger.errors import ForgeError, GangerError
from ganger.ports.repository import Conflict


class SetBack:
    """The caller holds the branch's turn (`Merging.turn`) for whatever moves it."""

    def __init__(self, repo: str, sending: PushQueue) -> None:
        self.repo, self.sending = repo, sending
        self.state, self.repository = sending.state, sending.repository
        self.journal, self.branch = sending.tools.journal, sending.state.chains.rules[repo].branch

    @property
    def due(self) -> Removal | None:
        """What a person decided to leave out, until the run's branch is without it."""
        known = self.state.branches.removals.get(self.repo)
        return known if known is not None and known.leaves_out else None

    async def lost(self, tip: str) -> list[str]:
        """Tasks with a pushed commit that is not in `tip`, in the order of their merges."""
        last = self.state.pushes.tips.get(self.repo, "")
        gone = {name: ids for name, ids in (await self._gone(tip)).items() if not _is_empty(self.state.tasks[name])}
        found = [n for n, ids in gone.items() if await self._any_in(ids, last) and not await self._is_rewritten(n, tip)]
        return sorted(found, key=lambda name: (self.sending.delivery(name).place, self.state.index.rank[name]))

    async def undecided(self, tip: str) -> list[str]:
        """Those about which no one has decided."""
        return [name for name in await self.lost(tip) if not self._is_decided(name)]

    async def told(self, tip: str, names: Sequence[str]) -> str:
        """What of these tasks' changes is no longer in the branch."""
        gone = await self._gone(tip)
        part = [name for name in names if tip and len(gone[name]) < len(self.sending.delivery(name).merges)]
        whole = [name for name in names if name not in part]
        parts = [f"a commit of {name} is gone, and an earlier one stays" for name in part]
        return "; with it ".join(["", *([f"the change of {', '.join(whole)} is gone"] if whole else []), *parts])

    async def at_once(self) -> None:
        """Sets the branch back where the remote answers and everything is decided; otherwise the next push does."""
        if self.due is None or self.sending.is_away():
            return
        try:
            tip = await self.sending.gate.unless_stopped(self.sending.outlet.remote.fetch(self.branch))
        except ForgeError:
            return
        if tip and not await self.undecided(tip):
            await self.carry_out(tip)

    async def carry_out(self, tip: str) -> bool:
        """False while a task that is left out has not ended yet."""
        due = self.due
        if due is None:
            return True
        lost = await self.lost(tip)
        if not self.state.index.running.isdisjoint(lost):
            return False
        back = [name for name in due.tasks if name not in lost and is_skipped(self.state, name)]
        last = self.state.pushes.tips.get(self.repo, "")
        if last and await self.repository.is_ancestor(last, tip):
            await self.journal.record(*restored(self.state, self.repo, back))
            return True
        gone = await self._gone(tip)
        head = await self.repository.head()
        commits = tuple(dict.fromkeys(one for found in gone.values() for one in found))
        await self.journal.record(ev.SetBackIntended(self.repo, head, tip, commits, tuple(lost)))
        await self._move(head, tip)
        moved = ev.HeadMoved(self.repo, head, tip, f"what was removed from {self.branch} is left out")
        on = go_on(self.state, self.repo, lost, "the run's branch is set back")
        await self.journal.record(moved, *restored_tasks(self.state, back), *on)
        return True

    async def _move(self, head: str, tip: str) -> None:
        if not await self.repository.move_head(head, tip):
            raise GangerError(
                f"the branch of run {self.state.run_id} is no longer at {head[:12]}",
                hint="someone moved it; restore it with git update-ref, or start a new run",
                code="BRANCH_MOVED",
            )

    async def _gone(self, tip: str) -> dict[str, list[str]]:
        """For each task, its own commits that `tip` does not hold."""
        found: dict[str, list[str]] = {}
        for name, task in list(self.state.tasks.items()):
            if self.state.specs[name].repo == self.repo and task.delivery is not None:
                if task.status is TaskStatus.DONE and _is_empty(task):
                    continue
                gone = [one for one in task.delivery.merges if not tip or not await self._is_in(one, tip)]
                if gone:
                    found[name] = gone
        return found

    async def _is_rewritten(self, name: str, tip: str) -> bool:
        """Whether `tip` holds its change as another commit, as after a rebase: then nothing was removed."""
        task = self.state.tasks[name]
        change, merges = task.work.change, self.sending.delivery(name).merges
        if not tip or change is None or len(merges) != 1:
            return False
        put = await self.repository.rebase(change.commit, change.base, tip)
        return not isinstance(put, Conflict) and put.commit == tip

    async def _any_in(self, commits: list[str], tip: str) -> bool:
        return bool(tip) and any([await self._is_in(one, tip) for one in commits])

    async def _is_in(self, commit: str, tip: str) -> bool:
        return await self.repository.is_ancestor(commit, tip)

    def _is_decided(self, name: str) -> bool:
        task = self.state.tasks[name]
        ending = task.worker is not None and task.worker.verdict is WorkerVerdict.SKIPPED
        return is_skipped(self.state, name) or (task.status is TaskStatus.RUNNING and ending)


def _is_empty(task: TaskState) -> bool:
    """A task that changed nothing counts another task's commit as its own."""
    return task.work.change is not None and task.work.change.commit == task.work.change.base

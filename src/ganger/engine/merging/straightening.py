"""Linear history: rebases the run's own commits onto what others pushed.

A lead that dies at any point does no harm. Before the intent nothing happened; after it the branch shows whether it
moved, and the same commits rebased onto the same tip give the same commits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.times import unix_time
from ganger.engine.merging.commit_messages import join_message
from ganger.engine.merging.push_queue import PushQueue
from ganger.ports.repository import Conflict, Rebased, Repository

_MOST_COMMITS = 100_000


@dataclass(frozen=True, slots=True)
class Placed:
    """`commits` maps each commit of a line to the one that replaces it. A commit that became empty maps to the one
    below."""

    tip: str
    tree: str
    commits: tuple[tuple[str, str], ...] = ()


async def placed(
    repository: Repository, tip: str, onto: str, message: str = "", at: float = 0.0, *, yields: bool = False
) -> Placed | Conflict:
    """Rebases what `tip` has and `onto` lacks, commit by commit. `yields`: in a conflict, the side of `onto` wins;
    `message` and `at` are for the trial merges that find this out."""
    top, pairs = Rebased(onto, await repository.tree_of(onto)), []
    line = await repository.line(onto, tip, _MOST_COMMITS)
    before = await repository.fork_point(line[0].commit, onto) if line else ""
    for one in line:
        put = await repository.rebase(one.commit, before, top.commit)
        if isinstance(put, Conflict):
            if not yields:
                return put
            joined = await repository.join(one.commit, top.commit, message, at, yields=True)
            assert isinstance(joined, Rebased)
            put = await repository.like(one.commit, joined.tree, top.commit)
        pairs.append((one.commit, put.commit))
        top, before = put, one.commit
    return Placed(top.commit, top.tree, tuple(pairs))


class Straightening:
    """The caller holds the branch's turn (`Merging.turn`)."""

    def __init__(self, repo: str, sending: PushQueue) -> None:
        self.repo, self.sending = repo, sending
        self.state, self.repository = sending.state, sending.repository

    async def onto(self, task: str, target: str, why: str, *, yields: bool = False) -> Conflict | None:
        """Moves the run's branch, and maps the tasks' commits to their new places; returns the conflict where there is
        one."""
        head = await self.repository.head()
        message = join_message(self.state.run_id, self.state.chains.rules[self.repo].branch, target)
        moment = unix_time(self.state.tasks[task].attempt.started_at)
        found = await placed(self.repository, head, target, message, moment, yields=yields)
        if isinstance(found, Conflict):
            return found
        if found.tip == head:
            return None
        if found.commits:
            intended = ev.RebaseIntended(self.repo, head, found.tip, target, found.commits)
            await self.sending.tools.journal.record(intended)
        await self.sending.move(task, head, found.tip, why)
        return None

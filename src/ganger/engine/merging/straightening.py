"""History without merges: the run's own commits once more, on top of what others pushed.

Dying at any point is harmless. Before the intent nothing happened; after it the branch tells whether it moved, and the
same commits on the same tip are the same commits again.
"""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.times import unix_time
from ganger.engine.merging.commit_messages import join_message
from ganger.engine.merging.push_queue import PushQueue
from ganger.ports import Conflict, Rebased, Repository

_MOST_COMMITS = 100_000


@dataclass(frozen=True, slots=True)
class Placed:
    """`commits` are those of a line, each with the one that has its place now. What changes nothing any more has the
    place of the one below."""

    tip: str
    tree: str
    commits: tuple[tuple[str, str], ...] = ()


async def placed(
    repository: Repository, tip: str, onto: str, message: str = "", at: float = 0.0, *, yields: bool = False
) -> Placed | Conflict:
    """What `tip` has and `onto` has not, commit by commit on `onto`. `yields`: in a conflict, what is there counts;
    `message` and `at` are for the joins that find this out."""
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
        """Moves the run's branch; the conflict where that does not go. Tasks' commits are followed to their places."""
        head = await self.repository.head()
        message = join_message(self.state.run_id, self.state.repos[self.repo].branch, target)
        moment = unix_time(self.state.tasks[task].started_at)
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

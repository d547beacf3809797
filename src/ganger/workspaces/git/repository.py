"""The run's git repository: its branch, the folders made from it, and the only way in which changes come in."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from ganger.contracts.task_result import Write
from ganger.core.names import file_stem
from ganger.errors import DiskFullError, GangerError
from ganger.local.atomic import sync_folder
from ganger.ports.changes import Rules, Touched
from ganger.ports.repository import Conflict, Place, Rebased, Taken
from ganger.workspaces.files.copying import bytes_of
from ganger.workspaces.files.removal import Bin, discard, throw_away
from ganger.workspaces.git import landing as leftovers
from ganger.workspaces.git.bare_repo import BareRepo
from ganger.workspaces.git.checkouts import BRANCH, Checkouts, Pool, Recipe, Template, fresh_name, put_in_place
from ganger.workspaces.git.commit import Attempts
from ganger.workspaces.git.git import GitCall, check_version, damaged, failed, is_object, require_object
from ganger.workspaces.git.landing import Leftover
from ganger.workspaces.git.objects import (
    Commit,
    ObjectReader,
    Who,
    ci_texts,
    diff_text,
    files_between,
    files_of,
    write_commit,
)
from ganger.workspaces.git.rebase import (
    first_parents,
    fork_point,
    is_ancestor,
    is_straight,
    join,
    join_yielding,
    known,
    like,
    rebase,
    take_back,
    together,
)
from ganger.workspaces.git.settings import AttemptPlace, GitSettings, RunRefs
from ganger.workspaces.refusals import failure_for

__all__ = ["GitRepository", "GitSettings", "Leftover"]

P = ParamSpec("P")
T = TypeVar("T")


_MOST_WAITING = 32
_ROOM_FOR_WAITING = 4 << 30


class GitRepository:
    """Blocking work runs in threads: as many checkouts at once as there are processors."""

    def __init__(self, settings: GitSettings) -> None:
        self._settings = settings
        self._bare = BareRepo(settings.project, settings.store, shared=settings.owner is not None)
        self._git = self._bare.git
        self._refs = RunRefs(settings.run)
        self._bin = Bin(_MOST_WAITING, settings.min_free_bytes + _ROOM_FOR_WAITING)
        self._attempts = Attempts(settings, self._bare, self._refs)
        self._checkouts = Checkouts(
            Recipe(
                store=settings.store,
                project=settings.project,
                author=Who.parse(settings.author),
                linked=settings.linked,
                copied=settings.copied,
                owner=settings.owner,
            )
        )
        self._pool = Pool(self._checkouts, settings.pool, settings.warm)
        self._template = Template(self._checkouts, settings.pool)
        self._turns: dict[str, threading.Lock] = {}
        self._making = 0
        self._filler: asyncio.Task[None] | None = None
        cores = os.cpu_count() or 2
        self._makers = ThreadPoolExecutor(max_workers=cores, thread_name_prefix="ganger-checkout")
        self._others = ThreadPoolExecutor(max_workers=cores + 4, thread_name_prefix="ganger-git")

    @property
    def shared(self) -> tuple[Path, ...]:
        """What every workspace reads besides its own folder: the objects it borrows and the folders it links to."""
        linked = [self._settings.project / name for name in self._settings.linked]
        return (*self._bare.object_folders(), *(one.resolve() for one in linked if one.is_dir()))

    async def open(self) -> str:
        return await self._do(self._open)

    async def head(self) -> str:
        return await self._do(self._head)

    async def has(self, commit: str) -> bool:
        return is_object(commit) and bool(await self._do(self._git.resolve, f"{commit}^{{commit}}"))

    async def is_ancestor(self, commit: str, of: str) -> bool:
        return await self._do(is_ancestor, self._git, commit, of)

    async def tree_of(self, commit: str) -> str:
        return await self._do(self._tree_of, require_object(commit))

    async def move_head(self, expected: str, new: str) -> bool:
        return await self._do(self._move_head, require_object(expected), require_object(new))

    async def place(self, task: str, attempt: int, work: str = "") -> Place:
        place = await self._make(self._place, AttemptPlace.of(task, attempt), require_object(work) if work else "")
        self._fill_pool(place.base)
        return place

    async def take(self, task: str, attempt: int, writes: Sequence[Write], rules: Rules, message: str) -> Taken:
        return await self._do(self._attempts.take, AttemptPlace.of(task, attempt), writes, rules, message)

    async def save(
        self, task: str, attempt: int, message: Callable[[Sequence[Touched]], str]
    ) -> tuple[str, tuple[str, ...]]:
        return await self._do(self._attempts.save, AttemptPlace.of(task, attempt), message)

    async def rebase(self, commit: str, base: str, onto: str) -> Rebased | Conflict:
        return await self._do(rebase, self._git, *(require_object(one) for one in (commit, base, onto)))

    async def empty_commit(self, parent: str, message: str, at: float) -> Rebased:
        return await self._do(self._empty_commit, require_object(parent), message, at)

    async def join(
        self, ours: str, theirs: str, message: str, at: float, *, yields: bool = False
    ) -> Rebased | Conflict:
        work = self._join_yielding if yields else self._join
        return await self._do(work, require_object(ours), require_object(theirs), message, at)

    async def fork_point(self, one: str, other: str) -> str:
        return await self._do(fork_point, self._git, one, other)

    async def line(self, base: str, tip: str, most: int = 200) -> Sequence[Rebased]:
        return await self._do(first_parents, self._git, base, tip, most)

    async def like(self, commit: str, tree: str, onto: str) -> Rebased:
        return await self._do(like, self._git, *(require_object(one) for one in (commit, tree, onto)))

    async def is_straight(self, base: str, tip: str) -> bool:
        return await self._do(is_straight, self._git, base, tip)

    async def take_back(self, commit: str, onto: str, message: str, at: float) -> Rebased | Conflict:
        return await self._do(self._take_back, require_object(commit), require_object(onto), message, at)

    async def together(self, commits: Sequence[str]) -> Rebased | Conflict:
        return await self._do(together, self._git, [require_object(one) for one in commits])

    async def diff_text(self, base: str, commit: str, most_bytes: int) -> str:
        return await self._do(diff_text, self._git, base, commit, most_bytes)

    async def files_of(self, commit: str) -> Sequence[str]:
        return await self._do(files_of, self._git, commit)

    async def files_between(self, base: str, tip: str) -> Sequence[str]:
        return await self._do(files_between, self._git, base, tip)

    async def ci_texts(self, commit: str) -> Sequence[str]:
        return await self._do(ci_texts, self._git, commit)

    async def message(self, commit: str) -> str:
        return await self._do(self._message, require_object(commit))

    async def check(self) -> None:
        """Raises where git finds the repository damaged. Reads every object."""
        if found := await self.fsck():
            raise damaged(self._settings.store, found)

    async def release(self, task: str, attempt: int) -> None:
        await self._do(self._release, AttemptPlace.of(task, attempt))

    async def checkout(self, name: str, commit: str) -> Path:
        folder = await self._make(self._checkout, name, require_object(commit))
        self._fill_pool(commit)
        return folder

    async def drop_checkout(self, name: str) -> None:
        await self._do(self._drop_checkout, name)

    async def sweep(self) -> None:
        """Removes what a killed process left: half-made, discarded and check folders. Workspaces stay."""
        await self._do(self._sweep)

    async def clear(self, needed: Collection[tuple[str, int]]) -> None:
        await self._do(self._clear, {AttemptPlace.of(task, attempt).name for task, attempt in needed})

    async def leftovers(self) -> list[Leftover]:
        """Every existing workspace, its size, and whether its work is stored elsewhere."""
        return await self._do(self._leftovers)

    async def merged_tasks(self) -> Mapping[str, Mapping[str, str]]:
        """The trailers of every commit of the run's branch, oldest first."""
        return await self._do(self._merged_tasks)

    async def uncommitted(self) -> tuple[str, ...]:
        """Paths of the user's checkout that differ from its commit, and so are not part of the run."""
        return await self._do(self._bare.uncommitted)

    async def export(self, commit: str, into: Path, ref: str) -> None:
        """Stores a commit in the user's repository under `ref`, without running anything from it."""
        await self._do(self._bare.export, commit, into, ref)

    async def fsck(self) -> str:
        """Errors git finds in the repository; "" when there are none."""
        return await self._do(self._bare.fsck)

    async def used_bytes(self) -> int:
        """The space taken by the repository and all folders made from it."""
        settings = self._settings
        return await self._do(
            lambda: sum(map(bytes_of, (settings.store, settings.work, settings.checks, settings.pool)))
        )

    async def close(self) -> None:
        """Stops the threads after their current work."""
        if self._filler is not None:
            self._filler.cancel()
            await asyncio.gather(self._filler, return_exceptions=True)
        await asyncio.to_thread(self._makers.shutdown)
        await asyncio.to_thread(discard, self._settings.pool)
        await asyncio.to_thread(self._bin.empty)
        await asyncio.to_thread(self._others.shutdown)

    async def _do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._others, lambda: _told(work, *args, **kwargs))

    async def _make(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._making += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._makers, lambda: _told(work, *args, **kwargs))
        finally:
            self._making -= 1

    def _fill_pool(self, commit: str) -> None:
        """Makes folders in the background, only while no request waits for a folder."""
        if self._settings.warm and (self._filler is None or self._filler.done()):
            self._filler = asyncio.create_task(self._fill(commit))

    async def _fill(self, commit: str) -> None:
        while self._pool.wants_more() and not self._making:
            before = self._pool.size
            await asyncio.get_running_loop().run_in_executor(self._makers, self._pool.fill, commit)
            if self._pool.size <= before:
                return

    def _open(self) -> str:
        check_version()
        self._require_space(self._settings.store.parent)
        self._bare.make()
        self._bare.free_locks(self._refs)
        self._bare.drop_torn(self._refs)
        head = self._git.resolve(self._refs.branch)
        if head:
            return head
        start = self._git.resolve(self._refs.beginning) or self._bare.feed(self._refs.beginning)
        self._bare.set_ref(self._refs.branch, start)
        return start

    def _head(self) -> str:
        head = self._git.resolve(self._refs.branch)
        if not head:
            raise GangerError(
                f"the branch of the run {self._settings.run!r} is not in {self._settings.store}",
                hint="it was removed by hand; start a new run",
                code="GIT_FAILED",
            )
        return head

    def _tree_of(self, commit: str) -> str:
        found = self._git.resolve(f"{commit}^{{tree}}")
        if not found:
            raise damaged(self._settings.store, f"the commit {commit[:12]} is not in it")
        return found

    def _empty_commit(self, parent: str, message: str, at: float) -> Rebased:
        """Equal arguments give the same commit, so a repeated call makes no second one."""
        tree, who = self._tree_of(parent), Who.parse(self._settings.author).at(at)
        message = self._settings.signed(message)
        return self._kept(Rebased(write_commit(self._git, Commit(tree, (parent,), who, who, message)), tree))

    def _join(self, ours: str, theirs: str, message: str, at: float) -> Rebased | Conflict:
        who = Who.parse(self._settings.author).at(at)
        both = join(self._git, ours, theirs, self._settings.signed(message), who)
        return both if isinstance(both, Conflict) else self._kept(both)

    def _take_back(self, commit: str, onto: str, message: str, at: float) -> Rebased | Conflict:
        who = Who.parse(self._settings.author).at(at)
        back = take_back(self._git, commit, onto, message, who)
        return back if isinstance(back, Conflict) else self._kept(back)

    def _join_yielding(self, ours: str, theirs: str, message: str, at: float) -> Rebased | Conflict:
        joined = self._join(ours, theirs, message, at)
        if not isinstance(joined, Conflict):
            return joined
        who = Who.parse(self._settings.author).at(at)
        return self._kept(join_yielding(self._git, ours, theirs, self._settings.signed(message), who))

    def _kept(self, made: Rebased) -> Rebased:
        self._bare.set_ref(self._refs.made(made.commit), made.commit)
        return made

    def _message(self, commit: str) -> str:
        with ObjectReader(self._git) as reader:
            return known(self._git, reader, commit).message

    def _move_head(self, expected: str, new: str) -> bool:
        call = GitCall(("update-ref", self._refs.branch, new, expected), "moving the branch", fine=(0, 1, 128))
        answer = self._git.call(call)
        now = new if answer.code == 0 else self._head()
        if now == expected != new:
            raise failed(call, answer.err)
        sync_folder((self._settings.store / self._refs.branch).parent)
        return now == new

    def _place(self, attempt: AttemptPlace, work: str) -> Place:
        folder = self._attempts.folder(attempt)
        with self._turn(attempt.name):
            if self._attempts.is_planted(attempt):
                discard(folder)
            if os.path.lexists(folder):
                return Place(folder, self._attempts.origin(attempt))
            commit = self._head()
            filled = self._with_work(work, commit) if work else commit
            made = self._made(self._settings.work, attempt.name, filled)
            index = self._attempts.index(attempt, commit)
            index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if filled == commit:
                shutil.copy2(made / ".git" / "index", index)
            else:
                self._git.call(GitCall(("read-tree", commit), "noting the workspace's commit", index=index))
                (made / ".git" / BRANCH).write_text(f"{commit}\n")
            # A durable ref would flush the whole new folder to the disk; the index's name holds the commit as well.
            self._bare.set_ref(self._refs.at(attempt), commit, durable=False)
            put_in_place(made, folder)
            return Place(folder, commit, fresh=True, holds_work=filled != commit)

    def _with_work(self, work: str, head: str) -> str:
        """The head with an earlier change on top; the head itself where that change is gone or does not apply."""
        if not self._git.resolve(f"{work}^{{commit}}"):
            return head
        with ObjectReader(self._git) as reader:
            parents = known(self._git, reader, work).parents
        put = rebase(self._git, work, parents[0], head) if len(parents) == 1 else None
        return put.commit if isinstance(put, Rebased) else head

    def _made(self, above: Path, name: str, commit: str) -> Path:
        """A complete folder under a temporary name."""
        if os.path.lexists(above) and not above.is_dir():
            # An agent without a sandbox put something else there, which would block every later workspace.
            discard(above)
        self._require_space(above)
        made = fresh_name(above, name)
        if self._pool.take(made, commit) or self._template.copy(made, commit):
            return made
        try:
            self._checkouts.make(made, commit)
        except (OSError, GangerError):
            discard(made)
            raise
        return made

    def _release(self, attempt: AttemptPlace) -> None:
        with self._turn(attempt.name):
            gone = throw_away(self._attempts.folder(attempt), self._settings.work / ".trash")
            leftovers.remove_indexes(self._settings.work, attempt.name)
            # It is not durable, and a power cut would leave an invalid ref.
            (self._settings.store / self._refs.at(attempt)).unlink(missing_ok=True)
        if gone is not None:
            self._bin.add(gone)

    def _checkout(self, name: str, commit: str) -> Path:
        folder = self._settings.checks / file_stem(name)
        with self._turn(f"check {name}"):
            made = self._made(self._settings.checks, folder.name, commit)
            old = throw_away(folder, self._settings.checks / ".trash")
            put_in_place(made, folder)
        if old is not None:
            self._bin.add(old)
        return folder

    def _drop_checkout(self, name: str) -> None:
        with self._turn(f"check {name}"):
            gone = throw_away(self._settings.checks / file_stem(name), self._settings.checks / ".trash")
        if gone is not None:
            self._bin.add(gone)

    def _sweep(self) -> None:
        leftovers.sweep(self._settings.work)
        leftovers.sweep(self._settings.checks, everything=True)
        leftovers.remove_stale_indexes(self._settings.work)
        leftovers.remove_stale_objects(self._settings.store, self._settings.now())
        self._pool.sweep()

    def _clear(self, needed: set[str]) -> None:
        """A lead that was killed after a verdict may not have removed the workspace."""
        self._sweep()
        if all(one.name in needed for one in leftovers.workspaces_in(self._settings.work)):
            return
        for left in self._leftovers():
            attempt = AttemptPlace(left.task, left.attempt)
            if attempt.name not in needed and left.state is not leftovers.KeptWork.UNSAVED:
                self._release(attempt)

    def _merged_tasks(self) -> Mapping[str, Mapping[str, str]]:
        start = self._git.resolve(self._refs.beginning)
        return leftovers.trailers_between(self._git, start, self._head())

    def _leftovers(self) -> list[Leftover]:
        merged = {
            f"{file_stem(one.get('Ganger-Task', ''))}.{one.get('Ganger-Attempt', '')}"
            for one in self._merged_tasks().values()
        }
        return [
            Leftover(
                folder=self._attempts.folder(one),
                task=one.stem,
                attempt=one.number,
                bytes=bytes_of(self._attempts.folder(one)),
                state=self._attempts.kept(one, merged=one.name in merged),
            )
            for one in leftovers.workspaces_in(self._settings.work)
        ]

    @contextmanager
    def _turn(self, name: str) -> Iterator[None]:
        with self._turns.setdefault(name, threading.Lock()):
            yield

    def _require_space(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free < self._settings.min_free_bytes:
            raise DiskFullError(
                f"only {free >> 20} MB are free for {folder}; {self._settings.min_free_bytes >> 20} MB are kept free",
                hint="free some space (`ganger clean` says what it can free), then run the same command again",
            )


def _told(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Turns an operating-system error into an error with a next step."""
    try:
        return work(*args, **kwargs)
    except OSError as problem:
        place = str(problem.filename or "a workspace")
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise failure_for(place, problem) from problem
        raise GangerError(
            f"{place}: {problem.strerror or problem}; the disk or the system refuses",
            hint="check that place, its owner and the disk, then run the same command again",
            code="IO_ERROR",
        ) from problem

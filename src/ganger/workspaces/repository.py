"""The run's git repository: its branch, its attempts' workspaces, and the one door through which their changes come."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from ganger.contracts.task_result import Write
from ganger.core.names import file_stem
from ganger.errors import DiskFullError, GangerError
from ganger.ports import Change, Conflict, Place, Rebased, Rules, Taken, Touched
from ganger.workspaces.bare import Bare, sync_folder
from ganger.workspaces.changes import WriteRequest, WriteRules, plan_changes
from ganger.workspaces.checkouts import Checkouts, Recipe, fresh_name, put_in_place
from ganger.workspaces.git import RunRefs, check_version, is_object, require_object
from ganger.workspaces.merging import rebase
from ganger.workspaces.objects import Commit, Reader, Who, tidy, write_blobs, write_commit, write_tree
from ganger.workspaces.protect import Protection
from ganger.workspaces.removal import discard, throw_away
from ganger.workspaces.taking import (
    Bounds,
    Difference,
    FolderChange,
    Source,
    id_width,
    renames_of,
    require_outside_links,
    scratch_index,
    shown_paths,
    to_judge,
    to_keep,
)
from ganger.workspaces.tree import Tree

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GitSettings:
    """Where everything is, who the author is, and what the safeguards are.

    `store` is shared by all runs of a project; `work`, `checks` and `pool` are this run's.
    """

    project: Path
    store: Path
    run: str
    work: Path
    checks: Path
    pool: Path
    judge: Callable[[Change, Rules], None]
    generated: Callable[[str], bool]
    author: str = "Ganger <ganger@localhost>"
    linked: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    warm: int = 0
    protection: Protection = field(default_factory=Protection)
    max_file_bytes: int = 16 << 20
    max_total_bytes: int = 64 << 20
    max_files: int = 2000
    min_free_bytes: int = 64 << 20
    owner: tuple[int, int] | None = None
    now: Callable[[], float] = time.time


class GitRepository:
    """Blocking work is done in threads: as many checkouts at once as there are processors."""

    def __init__(self, settings: GitSettings) -> None:
        self._settings = settings
        self._bare = Bare(settings.project, settings.store, shared=settings.owner is not None)
        self._git = self._bare.git
        self._refs = RunRefs(settings.run)
        self._author = Who.parse(settings.author)
        self._checkouts = Checkouts(
            Recipe(
                store=settings.store,
                project=settings.project,
                author=self._author,
                linked=settings.linked,
                copied=settings.copied,
                owner=settings.owner,
            )
        )
        self._turns: dict[str, threading.Lock] = {}
        cores = os.cpu_count() or 2
        self._makers = ThreadPoolExecutor(max_workers=cores, thread_name_prefix="ganger-checkout")
        self._others = ThreadPoolExecutor(max_workers=cores + 4, thread_name_prefix="ganger-git")

    @property
    def shared(self) -> tuple[Path, ...]:
        """What every workspace reads besides its own folder: the objects it borrows."""
        return (self._settings.store / "objects",)

    async def open(self) -> str:
        return await self._do(self._open)

    async def head(self) -> str:
        return await self._do(self._head)

    async def has(self, commit: str) -> bool:
        return is_object(commit) and bool(await self._do(self._git.resolve, f"{commit}^{{commit}}"))

    async def is_ancestor(self, commit: str, of: str) -> bool:
        words = ("merge-base", "--is-ancestor", require_object(commit), require_object(of))
        return (await self._do(self._git.ask, *words, doing="comparing two commits", fine=(0, 1, 128))).code == 0

    async def tree_of(self, commit: str) -> str:
        return await self._do(self._tree_of, commit)

    async def move_head(self, expected: str, new: str) -> bool:
        return await self._do(self._move_head, require_object(expected), require_object(new))

    async def place(self, task: str, attempt: int) -> Place:
        return await self._make(self._place, task, attempt)

    async def take(self, task: str, attempt: int, writes: Sequence[Write], rules: Rules, message: str) -> Taken:
        return await self._do(self._take, (task, attempt), writes, rules, message)

    async def save(
        self, task: str, attempt: int, message: Callable[[Sequence[Touched]], str]
    ) -> tuple[str, tuple[str, ...]]:
        return await self._do(self._save, (task, attempt), message)

    async def rebase(self, commit: str, base: str, onto: str) -> Rebased | Conflict:
        return await self._do(rebase, self._git, *(require_object(one) for one in (commit, base, onto)))

    async def release(self, task: str, attempt: int) -> None:
        await self._do(self._release, task, attempt)

    async def checkout(self, name: str, commit: str) -> Path:
        return await self._make(self._checkout, name, require_object(commit))

    async def drop_checkout(self, name: str) -> None:
        await self._do(self._drop_checkout, name)

    async def close(self) -> None:
        """Ends the threads; what they are doing is finished first."""
        await asyncio.to_thread(self._makers.shutdown)
        await asyncio.to_thread(self._others.shutdown)

    async def _do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._others, lambda: work(*args, **kwargs))

    async def _make(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._makers, lambda: work(*args, **kwargs))

    def _open(self) -> str:
        check_version()
        self._require_space(self._settings.store.parent)
        self._bare.make()
        head = self._git.resolve(self._refs.branch)
        if head:
            return head
        start = self._git.resolve(self._refs.beginning) or self._bare.feed(self._refs.beginning)
        self._set(self._refs.branch, start)
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
        found = self._git.resolve(f"{require_object(commit)}^{{tree}}")
        if not found:
            raise GangerError(f"the commit {commit[:12]} is not in Ganger's repository", code="GIT_FAILED")
        return found

    def _set(self, ref: str, commit: str) -> None:
        self._git.ask("update-ref", ref, commit, doing=f"writing {ref}")
        sync_folder((self._settings.store / ref).parent)

    def _move_head(self, expected: str, new: str) -> bool:
        words = ("update-ref", self._refs.branch, new, expected)
        if self._git.ask(*words, doing="moving the branch", fine=(0, 1, 128)).code != 0 and self._head() != new:
            return False
        sync_folder((self._settings.store / self._refs.branch).parent)
        return True

    def _place(self, task: str, attempt: int) -> Place:
        name = _name(task, attempt)
        folder, ref = self._settings.work / name, self._refs.at(task, attempt)
        with self._turn(name):
            if os.path.lexists(folder):
                return Place(folder, self._origin(task, attempt))
            commit = self._head()
            made = self._made(self._settings.work, name, commit)
            self._keep_index(made, name, commit)
            self._set(ref, commit)
            put_in_place(made, folder)
            return Place(folder, commit)

    def _made(self, above: Path, name: str, commit: str) -> Path:
        self._require_space(above)
        made = fresh_name(above, name)
        try:
            self._checkouts.make(made, commit)
        except BaseException:
            discard(made)
            raise
        return made

    def _keep_index(self, made: Path, name: str, commit: str) -> None:
        """The agent's own index is the agent's; what changed is found with a copy it never sees."""
        index = self._index(name, commit)
        index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(made / ".git" / "index", index)

    def _index(self, name: str, commit: str) -> Path:
        return self._settings.work / ".index" / f"{name}.{commit}"

    def _origin(self, task: str, attempt: int) -> str:
        found = self._git.resolve(self._refs.at(task, attempt))
        if not found:
            raise GangerError(
                f"Ganger's repository does not know from which commit the workspace of {task!r} was made",
                hint=f"look at {self._settings.work / _name(task, attempt)} by hand, move it away, and run again",
                code="GIT_FAILED",
            )
        return found

    def _source(self, task: str, attempt: int) -> Source:
        name = _name(task, attempt)
        folder = self._settings.work / name
        if folder.is_symlink() or not folder.is_dir():
            raise GangerError(
                f"the workspace {folder} is gone",
                hint="the attempt cannot be taken; it is tried again",
                code="GIT_FAILED",
            )
        commit = self._origin(task, attempt)
        linked = (*self._settings.linked, *self._settings.copied)
        return Source(self._git, folder, commit, self._index(name, commit), linked, self._settings.generated)

    def _take(self, key: tuple[str, int], writes: Sequence[Write], rules: Rules, message: str) -> Taken:
        source = self._source(*key)
        difference = to_judge(source, self._bounds)
        self._lay_over(source, difference, writes, rules)
        commit = source.commit
        if difference.leaves:
            commit = self._judged(source, difference, rules, (self._refs.change(*key), message))
        return Taken(
            commit=commit,
            base=source.commit,
            files=difference.files,
            dropped=shown_paths(sorted(difference.dropped)),
            missing=tuple(path for path in rules.expected if difference.leaves.get(path) is None),
        )

    def _lay_over(self, source: Source, difference: Difference, writes: Sequence[Write], rules: Rules) -> None:
        if not writes:
            return
        require_outside_links((write.path for write in writes), source.linked)
        limits = WriteRules(
            protection=self._settings.protection,
            allow_shrinkage=rules.allow_shrinkage,
            max_file_bytes=self._settings.max_file_bytes,
            max_total_bytes=self._settings.max_total_bytes,
            max_files=self._settings.max_files,
        )
        with Tree(source.folder) as tree:
            difference.lay_over(plan_changes(tree, [_request(write) for write in writes], limits).files)

    def _judged(self, source: Source, difference: Difference, rules: Rules, kept: tuple[str, str]) -> str:
        """The difference as a commit, once the judge has said nothing against it."""
        write_blobs(self._git, list(difference.contents.values()), id_width(difference.before))
        with tempfile.TemporaryDirectory(prefix="ganger-take-") as folder, Reader(self._git) as reader:
            tree = write_tree(self._git, scratch_index(source, Path(folder)), difference.leaves)
            renames = renames_of(self._git, source.commit, tree, difference)
            self._settings.judge(FolderChange(difference, renames, reader), rules)
        return self._commit(tree, source.commit, *kept)

    def _commit(self, tree: str, parent: str, ref: str, message: str) -> str:
        """A commit kept at a ref; when that ref holds this very change already, it is that one."""
        known = self._git.resolve(ref)
        if known:
            with Reader(self._git) as reader:
                found = reader.commit(known)
            if found is not None and (found.tree, found.parents, found.message) == (tree, (parent,), tidy(message)):
                return known
        who = self._author.at(self._settings.now())
        made = write_commit(self._git, Commit(tree, (parent,), who, who, message))
        self._set(ref, made)
        return made

    def _save(self, key: tuple[str, int], told: Callable[[Sequence[Touched]], str]) -> tuple[str, tuple[str, ...]]:
        if not os.path.lexists(self._settings.work / _name(*key)):
            return "", ()
        source = self._source(*key)
        difference = to_keep(source)
        if not difference.leaves:
            return "", ()
        tree = self._kept_tree(source, difference)
        with Reader(self._git) as reader:
            message = told(FolderChange(difference, {}, reader).touched)
        if difference.left_out:
            reasons = [f"Left out: {one.message}" for one in list(difference.left_out.values())[:50]]
            message = "\n".join([message.rstrip("\n"), "", *reasons])
        return self._commit(tree, source.commit, self._refs.wip(*key), message), shown_paths(difference.files)

    def _kept_tree(self, source: Source, difference: Difference) -> str:
        with tempfile.TemporaryDirectory(prefix="ganger-save-") as folder:
            return write_tree(self._git, scratch_index(source, Path(folder)), difference.leaves)

    @property
    def _bounds(self) -> Bounds:
        settings = self._settings
        return Bounds(settings.max_file_bytes, settings.max_total_bytes, settings.max_files)

    def _release(self, task: str, attempt: int) -> None:
        name = _name(task, attempt)
        with self._turn(name):
            gone = throw_away(self._settings.work / name, self._settings.work / ".trash")
            for index in (self._settings.work / ".index").glob(f"{_escaped(name)}.*"):
                index.unlink(missing_ok=True)
        if gone is not None:
            discard(gone)

    def _checkout(self, name: str, commit: str) -> Path:
        folder = self._settings.checks / file_stem(name)
        with self._turn(f"check {name}"):
            made = self._made(self._settings.checks, folder.name, commit)
            old = throw_away(folder, self._settings.checks / ".trash")
            put_in_place(made, folder)
        if old is not None:
            discard(old)
        return folder

    def _drop_checkout(self, name: str) -> None:
        with self._turn(f"check {name}"):
            gone = throw_away(self._settings.checks / file_stem(name), self._settings.checks / ".trash")
        if gone is not None:
            discard(gone)

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


def _name(task: str, attempt: int) -> str:
    return f"{file_stem(task)}.{attempt}"


def _escaped(name: str) -> str:
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


def _request(write: Write) -> WriteRequest:
    return WriteRequest(write.path, write.op, write.content, write.content_ref, write.sha256_before)

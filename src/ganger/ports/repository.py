"""A git repository Ganger owns: workspaces made from it, changes taken from them, the run's branch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ganger.ports.changes import Rules, Touched

if TYPE_CHECKING:
    from ganger.contracts.task_result import Write


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt's own workspace and the commit it was made from. `fresh`: it is new; `holds_work`: it has a change."""

    folder: Path
    base: str
    fresh: bool = field(default=False, compare=False)
    holds_work: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Taken:
    """A change that passed every safeguard, as a commit on the base of its workspace.

    `dropped` are generated files that were left out, `missing` are expected files that it lacks.
    """

    commit: str
    base: str
    files: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebased:
    """A change applied to another commit."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A change that conflicts: the files, and an excerpt with the conflict markers for the next prompt."""

    files: tuple[str, ...]
    excerpt: str


class History(Protocol):
    """What a repository knows about its commits."""

    async def files_of(self, commit: str) -> Sequence[str]:
        """The paths it changed, compared with its first parent."""

    async def files_between(self, base: str, tip: str) -> Sequence[str]:
        """The paths in which they differ; a renamed file counts by both of its names."""

    async def ci_texts(self, commit: str) -> Sequence[str]:
        """What the workflow files of this commit say."""

    async def is_straight(self, base: str, tip: str) -> bool:
        """Whether none of the commits after `base` up to `tip` is a merge."""

    async def fork_point(self, one: str, other: str) -> str:
        """The newest common commit; empty where there is none."""

    async def message(self, commit: str) -> str: ...


class Repository(History, Protocol):
    """Ganger's own git repository, the run's integration branch in it, and the folders made from it.

    Every call is safe to repeat. Agents may use git in their workspaces; nothing they set up there is ever run here.
    """

    @property
    def shared(self) -> tuple[Path, ...]:
        """What every workspace reads besides its own folder."""

    async def open(self) -> str:
        """Makes the repository and the run's branch unless they exist; returns the branch's head."""

    async def head(self) -> str: ...

    async def has(self, commit: str) -> bool: ...

    async def is_ancestor(self, commit: str, of: str) -> bool: ...

    async def move_head(self, expected: str, new: str) -> bool:
        """Compare and swap, durable; False when the head is neither `expected` nor `new` already."""

    async def place(self, task: str, attempt: int, work: str = "") -> Place:
        """The attempt's workspace, made from the head if there is none yet; with the change `work` if that applies."""

    async def take(self, task: str, attempt: int, writes: Sequence[Write], rules: Rules, message: str) -> Taken:
        """What the agent changed in its workspace, and `writes` on top, judged and committed; raises WriteRefused.

        The commit is kept by a ref. An empty change gives the base itself.
        """

    async def save(
        self, task: str, attempt: int, message: Callable[[Sequence[Touched]], str]
    ) -> tuple[str, tuple[str, ...]]:
        """Saves the workspace's content as a WIP commit, without judgement; ("", ()) when nothing was changed."""

    async def rebase(self, commit: str, base: str, onto: str) -> Rebased | Conflict:
        """The change from `base` to `commit`, as one commit on `onto` with the same message."""

    async def empty_commit(self, parent: str, message: str, at: float) -> Rebased:
        """An empty commit on `parent`. Equal arguments give the same commit; a ref keeps it."""

    async def join(
        self, ours: str, theirs: str, message: str, at: float, *, yields: bool = False
    ) -> Rebased | Conflict:
        """A merge of both, `ours` first, always the same; a ref keeps it. `yields`: in a conflict, `theirs` wins."""

    async def line(self, base: str, tip: str, most: int = 200) -> Sequence[Rebased]:
        """The commits after `base` along the first parents of `tip`, oldest first."""

    async def like(self, commit: str, tree: str, onto: str) -> Rebased:
        """A commit on `onto` with this tree and all else as `commit` has it; `onto` itself where that is its tree."""

    async def take_back(self, commit: str, onto: str, message: str, at: float) -> Rebased | Conflict:
        """One commit on `onto`, always the same and kept by a ref, that reverts `commit`; or a conflict."""

    async def together(self, commits: Sequence[str]) -> Rebased | Conflict:
        """What these commits change, as one commit on the parent of the first; or where they need what is between."""

    async def diff_text(self, base: str, commit: str, most_bytes: int) -> str:
        """The change from `base` to `commit` for a reader, cut where it is longer."""

    async def tree_of(self, commit: str) -> str: ...

    async def check(self) -> None:
        """Raises GangerError REPO_DAMAGED where git finds damage. Reads every object."""

    async def release(self, task: str, attempt: int) -> None:
        """Removes a workspace. Call it only when its change is merged, saved, or empty."""

    async def checkout(self, name: str, commit: str) -> Path:
        """A new folder with exactly this commit, never used by an agent."""

    async def drop_checkout(self, name: str) -> None: ...

    async def clear(self, needed: Collection[tuple[str, int]]) -> None:
        """Removes what dead leads left, except the workspaces of these attempts and work that exists nowhere else."""

    async def close(self) -> None:
        """Releases the repository."""

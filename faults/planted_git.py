"""Planted bugs of runs in git: merges told too early, too late or twice, and work that is not kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ganger.core import events as ev
from ganger.engine.merging.merge_queue import In, MergeQueue, _Layer
from ganger.workspaces.git import bare_repo, git, repository
from ganger.workspaces.git.repository import GitRepository


def moved_before_intent() -> None:
    """The branch moves before the intent is recorded."""
    real = GitRepository.move_head
    record = MergeQueue._move

    async def move(self: MergeQueue, head: str, layers: Sequence[_Layer]) -> None:
        await real(self.repository, head, layers[-1].commit)  # type: ignore[arg-type]
        await record(self, head, layers)

    setattr(MergeQueue, "_move", move)  # noqa: B010


def merged_before_move() -> None:
    """Merged and DONE are recorded before the branch moves."""

    async def move(self: MergeQueue, head: str, layers: Sequence[_Layer]) -> None:
        tip = layers[-1].commit
        named = [(layer.item.task, layer.commit) for layer in layers]
        tasks, commits = zip(*named, strict=True)
        await self.tools.journal.record(ev.HeadIntended(head, tip, tasks, commits))
        await self._moved(tip, named)
        await self.repository.move_head(head, tip)
        for layer in layers:
            self._answer(layer.item, In())

    setattr(MergeQueue, "_move", move)  # noqa: B010


def merged_again() -> None:
    """A new lead does not look whether the branch moved; it merges again."""

    real = MergeQueue.recover

    async def recover(self: MergeQueue) -> None:
        intent = self.state.branches.intents.pop(self.name, None)
        if intent is not None:
            await self.tools.journal.record(ev.HeadKept(intent.head, "surely it did not move"))
        await real(self)

    setattr(MergeQueue, "recover", recover)  # noqa: B010


def workspace_removed_early() -> None:
    """A workspace is removed before the change taken from it is recorded."""
    real = GitRepository.take

    async def take(self: GitRepository, task: str, attempt: int, *given: Any) -> Any:
        taken = await real(self, task, attempt, *given)
        await self.release(task, attempt)
        return taken

    setattr(GitRepository, "take", take)  # noqa: B010


def git_not_synced() -> None:
    """Neither commits nor refs are on disk when the merge is recorded."""
    settings = tuple(one for one in git._SETTINGS if not one.startswith("core.fsync"))
    git._SETTINGS = (*settings, "core.fsync=none")  # type: ignore[assignment]
    for module in (bare_repo, repository):
        setattr(module, "sync_folder", lambda _folder: None)  # noqa: B010

"""The writes of an answer as a `Change`, so that the usual safeguards judge them."""

from __future__ import annotations

import stat
from collections.abc import Collection
from functools import cached_property

from ganger.errors import WriteRefused
from ganger.ports import Side, Touched
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.rules.writes import ChangeKind, ChangeSet, FileChange


class PlannedChange:
    """A change set that is not written yet, with the tree it is meant for."""

    def __init__(self, changes: ChangeSet, tree: Tree, limit: int) -> None:
        self._changes, self._tree, self._limit = {change.path: change for change in changes.files}, tree, limit

    @cached_property
    def touched(self) -> tuple[Touched, ...]:
        return tuple(_touched(one) for one in self._changes.values() if one.kind is not ChangeKind.UNCHANGED)

    def before(self, path: str) -> bytes:
        """Also for an untouched file: a check may reach it through a touched one."""
        change = self._changes.get(path)
        if change is not None and change.before is None:
            return b""
        try:
            found = self._tree.read(path, self._limit)
        except WriteRefused:
            return b""
        return b"" if found is None else found.data

    def after(self, path: str) -> bytes:
        change = self._changes.get(path)
        return b"" if change is None else change.content

    def names_before(self, folder: str) -> Collection[str]:
        try:
            return self._tree.names(folder)
        except (OSError, WriteRefused):
            return ()


def _touched(change: FileChange) -> Touched:
    mode = _mode(change.mode)
    before = change.before
    was = None if before is None else Side(_mode(before.mode), before.size, before.sha256)
    return Touched(change.path, was, Side(mode, change.after_size, change.after_sha256))


def _mode(mode: int) -> int:
    return stat.S_IFREG | (0o755 if mode & 0o111 else 0o644)

"""Folders made in advance, and a template folder to copy from where blocks can be shared; no agent has used them."""

from __future__ import annotations

import os
import secrets
import threading
from pathlib import Path

from ganger.errors import GangerError
from ganger.workspaces.files.copying import Fill, can_share_blocks, copy_folder, share_blocks, stats_of
from ganger.workspaces.files.removal import discard
from ganger.workspaces.git.checkouts import Checkouts
from ganger.workspaces.git.index import restamp

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Pool:
    """Ready folders, moved to the newest commit when they are taken. Those of an earlier process are discarded."""

    def __init__(self, checkouts: Checkouts, folder: Path, warm: int) -> None:
        self._checkouts = checkouts
        self._folder = folder
        self._warm = warm
        self._mark = secrets.token_hex(4)
        self._ready: dict[Path, str] = {}
        self._lock = threading.Lock()

    def take(self, into: Path, commit: str) -> bool:
        """Moves a ready folder to this place and commit; False when there is none."""
        with self._lock:
            if not self._ready:
                return False
            folder = next((one for one, at in self._ready.items() if at == commit), next(iter(self._ready)))
            old = self._ready.pop(folder)
        try:
            into.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(into)
            self._checkouts.move(into, old, commit)
        except (OSError, GangerError):
            discard(folder)
            discard(into)
            return False
        return True

    @property
    def size(self) -> int:
        with self._lock:
            return len(self._ready)

    def wants_more(self) -> bool:
        with self._lock:
            return len(self._ready) < self._warm

    def fill(self, commit: str) -> None:
        """Makes one more folder if there are too few."""
        if not self.wants_more():
            return
        folder = self._folder / f"{self._mark}-{secrets.token_hex(6)}"
        try:
            self._checkouts.make(folder, commit)
        except (OSError, GangerError):
            discard(folder)
            return
        with self._lock:
            self._ready[folder] = commit

    def sweep(self) -> None:
        """Removes what an earlier process left."""
        if not self._folder.is_dir():
            return
        for folder in list(self._folder.iterdir()):
            if not folder.name.startswith(self._mark):
                discard(folder)


class Template:
    """One folder that follows the branch; others are cloned from it by sharing blocks."""

    def __init__(self, checkouts: Checkouts, pool: Path, fill_file: Fill | None = None) -> None:
        self._checkouts = checkouts
        self._pool = pool
        self._folder = pool / f"template-{secrets.token_hex(6)}"
        self._commit = ""
        self._fill = fill_file
        self._can: bool | None = None if fill_file is None else True
        self._lock = threading.Lock()

    def copy(self, into: Path, commit: str) -> bool:
        """A copy at this place and commit; False where blocks cannot be shared."""
        if not self._works():
            return False
        with self._lock:
            try:
                self._bring(commit)
                _copy(self._folder, into, self._fill or share_blocks)
            except (OSError, GangerError):
                self._can = False
                discard(into)
                discard(self._folder)
                return False
        restamp(into / ".git" / "index", stats_of(into))
        if self._checkouts.recipe.owner is not None:
            self._checkouts.furnish(into)
        return True

    def _works(self) -> bool:
        if self._can is None:
            self._pool.mkdir(parents=True, exist_ok=True)
            self._can = can_share_blocks(self._pool)
        return self._can

    def _bring(self, commit: str) -> None:
        if not self._commit:
            self._checkouts.make(self._folder, commit)
        else:
            self._checkouts.move(self._folder, self._commit, commit)
        self._commit = commit


def _copy(source: Path, into: Path, fill_file: Fill) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(into.parent, _DIRECTORY)
    try:
        copy_folder(source, into.name, into=fd, fill_file=fill_file)
    finally:
        os.close(fd)

"""Undoes everything an agent did in place: new files are removed, changed and removed ones restored from the copies."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ganger.errors import RollbackFailed, WriteRefused, is_of_machine
from ganger.workspaces.direct.edits import FolderEdits
from ganger.workspaces.files.snapshot import FileEntry
from ganger.workspaces.files.tree import Draft, FileImage, parents_of
from ganger.workspaces.files.tree_links import TreeLinks
from ganger.workspaces.refusals import failure_for

_TAG = "undo"


@dataclass
class Undo:
    """One pass; safe to repeat and to interrupt. A failure at one path does not stop the others from being restored.

    The content at a path of `sparing` exists nowhere else: it is moved to `aside`, never removed.
    """

    tree: TreeLinks
    change: FolderEdits
    aside: Path
    sparing: frozenset[str] = frozenset()
    _failed: set[str] = field(default_factory=set)
    _troubles: list[str] = field(default_factory=list)

    def run(self) -> tuple[str, ...]:
        """The paths that could not be put back. Removals come first: they clear paths, and space on a full disk."""
        baseline, touched = self.change.baseline, self.change.touched
        self._unlock()
        for one in touched:
            if one.before is None:
                self._guarded(one.path, partial(self._remove, one.path))
        for folder in sorted(self._folders_that_came(), reverse=True):
            self._guarded("", partial(self.tree.remove_if_empty, folder))
        for folder in sorted(path for path in self.change.folders if path in baseline.folders):
            self._guarded("", partial(self._make_folder, folder))
        for path in (*(one.path for one in touched if one.before is not None), *self.change.permissions):
            self._guarded(path, partial(self._restore, path, baseline.files[path]))
        self._settle_folders()
        for one in touched:
            self._guarded(one.path, partial(self._verify, one.path, baseline.files.get(one.path)))
        if self._troubles:
            raise RollbackFailed(
                f"what was changed in {self.tree.root} could not be put back: {'; '.join(self._troubles)}",
                hint="Fix the cause and run again: the earlier contents are kept and can be put back at any time.",
            )
        return tuple(sorted(self._failed))

    def _guarded(self, path: str, act: Callable[[], object]) -> None:
        """Runs one step and notes its failure. A step without a path is optional: its effect is checked at the end."""
        try:
            act()
        except OSError as problem:
            if is_of_machine(problem):
                self._troubles.append(failure_for(path, problem).message)
            elif path:
                self._failed.add(path)
        except WriteRefused:
            if path:
                self._failed.add(path)

    def _folders_that_came(self) -> list[str]:
        return [path for path in self.change.folders if path not in self.change.baseline.folders]

    def _concerned(self) -> list[str]:
        paths = (*(one.path for one in self.change.touched), *self.change.permissions)
        return sorted({*self.change.folders, *(above for path in paths for above in parents_of(path))})

    def _unlock(self) -> None:
        """Folders with work to do, from the root down; modes are restored at the end."""
        for folder in self._concerned():
            self._guarded("", partial(self._unlock_one, folder))

    def _unlock_one(self, folder: str) -> None:
        found = self._occupied(folder)
        if found is not None and stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700:
            self.tree.set_folder_mode(folder, stat.S_IMODE(found.st_mode) | 0o700)

    def _occupied(self, path: str) -> os.stat_result | None:
        """What is at a path of the tree; a path through a link or a file is outside the tree."""
        try:
            return self.tree.look(path)
        except WriteRefused as refusal:
            if refusal.code in ("PATH_SYMLINK", "PATH_NOT_REGULAR"):
                return None
            raise

    def _remove(self, path: str) -> None:
        found = self._occupied(path)
        if found is None:
            return
        if not stat.S_ISDIR(found.st_mode):
            self._carry_out(path) if path in self.sparing else self.tree.unlink(path)
        elif path not in self.change.baseline.folders:
            self._clear(path)

    def _clear(self, path: str) -> None:
        """A folder that could not be read, or that holds excluded entries, is moved away as a whole and never
        deleted."""
        if not self.tree.remove_if_empty(path):
            self._carry_out(path)

    def _carry_out(self, path: str) -> None:
        self.tree.carry_out(path, self.aside, f"{secrets.token_hex(4)}-{path.rpartition('/')[2][-20:]}")

    def _make_folder(self, folder: str) -> None:
        if self._occupied(folder) is None:
            self.tree.make_directories((*parents_of(folder), folder))

    def _restore(self, path: str, before: FileEntry) -> None:
        if self._is_as_before(path, before):
            return
        data = self.change.kept.read(before.digest) if before.has_digest else None
        if data is None:
            self._failed.add(path)
            return
        self.tree.make_directories(parents_of(path))
        found = self.tree.look(path)
        if found is not None and stat.S_ISDIR(found.st_mode):
            self._clear(path)
        elif found is not None and path in self.sparing:
            self._carry_out(path)
        if before.is_link:
            self.tree.place_link(path, data, tag=_TAG)
        else:
            draft = Draft(data, stat.S_IMODE(before.mode), (before.uid, before.gid), before.mtime_ns)
            self.tree.restore(path, draft, tag=_TAG)

    def _is_as_before(self, path: str, before: FileEntry) -> bool:
        found = self._occupied(path)
        if found is None or stat.S_IFMT(found.st_mode) != stat.S_IFMT(before.mode):
            return False
        if before.is_link:
            return self.tree.target(path) == self.change.before(path)
        if not before.is_file or not before.has_digest:
            return found.st_ino == before.ino and found.st_ctime_ns == before.ctime_ns
        image = self._image(path)
        return image is not None and image.sha256 == before.digest and found.st_mode == before.mode

    def _image(self, path: str) -> FileImage | None:
        try:
            return self.tree.image(path)
        except PermissionError:
            return None

    def _settle_folders(self) -> None:
        concerned = self._concerned()
        modes = self.change.baseline.folders
        for folder in reversed(concerned):
            if folder in modes:
                self._guarded("", partial(self._set_mode, folder, stat.S_IMODE(modes[folder])))
        self._sync(["", *concerned])

    def _set_mode(self, folder: str, mode: int) -> None:
        found = self._occupied(folder)
        if found is not None and stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) != mode:
            self.tree.set_folder_mode(folder, mode)

    def _sync(self, folders: Iterable[str]) -> None:
        for folder in folders:
            self._guarded("", partial(self.tree.sync, [folder]))

    def _verify(self, path: str, before: FileEntry | None) -> None:
        found = self._occupied(path)
        if before is not None:
            as_before = self._is_as_before(path, before)
        else:
            as_before = found is None or (path in self.change.baseline.folders and stat.S_ISDIR(found.st_mode))
        if not as_before:
            self._failed.add(path)

"""A change set lands whole or not at all, and can be rolled back later from its backup folder alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

from ganger.errors import GangerError, NotFoundError, RollbackFailed, WriteRefused
from ganger.workspaces.direct.backup import Backup, BackupEntry, discard_backup, load_backup, prepare_backup
from ganger.workspaces.files.tree import TEMP_PREFIX, TEMP_SUFFIX, Draft, FileImage, Tree, parents_of, sha256_of
from ganger.workspaces.refusals import failure_for, named_failures, refused
from ganger.workspaces.rules.writes import ChangeKind, ChangeSet, FileChange

__all__ = [
    "Applied",
    "Backup",
    "RollbackReport",
    "apply_changes",
    "discard_backup",
    "is_applied",
    "make_durable",
    "prepare_backup",
    "roll_back",
    "saved_folder",
]


def saved_folder(backup: Path) -> Path:
    """Where a rollback saves what other programs had written."""
    return backup.with_name(f"{backup.name}.saved")


class Applied(StrEnum):
    NONE = "none"
    PARTIAL = "partial"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class RollbackReport:
    """What a rollback did. Content that does not belong to this change set is never deleted: it is moved aside,
    kept, or saved beside the backup."""

    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    moved_aside: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()


def apply_changes(tree: Tree, changes: ChangeSet, backup: Backup | Path) -> None:
    """Land every change, or put back what was landed and raise. On return the whole change survives a power cut."""
    whole = _whole_backup(tree, changes, backup)
    progress = _Progress()
    complete = False
    try:
        for change in changes.files:
            with named_failures(change.path):
                _land(tree, change, whole.tag, progress)
        _settle(tree, changes)
        complete = True
    finally:
        if not complete:
            _undo(tree, whole, progress)


def roll_back(root: Path, folder: Path) -> RollbackReport:
    """Put back everything in the backup, also files that were changed since. Safe to repeat and to interrupt."""
    backup = load_backup(folder)
    if backup is None:
        return RollbackReport()
    try:
        with Tree(root) as tree:
            if str(tree.root) != backup.root:
                raise RollbackFailed(
                    f"the backup in {folder} was made of {backup.root}, not of {tree.root}",
                    hint=f"Roll it back onto {backup.root}.",
                )
            touched = [entry.path for entry in backup.entries]
            new_dirs = [one for entry in backup.entries for one in entry.new_dirs]
            return _Rollback(tree, backup).run(backup.entries, touched=touched, new_dirs=new_dirs)
    except NotFoundError as problem:
        raise RollbackFailed(
            f"{problem.message}; the original files are in {folder}", hint="Bring the directory back, then run again."
        ) from problem


def is_applied(root: Path, folder: Path) -> Applied:
    """How much of a change set is in place, by hashes. Without a complete backup, nothing was started."""
    backup = load_backup(folder)
    if backup is None:
        return Applied.NONE
    with Tree(root) as tree, named_failures(str(tree.root)):
        present = [(_hash_at(tree, entry.path), entry) for entry in backup.entries]
    if all(found == entry.after_sha256 for found, entry in present):
        return Applied.ALL
    if all(found == (entry.before.sha256 if entry.before else None) for found, entry in present):
        return Applied.NONE
    return Applied.PARTIAL


def make_durable(root: Path, folder: Path) -> None:
    """Make what a dead process had put in place survive a power cut."""
    backup = load_backup(folder)
    assert backup is not None
    with Tree(root) as tree:
        for directory in _directories_of(path for one in backup.entries for path in (one.path, *one.new_dirs)):
            with named_failures(directory or "."):
                tree.sync([directory])


def _hash_at(tree: Tree, path: str) -> str | None:
    """The hash of a regular file; None when it is missing. For anything else the result equals no hash."""
    try:
        image = tree.image(path)
    except WriteRefused:
        return "not a file"
    return image.sha256 if image else None


@dataclass
class _Progress:
    """How far an apply got: paths it started on, directories it made, files it was about to replace."""

    begun: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    taken: list[FileChange] = field(default_factory=list)


def _whole_backup(tree: Tree, changes: ChangeSet, backup: Backup | Path) -> Backup:
    folder = backup if isinstance(backup, Path) else backup.folder
    found = load_backup(folder)
    if found is None or not found.covers(tree, changes):
        raise refused(str(folder), "BACKUP_MISSING", "this folder does not hold a complete backup of this change set")
    return found


def _land(tree: Tree, change: FileChange, tag: str, progress: _Progress) -> None:
    if change.kind is ChangeKind.UNCHANGED:
        return
    progress.begun.append(change.path)
    tree.make_directories(change.new_dirs, progress.made)
    owner = (change.before.uid, change.before.gid) if change.before else None
    draft = Draft(change.content, change.mode, owner)
    taking = partial(progress.taken.append, change)
    tree.land(change.path, draft, expected=change.before, tag=tag, taking=taking)


def _settle(tree: Tree, changes: ChangeSet) -> None:
    """Sync the directories, then read every file back by its path: a moved directory must not count as success."""
    for directory in _directories_of(path for one in changes.files for path in (one.path, *one.new_dirs)):
        with named_failures(directory or "."):
            tree.sync([directory])
    for change in changes.files:
        with named_failures(change.path):
            image = tree.image(change.path)
        if image is None or image.sha256 != change.after_sha256:
            raise refused(change.path, "HASH_MISMATCH", "the file was changed while the change set was being written")


def _directories_of(paths: Iterable[str]) -> list[str]:
    """The directories that hold these paths; `""` is the root."""
    return sorted({path.rpartition("/")[0] for path in paths})


def _undo(tree: Tree, backup: Backup, progress: _Progress) -> None:
    """Only what this apply wrote. The last file may or may not have been replaced, so its content decides."""
    mine = {one.path for one in progress.taken[:-1]}
    for last in progress.taken[-1:]:
        if _hash_at(tree, last.path) == last.after_sha256:
            mine.add(last.path)
    _Rollback(tree, backup).run(
        [entry for entry in backup.entries if entry.path in mine],
        touched=[entry.path for entry in backup.entries if entry.path in progress.begun],
        new_dirs=progress.made,
    )


@dataclass
class _Rollback:
    """One pass over a backup's entries; a failure at one file does not stop the others from being restored."""

    tree: Tree
    backup: Backup
    restored: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    untouched: list[str] = field(default_factory=list)
    moved_aside: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, entries: Sequence[BackupEntry], *, touched: Sequence[str], new_dirs: Sequence[str]) -> RollbackReport:
        """Removals come first: on a full disk they make room for the originals."""
        self._sweep(touched)
        for entry in reversed(entries):
            if entry.before is None:
                self._guarded(entry.path, partial(self._remove, entry))
        for entry in entries:
            if entry.before is not None:
                self._guarded(entry.path, partial(self._restore, entry, entry.before))
        for directory in sorted(new_dirs, reverse=True):
            self._guarded(directory, partial(self._remove_directory, directory))
        self._sync([*touched, *new_dirs])
        for entry in entries:
            self._guarded(entry.path, partial(self._verify, entry))
        self._raise_failures()
        return RollbackReport(
            restored=tuple(self.restored),
            removed=tuple(self.removed),
            untouched=tuple(self.untouched),
            moved_aside=tuple(self.moved_aside),
            kept=tuple(self.kept),
            saved=tuple(self.saved),
        )

    def _guarded(self, path: str, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as problem:
            self.failures.setdefault(path, failure_for(path, problem).message)
        except GangerError as problem:
            self.failures.setdefault(path, problem.message)

    def _sweep(self, touched: Sequence[str]) -> None:
        """Temporary files that a killed apply or rollback left behind carry the backup's tag."""
        ours = f"{TEMP_PREFIX}{self.backup.tag}-"
        for directory in _directories_of(touched):
            self._guarded(directory or ".", partial(self._sweep_one, directory, ours))

    def _sweep_one(self, directory: str, ours: str) -> None:
        with suppress(FileNotFoundError, WriteRefused):
            for name in self.tree.names(directory):
                if name.startswith(ours) and name.endswith(TEMP_SUFFIX):
                    path = f"{directory}/{name}" if directory else name
                    self._guarded(path, partial(self.tree.unlink, path))

    def _save_foreign(self, entry: BackupEntry) -> None:
        """Content that is neither the old nor the new one was written by another program: it is kept beside the
        backup."""
        present = self._present(entry.path)
        own = {entry.after_sha256, entry.before.sha256 if entry.before else ""}
        if present is None or present.sha256 in own:
            return
        found = self.tree.read(entry.path, present.size)
        if found is None:
            return
        folder = saved_folder(self.backup.folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        with Tree(folder) as store:
            name = f"{found.image.sha256[:12]}-{entry.path.replace('/', '%2F')[-180:]}"
            if store.look(name) is None:
                store.land(name, Draft(found.data, 0o600), expected=None, tag="saved")
            store.sync([""])
        self.saved.append(entry.path)

    def _remove(self, entry: BackupEntry) -> None:
        self._save_foreign(entry)
        if self._occupied(entry.path) and not self._clear(entry.path):
            self.tree.unlink(entry.path)
        self.removed.append(entry.path)

    def _restore(self, entry: BackupEntry, before: FileImage) -> None:
        if self._is_as_before(entry.path, before):
            self.untouched.append(entry.path)
            return
        self._save_foreign(entry)
        data = self._original(entry, before)
        for parent in parents_of(entry.path):
            self._ensure_directory(parent)
        self._clear(entry.path)
        draft = Draft(data, before.mode, (before.uid, before.gid), before.mtime_ns)
        self.tree.restore(entry.path, draft, tag=self.backup.tag)
        self.restored.append(entry.path)

    def _is_as_before(self, path: str, before: FileImage) -> bool:
        present = self._present(path)
        if present is not None and os.geteuid() != 0:
            present = replace(present, uid=before.uid, gid=before.gid)
        return present == before

    def _present(self, path: str) -> FileImage | None:
        try:
            return self.tree.image(path)
        except WriteRefused:
            return None

    def _original(self, entry: BackupEntry, before: FileImage) -> bytes:
        with Tree(self.backup.folder) as store:
            found = store.read(entry.copy or "", before.size)
        if found is None or sha256_of(found.data) != before.sha256:
            raise RollbackFailed(f"{entry.path!r}: its backup copy is missing or damaged")
        return found.data

    def _occupied(self, path: str) -> os.stat_result | None:
        """What is at a path of the tree; a path through a link or a file is outside the tree."""
        try:
            return self.tree.look(path)
        except WriteRefused as refusal:
            if refusal.code in ("PATH_SYMLINK", "PATH_NOT_REGULAR"):
                return None
            raise

    def _ensure_directory(self, path: str) -> None:
        entry = self.tree.look(path)
        if entry is not None and not stat.S_ISDIR(entry.st_mode):
            self.moved_aside.append(self.tree.move_aside(path, tag=self.backup.tag))
        self.tree.make_directories([path])

    def _clear(self, path: str) -> bool:
        """Clear a directory out of a file's place: removed if empty, else moved aside. False when there is no
        directory."""
        entry = self.tree.look(path)
        if entry is None or not stat.S_ISDIR(entry.st_mode):
            return False
        if not self.tree.remove_if_empty(path):
            self.moved_aside.append(self.tree.move_aside(path, tag=self.backup.tag))
        return True

    def _remove_directory(self, path: str) -> None:
        entry = self._occupied(path)
        if entry is None:
            return
        if stat.S_ISLNK(entry.st_mode):
            self.tree.unlink(path)
        elif not self.tree.remove_if_empty(path):
            self.kept.append(path)

    def _sync(self, touched: Sequence[str]) -> None:
        for directory in _directories_of(touched):
            self._guarded(directory or ".", partial(self._sync_one, directory))

    def _sync_one(self, directory: str) -> None:
        with suppress(FileNotFoundError, WriteRefused):
            self.tree.sync([directory])

    def _verify(self, entry: BackupEntry) -> None:
        if entry.before is None:
            if self._occupied(entry.path) is not None:
                raise refused(entry.path, "HASH_MISMATCH", "it is still there")
            return
        present = self._present(entry.path)
        if present is None or present.sha256 != entry.before.sha256 or (present.mode ^ entry.before.mode) & 0o777:
            raise refused(entry.path, "HASH_MISMATCH", "it does not have its old content and mode")

    def _raise_failures(self) -> None:
        if not self.failures:
            return
        copies = {entry.path: entry.copy for entry in self.backup.entries if entry.copy}
        where = [
            f"{reason} (original: {self.backup.folder / copies[path]})" if path in copies else reason
            for path, reason in self.failures.items()
        ]
        raise RollbackFailed(
            f"{len(where)} of the files in {self.tree.root} could not be put back: {'; '.join(where)}",
            hint="Fix the cause and run again: the backup is kept and can be rolled back as often as needed.",
        )

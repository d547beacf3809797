"""The backup folder of one change set: copies of the originals, and an index whose presence says they are complete."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganger.errors import NotFoundError, RollbackFailed
from ganger.workspaces.files.tree import Draft, FileImage, Tree
from ganger.workspaces.refusals import named_failures, refused
from ganger.workspaces.rules.writes import ChangeSet, FileChange

INDEX_NAME = "index.json"
INDEX_FORMAT = 1
_INDEX_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class BackupEntry:
    """One file of the change set; `before` and `copy` are None when it did not exist."""

    path: str
    before: FileImage | None
    after_sha256: str
    copy: str | None
    new_dirs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Backup:
    """A complete backup. The tag marks every temporary name that applying it may leave behind."""

    folder: Path
    root: str
    tag: str
    entries: tuple[BackupEntry, ...]

    def covers(self, tree: Tree, changes: ChangeSet) -> bool:
        """True when it was made for exactly these changes of this tree."""
        return self.root == str(tree.root) and _outline(self) == [
            (one.path, one.before.sha256 if one.before else None, one.after_sha256) for one in changes.files
        ]


def prepare_backup(tree: Tree, changes: ChangeSet, folder: Path) -> Backup:
    """Copy every original into its own folder, then write the index. A half-made backup is made again from the
    start."""
    with named_failures(str(folder)):
        _make_private(folder)
        with Tree(folder) as store:
            earlier = _load(store, folder)
            if earlier is not None:
                return _same_backup(earlier, tree, changes)
            for name in store.names(""):
                store.unlink(name)
            backup = _copy_all(tree, changes, store, folder)
            store.sync([""])
            _place(store, INDEX_NAME, json.dumps(_index_of(backup), indent=1).encode())
            store.sync([""])
        return backup


def load_backup(folder: Path) -> Backup | None:
    """The backup; None when it was never finished or was discarded."""
    try:
        with named_failures(str(folder)), Tree(folder) as store:
            return _load(store, folder)
    except NotFoundError:
        return None


def discard_backup(folder: Path) -> None:
    """Remove a backup that is no longer needed. The index goes first: a half-removed backup is no backup."""
    with named_failures(str(folder)), suppress(FileNotFoundError):
        (folder / INDEX_NAME).unlink(missing_ok=True)
        shutil.rmtree(folder)


def _same_backup(earlier: Backup, tree: Tree, changes: ChangeSet) -> Backup:
    if not earlier.covers(tree, changes):
        message = "this folder holds the backup of another change set; roll that one back or discard it first"
        raise refused(str(earlier.folder), "BACKUP_EXISTS", message)
    return earlier


def _outline(backup: Backup) -> list[tuple[str, str | None, str]]:
    return [(one.path, one.before.sha256 if one.before else None, one.after_sha256) for one in backup.entries]


def _make_private(folder: Path) -> None:
    """Make the folder, readable by its owner only, and make its name survive a power cut."""
    missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    for one in reversed(missing):
        one.mkdir(mode=0o700)
    entry = folder.lstat()
    if not stat.S_ISDIR(entry.st_mode) or entry.st_uid != os.geteuid():
        raise refused(str(folder), "WRITE_FAILED", "the backup folder is a link, a file or belongs to someone else")
    folder.chmod(0o700)
    for above in {one.parent for one in (folder, *missing)}:
        with Tree(above) as parent:
            parent.sync([""])


def _copy_all(tree: Tree, changes: ChangeSet, store: Tree, folder: Path) -> Backup:
    entries = []
    for number, change in enumerate(changes.files):
        before, copy = None, None
        if change.before is not None:
            copy = f"{number:05d}.orig"
            before = _copy_original(tree, change, change.before, store, copy)
        entries.append(BackupEntry(change.path, before, change.after_sha256, copy, change.new_dirs))
    return Backup(folder, str(tree.root), secrets.token_hex(8), tuple(entries))


def _copy_original(tree: Tree, change: FileChange, planned: FileImage, store: Tree, copy: str) -> FileImage:
    with named_failures(change.path):
        present = tree.image(change.path)
        found = tree.read(change.path, planned.size) if present and present.sha256 == planned.sha256 else None
    if found is None or found.image.sha256 != planned.sha256:
        raise refused(change.path, "HASH_MISMATCH", "the file was changed by someone else after the change was planned")
    _place(store, copy, found.data)
    return found.image


def _place(store: Tree, name: str, data: bytes) -> None:
    store.land(name, Draft(data, 0o600, owner=(os.geteuid(), os.getegid())), expected=None, tag="backup")


def _index_of(backup: Backup) -> dict[str, Any]:
    return {
        "format": INDEX_FORMAT,
        "root": backup.root,
        "tag": backup.tag,
        "files": [_entry_json(entry) for entry in backup.entries],
    }


def _entry_json(entry: BackupEntry) -> dict[str, Any]:
    before = entry.before
    return {
        "path": entry.path,
        "existed": before is not None,
        "sha256_before": before.sha256 if before else None,
        "sha256_after": entry.after_sha256,
        "size": before.size if before else None,
        "mode": before.mode if before else None,
        "mtime_ns": before.mtime_ns if before else None,
        "uid": before.uid if before else None,
        "gid": before.gid if before else None,
        "backup": entry.copy,
        "new_dirs": list(entry.new_dirs),
    }


def _load(store: Tree, folder: Path) -> Backup | None:
    found = store.read(INDEX_NAME, _INDEX_LIMIT_BYTES)
    if found is None:
        return None
    try:
        index = json.loads(found.data)
        if index["format"] != INDEX_FORMAT:
            raise ValueError(f"its format is {index['format']!r}, this program reads {INDEX_FORMAT}")
        entries = tuple(_entry_from(one) for one in index["files"])
        return Backup(folder, str(index["root"]), str(index["tag"]), entries)
    except (ValueError, KeyError, TypeError) as problem:
        raise RollbackFailed(
            f"the backup index {folder / INDEX_NAME} cannot be read: {problem}",
            hint="The copies of the original files lie beside it; put them back by hand.",
        ) from None


def _entry_from(one: Mapping[str, Any]) -> BackupEntry:
    before = None
    if one["existed"]:
        numbers = [int(one[key]) for key in ("size", "mode", "mtime_ns", "uid", "gid")]
        before = FileImage(str(one["sha256_before"]), *numbers)
    copy = str(one["backup"]) if one["existed"] else None
    return BackupEntry(str(one["path"]), before, str(one["sha256_after"]), copy, tuple(map(str, one["new_dirs"])))

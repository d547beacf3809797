"""The snapshot an attempt is compared with, on disk: a file of lines that grows by what changed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ganger.local.atomic import sync_folder
from ganger.workspaces.files.content_store import write_all
from ganger.workspaces.files.snapshot import FileEntry, Snapshot
from ganger.workspaces.refusals import named_failures

_FORMAT = 1
_REWRITTEN_FROM_BYTES = 64 << 10
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class Baseline:
    """The first line is a whole snapshot, each later one a difference. A torn last line is ignored."""

    def __init__(self, file: Path, root: Path) -> None:
        self._file, self._root = file, root
        self._files: dict[str, FileEntry] = {}
        self._folders: dict[str, int] = {}
        self._first_bytes = self._later_bytes = 0
        self._is_there = False

    def load(self) -> Snapshot | None:
        """None when there is no baseline, when it is of another folder, or when it cannot be read."""
        self._is_there = False
        try:
            lines = self._file.read_bytes().split(b"\n")
            head = json.loads(lines[0])
            if len(lines) < 2 or head["format"] != _FORMAT or head["root"] != str(self._root):
                return None
            self._files, self._folders = {}, {}
            taken_ns = self._add(head)
            # What follows the last line break was not fully written when its writer died.
            for line in lines[1:-1]:
                taken_ns = self._add(json.loads(line))
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        self._first_bytes, self._later_bytes = len(lines[0]), sum(map(len, lines[1:]))
        # Nothing is appended after a torn line.
        self._is_there = not lines[-1]
        return Snapshot(taken_ns, dict(self._files), dict(self._folders))

    def save(self, snapshot: Snapshot) -> None:
        """Durable on return. Nothing is written when only times have changed, because the digests stay valid."""
        put = {path: entry for path, entry in snapshot.files.items() if not self._knows(path, entry)}
        gone = [path for path in self._files if path not in snapshot.files]
        if self._is_there and not put and not gone and self._folders == snapshot.folders:
            return
        if self._is_there and self._later_bytes < _REWRITTEN_FROM_BYTES + self._first_bytes:
            folders = {} if self._folders == snapshot.folders else {"folders": snapshot.folders}
            self._append(_line({"taken_ns": snapshot.taken_ns, "files": put, "gone": gone, **folders}))
        else:
            whole = {"taken_ns": snapshot.taken_ns, "files": snapshot.files, "folders": snapshot.folders}
            self._rewrite(_line({"format": _FORMAT, "root": str(self._root), **whole}))
        self._files, self._folders = dict(snapshot.files), dict(snapshot.folders)

    def _knows(self, path: str, entry: FileEntry) -> bool:
        known = self._files.get(path)
        if known is entry:
            return True
        same = known is not None and known.mode == entry.mode and known.size == entry.size
        return same and known is not None and known.digest == entry.digest and entry.has_digest

    def _add(self, part: Mapping[str, Any]) -> int:
        for path in part.get("gone", ()):
            self._files.pop(path, None)
        for path, fields in part["files"].items():
            self._files[path] = FileEntry._make(fields)
        if "folders" in part:
            self._folders = {str(path): int(mode) for path, mode in part["folders"].items()}
        return int(part["taken_ns"])

    def _append(self, line: bytes) -> None:
        with named_failures(str(self._file)):
            fd = os.open(self._file, _APPEND)
            try:
                self._is_there = False
                write_all(fd, line)
                os.fdatasync(fd)
                self._is_there = True
            finally:
                os.close(fd)
        self._later_bytes += len(line)

    def _rewrite(self, line: bytes) -> None:
        temp = self._file.with_name(f"{self._file.name}.tmp")
        with named_failures(str(self._file)):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(temp, _NEW, 0o600)
            try:
                write_all(fd, line)
                os.fsync(fd)
            finally:
                os.close(fd)
            temp.rename(self._file)
            sync_folder(self._file.parent)
        self._first_bytes, self._later_bytes, self._is_there = len(line), 0, True


def _line(part: Mapping[str, Any]) -> bytes:
    # Names that are not UTF-8 survive: their lone surrogates are escaped.
    return json.dumps(part, separators=(",", ":")).encode("ascii") + b"\n"

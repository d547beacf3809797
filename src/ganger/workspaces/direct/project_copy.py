"""Copies of the project's own folder for trials: without git's and Ganger's files, with packages linked."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ganger.workspaces.files.copying import copy_folder, fill, give_away
from ganger.workspaces.rules.artifacts import is_generated

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_INSTALLED = frozenset({".venv", "venv", "node_modules", ".tox", ".nox"})
_CHUNK_BYTES = 1 << 20

Stamp = tuple[int, int, int, int]


class ProjectCopies:
    """`skip` names paths that are not part of the project. Nothing larger than `limit_bytes` is copied or read."""

    def __init__(self, root: Path, skip: Callable[[str], bool], limit_bytes: int) -> None:
        self._root, self._skip, self._limit = root, skip, limit_bytes
        self._read: dict[str, tuple[Stamp, str]] = {}

    def identity(self, earlier: Mapping[str, bytes | None]) -> str | None:
        """A key for exactly these files and contents, with `earlier` replacing present files (None: no file)."""
        found: dict[str, str] = {}
        size = 0
        for path, seen in self._files():
            size += seen.st_size
            if size > self._limit:
                return None
            if path not in earlier:
                found[path] = self._digest(path, seen)
        found |= {path: hashlib.sha256(data).hexdigest() for path, data in earlier.items() if data is not None}
        told = "\n".join(f"{found[path]} {path!r}" for path in sorted(found))
        return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()

    def copy(self, folder: Path, earlier: Mapping[str, bytes | None]) -> tuple[Path, ...]:
        """Makes `folder`; returns the folders it links to."""
        folder.mkdir(mode=0o755, parents=True)
        linked: list[Path] = []
        for name in sorted(entry.name for entry in self._root.iterdir()):
            self._copy(name, folder, linked)
        for path, data in earlier.items():
            _put(folder, path, data)
        if os.geteuid() == 0:
            owner = self._root.stat()
            give_away(folder, (owner.st_uid, owner.st_gid))
        return tuple(linked)

    def _copy(self, name: str, folder: Path, linked: list[Path]) -> None:
        source = self._root / name
        if self._skip(name):
            return
        if name in _INSTALLED and source.is_dir():
            (folder / name).symlink_to(source)
            linked.append(source.resolve())
        elif source.is_symlink():
            (folder / name).symlink_to(source.readlink())
        elif _was_built_by_cmake(source):
            return
        elif source.is_dir():
            fd = os.open(folder, _DIRECTORY)
            try:
                copy_folder(source, name, into=fd)
            finally:
                os.close(fd)
        elif source.is_file():
            _copy_file(source, folder / name)

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        waiting = [""]
        while waiting:
            above = waiting.pop()
            with suppress(OSError), os.scandir(self._root / above) as listing:
                for entry in listing:
                    path = f"{above}{entry.name}"
                    if self._skip(path) or is_generated(path) or _was_built_by_cmake(self._root / path):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/")
                    else:
                        yield path, entry.stat(follow_symlinks=False)

    def _digest(self, path: str, seen: os.stat_result) -> str:
        stamp = seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino
        known = self._read.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        digest = self._content(path, seen)
        self._read[path] = stamp, digest
        return digest

    def _content(self, path: str, seen: os.stat_result) -> str:
        try:
            if stat.S_ISLNK(seen.st_mode):
                return f"link {(self._root / path).readlink()}"
            if not stat.S_ISREG(seen.st_mode):
                return "other"
            made = hashlib.sha256()
            with os.fdopen(os.open(self._root / path, _READ), "rb") as file:
                while block := file.read(_CHUNK_BYTES):
                    made.update(block)
            return made.hexdigest()
        except OSError:
            return "unreadable"


def _was_built_by_cmake(folder: Path) -> bool:
    """Whether a folder is a cmake build, which stores its own path and is useless in a copy."""
    return (folder / "CMakeCache.txt").is_file()


def _copy_file(source: Path, target: Path) -> None:
    read = os.open(source, _READ)
    try:
        mode = stat.S_IMODE(os.fstat(read).st_mode) & 0o777
        made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            fill(read, made)
        finally:
            os.close(made)
    finally:
        os.close(read)


def _put(folder: Path, path: str, data: bytes | None) -> None:
    """Writes into a copy that no other program has seen yet."""
    place = folder / path
    if data is None:
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
            place.unlink()
        return
    there = place.is_file() and not place.is_symlink()
    # A removed program is executable again, not only its text restored.
    anew = 0o755 if data.startswith((b"#!", b"\x7fELF")) else 0o644
    mode = stat.S_IMODE(place.lstat().st_mode) if there else anew
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(data)
    place.chmod(mode)

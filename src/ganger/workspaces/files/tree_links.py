"""A tree with what watching and undoing need beyond file writes: descriptors, links, folder modes, moves out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ganger.workspaces.files.tree import TEMP_PREFIX, TEMP_SUFFIX, Tree
from ganger.workspaces.refusals import refused

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeLinks(Tree):
    """A tree that can also be searched and repaired."""

    @contextmanager
    def top(self) -> Iterator[int]:
        """The root's own descriptor."""
        fd = os.open(".", _FOLDER, dir_fd=self._root_fd)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def holding(self, path: str) -> Iterator[tuple[int, str]]:
        """The descriptor of the folder a path is in, and its name there."""
        with self._parent(path) as found:
            yield found

    @contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """A regular file for reading; checked first, so that no FIFO blocks and no device is touched."""
        with self._parent(path) as (directory, name):
            _require_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), path)
            fd = os.open(name, _CONTENT, dir_fd=directory)
            try:
                _require_regular(os.fstat(fd), path)
                yield fd
            finally:
                os.close(fd)

    def target(self, path: str) -> bytes:
        """A link's target, as it is written in the link."""
        with self._parent(path) as (directory, name):
            return os.fsencode(os.readlink(name, dir_fd=directory))

    def place_link(self, path: str, target: bytes, *, tag: str) -> None:
        """Put a link in place over whatever is there; a directory there is an error."""
        temp = f"{TEMP_PREFIX}{tag}-{os.urandom(8).hex()}{TEMP_SUFFIX}"
        with self._parent(path) as (directory, name):
            os.symlink(os.fsdecode(target), temp, dir_fd=directory)
            try:
                os.rename(temp, name, src_dir_fd=directory, dst_dir_fd=directory)
            except OSError:
                with suppress(FileNotFoundError):
                    os.unlink(temp, dir_fd=directory)
                raise

    def set_folder_mode(self, path: str, mode: int) -> None:
        """Sets a folder's mode, never a file's: a file's inode may have a second name outside."""
        with self._parent(path) as (directory, name):
            try:
                fd = os.open(name, _FOLDER, dir_fd=directory)
            except PermissionError:
                _unlock(directory, name, mode)
                return
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)

    def carry_out(self, path: str, to: Path, name: str) -> None:
        """Move whatever is at a path, whole, into a folder of the same file system."""
        to.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._parent(path) as (directory, own):
            fd = os.open(to, _FOLDER)
            try:
                os.rename(own, name, src_dir_fd=directory, dst_dir_fd=fd)
                os.fsync(fd)
            finally:
                os.close(fd)


def _unlock(directory: int, name: str, mode: int) -> None:
    """Sets a folder's mode through the only kind of handle that works if its owner may not open it."""
    fd = os.open(name, _HANDLE, dir_fd=directory)
    try:
        Path(f"/proc/self/fd/{fd}").chmod(mode)
    finally:
        os.close(fd)


def _require_regular(entry: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(entry.st_mode):
        raise refused(path, "PATH_NOT_REGULAR", "this is not a regular file; only regular files are read")

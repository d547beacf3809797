"""Removes a folder whatever it contains: through descriptors, never through a link, never outside."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Each level needs one descriptor and one stack frame; deeper entries are moved up first.
_DEEPEST = 64


def throw_away(folder: Path, trash: Path) -> Path | None:
    """Moves a folder into `trash`, so that it is gone from its place at once; None when it did not exist."""
    trash.mkdir(parents=True, exist_ok=True)
    target = trash / f"{folder.name[:100]}-{secrets.token_hex(6)}"
    try:
        folder.rename(target)
    except FileNotFoundError:
        return None
    except PermissionError:
        open_up(folder)
        folder.rename(target)
    return target


class Bin:
    """Discarded folders that wait for deletion. ext4 with a journal creates files many times more slowly after
    thousands were deleted in the last minutes, so deletion is delayed while there is room."""

    def __init__(self, most: int, keep_free_bytes: int) -> None:
        self._waiting: deque[Path] = deque()
        self._most, self._keep_free_bytes = most, keep_free_bytes

    def add(self, folder: Path) -> None:
        self._waiting.append(folder)
        room = shutil.disk_usage(folder.parent).free > self._keep_free_bytes
        while len(self._waiting) > (self._most if room else 0):
            self._discard_one()

    def empty(self) -> None:
        while self._waiting:
            self._discard_one()

    def _discard_one(self) -> None:
        try:
            discard(self._waiting.popleft())
        except IndexError:
            return


def discard(path: Path) -> bool:
    """Removes whatever is at a path; False when something could not be removed, such as an immutable file."""
    try:
        with _opened(path.parent) as above:
            climb = _Climb(above, [path.name])
            whole = True
            while climb.waiting:
                whole = _remove(above, climb.waiting.pop(), climb, 0) and whole
            return whole
    except FileNotFoundError:
        return True
    except OSError:
        return False


def open_up(path: Path, *, above: int | None = None) -> None:
    """Lets the owner read, write and enter a directory, or read a file; a link is left alone."""
    fd = os.open(path, _LOOK, dir_fd=above)
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            wanted = 0o700 if stat.S_ISDIR(mode) else 0o400
            Path(f"/proc/self/fd/{fd}").chmod(stat.S_IMODE(mode) | wanted)
    finally:
        os.close(fd)


def names_in(fd: int) -> list[str]:
    """What a directory holds."""
    with os.scandir(fd) as listing:
        return [entry.name for entry in listing]


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class _Climb:
    """Where entries that lie too deep are moved, and their names there: neither stack nor descriptors may run out."""

    top: int
    waiting: list[str]

    def take(self, fd: int, name: str) -> None:
        higher = f".deep-{secrets.token_hex(8)}"
        with suppress(OSError):
            open_up(Path(name), above=fd)
        os.rename(name, higher, src_dir_fd=fd, dst_dir_fd=self.top)
        self.waiting.append(higher)


def _remove(above: int, name: str, climb: _Climb, depth: int) -> bool:
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            whole = _empty(above, name, climb, depth)
            os.rmdir(name, dir_fd=above)
            return whole
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _empty(above: int, name: str, climb: _Climb, depth: int) -> bool:
    with suppress(OSError):
        open_up(Path(name), above=above)
    fd = os.open(name, _DIRECTORY, dir_fd=above)
    try:
        whole = True
        for found in names_in(fd):
            if depth < _DEEPEST:
                whole = _remove(fd, found, climb, depth + 1) and whole
            else:
                climb.take(fd, found)
        return whole
    finally:
        os.close(fd)

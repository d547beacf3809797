"""Copies folders and changes their owner: shares blocks where the file system can, and never follows a link."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_FICLONE = 0x40049409
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CANNOT = frozenset({errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.ENOTTY, errno.EPERM})

Fill = Callable[[int, int], None]


def share_blocks(source: int, target: int) -> None:
    """Clones a file by sharing its blocks; OSError where the file system cannot."""
    fcntl.ioctl(target, _FICLONE, source)


def fill(source: int, target: int) -> None:
    """Shares blocks, or copies where that is not possible."""
    try:
        share_blocks(source, target)
    except OSError as problem:
        if problem.errno not in _CANNOT:
            raise
        with os.fdopen(os.dup(source), "rb") as read, os.fdopen(os.dup(target), "wb") as written:
            shutil.copyfileobj(read, written, 1 << 20)


def can_share_blocks(folder: Path) -> bool:
    """Whether blocks can be shared; tried once with two small files."""
    one, two = folder / ".share-1", folder / ".share-2"
    try:
        one.write_bytes(b"x" * 4096)
        with one.open("rb") as source, two.open("wb") as target:
            share_blocks(source.fileno(), target.fileno())
    except OSError:
        return False
    finally:
        for file in (one, two):
            file.unlink(missing_ok=True)
    return True


def copy_folder(source: Path, name: str, *, into: int, fill_file: Fill = fill) -> None:
    """Copies a folder to `name` in the directory `into`; pipes, sockets and devices are left out."""
    fd = os.open(source, _DIRECTORY)
    try:
        os.mkdir(name, 0o700, dir_fd=into)
        target = os.open(name, _DIRECTORY, dir_fd=into)
        try:
            _copy_into(fd, target, fill_file)
            _copy_times(fd, target)
        finally:
            os.close(target)
    finally:
        os.close(fd)


def _copy_into(source: int, target: int, fill_file: Fill) -> None:
    with os.scandir(source) as listing:
        entries = list(listing)
    for entry in entries:
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(entry.name, dir_fd=source), entry.name, dir_fd=target)
        elif stat.S_ISDIR(mode):
            _copy_directory(source, target, entry.name, fill_file)
        elif stat.S_ISREG(mode):
            _copy_file(source, target, entry.name, fill_file)


def _copy_directory(source: int, target: int, name: str, fill_file: Fill) -> None:
    below = os.open(name, _DIRECTORY, dir_fd=source)
    try:
        os.mkdir(name, 0o700, dir_fd=target)
        made = os.open(name, _DIRECTORY, dir_fd=target)
        try:
            _copy_into(below, made, fill_file)
            _copy_times(below, made)
        finally:
            os.close(made)
    finally:
        os.close(below)


def _copy_file(source: int, target: int, name: str, fill_file: Fill) -> None:
    read = os.open(name, _READ, dir_fd=source)
    try:
        written = os.open(name, _NEW, 0o600, dir_fd=target)
        try:
            fill_file(read, written)
            _copy_times(read, written)
        finally:
            os.close(written)
    finally:
        os.close(read)


def _copy_times(source: int, target: int) -> None:
    found = os.fstat(source)
    os.fchmod(target, stat.S_IMODE(found.st_mode) & 0o777)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def give_away(folder: Path, owner: tuple[int, int]) -> None:
    """Changes the owner of everything in a folder; of links themselves, never of what they point to."""
    for fd, names in _every_directory(folder):
        for name in names:
            os.chown(name, *owner, dir_fd=fd, follow_symlinks=False)
    os.chown(folder, *owner, follow_symlinks=False)


def stats_of(folder: Path) -> dict[str, os.stat_result]:
    """Every file and link of an unused folder, without its git folder."""
    found: dict[str, os.stat_result] = {}
    waiting = [("", folder)]
    while waiting:
        above, place = waiting.pop()
        with os.scandir(place) as listing:
            for entry in listing:
                path = f"{above}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting += [] if path == ".git" else [(f"{path}/", Path(entry.path))]
                else:
                    found[path] = entry.stat(follow_symlinks=False)
    return found


def _every_directory(folder: Path) -> Iterator[tuple[int, list[str]]]:
    for _, directories, files, fd in os.fwalk(folder, follow_symlinks=False):
        yield fd, [*directories, *files]


def bytes_of(folder: Path) -> int:
    """The space a folder takes on the disk; what cannot be read counts as zero."""
    total = 0
    waiting = [folder]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as listing:
            for entry in listing:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
    return total

"""The files of a run: its folder, private files, durable replacement with errors that name the file, and the sweep of
what killed processes left."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ganger.errors import DiskFullError, GangerError
from ganger.local import atomic
from ganger.local.procfs import living_since


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where one run keeps everything; names as users know them.

    `shown` is where people look, if that is elsewhere, and `anchor` the folder above it. Below `anchor`, agents may
    have replaced anything, so nothing there is ever read. `store_files`: what is there of the run's store.
    """

    path: Path
    shown: Path | None = None
    anchor: Path | None = None
    store_files: tuple[str, ...] = ()

    @property
    def known_as(self) -> Path:
        """As people know it."""
        return self.shown or self.path

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def report(self) -> Path:
        return self.path / "report.md"

    def make(self, *, passable: bool = False) -> None:
        """Creates the folders; says plainly when the place cannot be written. `passable`: agents of another user must
        be able to reach what is theirs."""
        with named_os_errors(self.path):
            make_private(self.path, _PASSABLE if passable else _PRIVATE)
            for name in ("logs", "prompts", "backups"):
                make_private(self.path / name, _PRIVATE)


_PRIVATE, _PASSABLE = 0o700, 0o711
_OF_OTHERS = 0o077


def make_private(folder: Path, mode: int = _PRIVATE) -> None:
    """Private, even if an earlier version left it open."""
    folder.parent.mkdir(parents=True, exist_ok=True, mode=mode)
    folder.mkdir(exist_ok=True, mode=mode)
    found = folder.stat()
    if stat.S_IMODE(found.st_mode) & _OF_OTHERS & ~mode or (found.st_mode & mode) != mode:
        folder.chmod(mode)


@contextlib.contextmanager
def named_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"{path}: the disk is full; what was recorded so far is safe",
                hint="free some space, then run the same command again",
            ) from error
        raise GangerError(
            f"{path}: cannot be written ({error.strerror})",
            hint="choose another place with state_dir in ganger.toml, or fix its permissions",
            code="NOT_WRITABLE",
        ) from error


_AS_FOUND = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write_private(path: Path, text: str) -> None:
    """Files that are rewritten whenever they are missing: no care for a power cut, and private. A link or a
    pipe that an agent put there is neither followed nor waited for."""
    opener = lambda name, flags: os.open(name, flags | _AS_FOUND, 0o600)  # noqa: E731
    with open(path, "w", encoding="utf-8", opener=opener) as file:
        file.write(text)


def open_log(path: Path) -> BinaryIO:
    """A log, which an agent without a sandbox may have replaced: only a regular file is read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def clear_way(path: Path) -> None:
    """An agent without a sandbox may put a folder in the place of Ganger's own file; it is removed."""
    if path.is_dir() and not path.is_symlink():
        with named_os_errors(path):
            path.rename(path.with_name(f"{path.name}.{time.time_ns()}.aside"))


def replace_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Old or new content at every instant, also after a power cut."""
    with named_os_errors(path):
        atomic.replace_file(path, text.encode(), mode)


_UNFINISHED = re.compile(r"\..+\.([0-9]+)\.tmp")
_UNFINISHED_SEC = 60.0
# Made and filled by agents.
_NOT_OURS = frozenset(("work", "pool", "homes", "checks", "desks"))


def sweep_unfinished(folder: Path) -> list[Path]:
    """Removes what processes left that were killed in `replace_file`, here and in Ganger's own folders just below."""
    swept = []
    for place in (folder, *_folders_in(folder)):
        for path in _temporary_in(place):
            made_by = _UNFINISHED.fullmatch(path.name)
            with contextlib.suppress(OSError):
                old = time.time() - path.lstat().st_mtime > _UNFINISHED_SEC
                if made_by and old and not path.is_dir() and living_since(int(made_by[1])) is None:
                    path.unlink()
                    swept.append(path)
    return swept


def _temporary_in(place: Path) -> list[Path]:
    """A place that cannot be listed now is swept another time."""
    try:
        return list(place.glob(".*.tmp"))
    except OSError:
        return []


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and e.name not in _NOT_OURS]
    except OSError:
        return []

"""What people and programs read of a run whose own folder agents cannot reach.

It is in a place where agents write, so nothing here is ever read back, no link there is followed, and whatever is in
the way is replaced. A write that fails is reported once and stops no work.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ganger.local.run_folder import RunFolder
from ganger.ports.clock import Clock

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_THE_WAY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_TRIES = 3
_LOGS = "logs"
# What making copies costs, and how much of a run's own time it may take.
_FILE_TAKES_SEC, _BYTES_A_SEC = 0.0005, 200e6
_ALWAYS_SEC, _SHARE = 0.05, 0.02
# Linked as they are; a person finds them by the names that the guides use.
_LINKED = (
    *("logs", "progress.md", "prompts", "patches", "saved", "edits", "backups", "lead.log", "keeper"),
    "counter",
)

_told: set[Path] = set()


def show(folder: RunFolder, name: str, text: str) -> None:
    """A file beside the run's own file of that name, for people who look where runs are documented to be."""
    with _shown(folder) as place:
        if place is not None:
            _place_file(place, name, lambda file: _write_all(file, text.encode()))


def show_ignored(folder: RunFolder) -> None:
    """Runs are never committed by accident."""
    if folder.shown is not None:
        above = RunFolder(folder.path, folder.shown.parent, folder.anchor)
        with _shown(above) as place:
            if place is not None:
                _place_file(place, ".gitignore", lambda file: _write_all(file, b"*\n"))


@contextmanager
def _shown(folder: RunFolder, *below: str) -> Iterator[int | None]:
    """The shown folder, or one in it, opened from its anchor each time; None if it does not exist."""
    if folder.shown is None or folder.anchor is None:
        yield None
        return
    try:
        place = _descend(os.open(folder.anchor, _FOLDER), (*folder.shown.relative_to(folder.anchor).parts, *below))
    except OSError as problem:
        _tell(folder.shown, problem)
        yield None
        return
    try:
        yield place
    except OSError as problem:
        _tell(folder.shown, problem)
    finally:
        os.close(place)


def _tell(shown: Path, problem: OSError) -> None:
    if shown not in _told:
        _told.add(shown)
        with contextlib.suppress(OSError, ValueError):
            print(
                f"ganger: {shown} cannot be written ({problem.strerror}); the run continues; ganger status shows it",
                file=sys.stderr,
            )


def _descend(folder: int, parts: tuple[str, ...]) -> int:
    """Consumes `folder`. Anything that is not a real folder is replaced by one."""
    for part in parts:
        try:
            inner = _opened(folder, part)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _opened(folder: int, part: str) -> int:
    for _ in range(_TRIES):
        try:
            return os.open(part, _FOLDER, dir_fd=folder)
        except OSError as problem:
            if problem.errno not in _IN_THE_WAY:
                raise
        _clear(folder, part)
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=folder)
    return os.open(part, _FOLDER, dir_fd=folder)


def _clear(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(name, dir_fd=folder)


def _place_file(folder: int, name: str, fill: Callable[[int], None]) -> None:
    """Whole or not at all; replaces a link instead of following it."""
    fresh = f".{name}.{os.getpid()}.tmp"
    try:
        file = os.open(fresh, _NEW_FILE, 0o600, dir_fd=folder)
    except FileExistsError:
        _clear(folder, fresh)
        file = os.open(fresh, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        fill(file)
    finally:
        os.close(file)
    _rename(folder, fresh, name)


def _place_link(folder: int, name: str, target: Path) -> None:
    try:
        os.symlink(target, name, dir_fd=folder)
        return
    except FileExistsError:
        with contextlib.suppress(OSError):
            if os.readlink(name, dir_fd=folder) == str(target):
                return
    fresh = f".{name}.{os.getpid()}.tmp"
    _clear(folder, fresh)
    os.symlink(target, fresh, dir_fd=folder)
    _rename(folder, fresh, name)


def _rename(folder: int, fresh: str, name: str) -> None:
    try:
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except (IsADirectoryError, NotADirectoryError, FileExistsError):
        _clear(folder, name)
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


class ShownFiles:
    """Keeps the shown folder of a run in step: links while the run continues, and plain files at the end."""

    def __init__(self, folder: RunFolder, clock: Clock) -> None:
        self._folder, self._clock = folder, clock
        self._linked: set[str] = set()
        self._begun = clock.monotonic()

    def refresh(self) -> None:
        """Links what was added since."""
        if self._folder.shown is None:
            return
        names = (*self._folder.store_files, *_LINKED)
        missing = [name for name in names if name not in self._linked and (self._folder.path / name).exists()]
        if missing:
            with _shown(self._folder) as place:
                if place is not None:
                    for name in missing:
                        _place_link(place, name, self._folder.path / name)
                    self._linked.update(missing)

    def finish(self) -> None:
        """The run writes no more: what is shown becomes correct again, whatever agents did to it, and can be kept."""
        if self._folder.shown is None:
            return
        show_ignored(self._folder)
        self._linked.clear()
        self.refresh()
        with _shown(self._folder) as place:
            if place is not None:
                _copy_file(self._folder.path / "progress.md", place, "progress.md")
                self._copy_logs(place)

    def _copy_logs(self, place: int) -> None:
        """Copies, unless that takes long beside the run itself, as with many very short attempts: then links stay."""
        logs = self._folder.path / _LOGS
        sizes = {entry.name: entry.stat().st_size for entry in os.scandir(logs) if entry.is_file(follow_symlinks=False)}
        takes_sec = len(sizes) * _FILE_TAKES_SEC + sum(sizes.values()) / _BYTES_A_SEC
        if takes_sec > max(_ALWAYS_SEC, (self._clock.monotonic() - self._begun) * _SHARE):
            return
        fresh = f".{_LOGS}.{os.getpid()}.tmp"
        copies = _opened(place, fresh)
        try:
            for name in sizes:
                _copy_file(logs / name, copies, name)
        finally:
            os.close(copies)
        _clear(place, _LOGS)
        os.rename(fresh, _LOGS, src_dir_fd=place, dst_dir_fd=place)


def _copy_file(source: Path, folder: int, name: str) -> None:
    try:
        opened = os.open(source, _READ)
    except OSError:
        # It was never written, or is not a file: there is nothing to show.
        return
    try:
        size = os.fstat(opened).st_size
        _place_file(folder, name, lambda file: _pour(opened, file, size))
    finally:
        os.close(opened)


def _pour(source: int, target: int, size: int) -> None:
    left = size
    while left > 0:
        data = os.read(source, min(left, 1 << 20))
        if not data:
            return
        _write_all(target, data)
        left -= len(data)

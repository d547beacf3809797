"""What people and programs read of a run whose own folder is out of the agents' reach.

It lies where agents write, so nothing here is ever read back, nothing that is there is followed, and whatever stands in
the way is replaced. What cannot be written is told once and stops nobody.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ganger.core import events as ev
from ganger.core.names import verify_log, worker_log
from ganger.core.records import RunState
from ganger.engine.files import RunFolder

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_THE_WAY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_TRIES = 3
_LOGS = "logs"
# A larger log stays a link: a copy would take as much of the disk again.
_LARGEST_COPY = 16 * 1024 * 1024
# Led to as they are; a person finds them by the names that the guides have.
_LINKED = (
    "ganger.db",
    "progress.md",
    "prompts",
    "patches",
    "saved",
    "edits",
    "backups",
    "lead.log",
    "keeper",
    "counter",
)

Mark = tuple[int, int, int, int, int]
_NOTHING: Mark = (0, 0, 0, 0, 0)
_told: set[Path] = set()


def show(folder: RunFolder, name: str, text: str) -> None:
    """A file beside the run's own of that name, for whoever looks where runs are said to be."""
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
    """The folder that is shown, or one in it, opened anew from its anchor each time; None where there is none."""
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
                f"ganger: {shown} cannot be written ({problem.strerror}); the run goes on, and ganger status shows it",
                file=sys.stderr,
            )


def _descend(folder: int, parts: tuple[str, ...]) -> int:
    """Consumes `folder`. What is no folder of its own gives way to one."""
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


def _place_file(folder: int, name: str, fill: Callable[[int], None]) -> Mark:
    """Whole or not at all; in place of a link, not through it. Tells which file it is then."""
    fresh = f".{name}.{os.getpid()}.tmp"
    try:
        file = os.open(fresh, _NEW_FILE, 0o600, dir_fd=folder)
    except FileExistsError:
        _clear(folder, fresh)
        file = os.open(fresh, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        fill(file)
        made = os.fstat(file).st_ino
    finally:
        os.close(file)
    _rename(folder, fresh, name)
    found = _mark(folder, name)
    return found if found[0] == made else _NOTHING


def _mark(folder: int, name: str) -> Mark:
    """A file as it is now: whoever changes it changes this."""
    try:
        found = os.lstat(name, dir_fd=folder)
    except OSError:
        return _NOTHING
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode


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


class Showcase:
    """Keeps the shown folder of a run in step: logs of what runs are links, those of what ended are copies."""

    def __init__(self, folder: RunFolder, state: RunState) -> None:
        self._folder, self._state = folder, state
        self._logs_seen = -1
        self._linked: set[str] = set()
        self._copied: dict[str, Mark] = {}
        self._ended: list[str] = []

    def on_event(self, recorded: ev.Recorded) -> None:
        """Only noted: what many short attempts leave is brought over together."""
        event = recorded.event
        if self._folder.shown is not None and isinstance(event, ev.TaskSettled | ev.TaskRequeued):
            attempt = self._state.tasks[event.task].attempts
            self._ended += [worker_log(event.task, attempt), verify_log(event.task, attempt)]

    def refresh(self) -> None:
        """Leads to what has come since, and brings over what has ended."""
        if self._folder.shown is None:
            return
        missing = [name for name in _LINKED if name not in self._linked and (self._folder.path / name).exists()]
        if missing:
            with _shown(self._folder) as place:
                if place is not None:
                    for name in missing:
                        _place_link(place, name, self._folder.path / name)
                    self._linked.update(missing)
        if self._ended:
            ended, self._ended = self._ended, []
            self._copy_logs(ended)
        self._link_new_logs()

    def _link_new_logs(self) -> None:
        """Those that nobody has told of; the folder shows whether any came."""
        logs = self._folder.path / _LOGS
        try:
            changed = logs.stat().st_mtime_ns
            if changed == self._logs_seen:
                return
            names = {f"{_LOGS}/{name}" for name in os.listdir(logs)}  # noqa: PTH208
        except OSError:
            return
        self._logs_seen = changed
        unknown = names - self._linked - self._copied.keys()
        if unknown:
            with _shown(self._folder, _LOGS) as place:
                if place is not None:
                    there = set(os.listdir(place))  # noqa: PTH208
                    self._linked |= {name for name in unknown if _base(name) in there}
            self._link_logs(sorted(unknown - self._linked))

    def finish(self) -> None:
        """Nobody writes logs any more: what is shown is whole by itself, whatever agents made of it meanwhile."""
        if self._folder.shown is None:
            return
        show_ignored(self._folder)
        self._linked.difference_update(_LINKED)
        self.refresh()
        with _shown(self._folder) as place:
            if place is not None:
                _copy_file(self._folder.path / "progress.md", place, "progress.md")
        with contextlib.suppress(OSError):
            names = os.listdir(self._folder.path / _LOGS)  # noqa: PTH208
            self._copy_logs(sorted(f"{_LOGS}/{name}" for name in names), trusting=True)

    def _link_logs(self, paths: list[str]) -> None:
        if not paths:
            return
        with _shown(self._folder, _LOGS) as place:
            if place is not None:
                for path in paths:
                    _place_link(place, _base(path), self._folder.path / path)
                    self._linked.add(path)
                    self._copied.pop(path, None)

    def _copy_logs(self, paths: list[str], *, trusting: bool = False) -> None:
        """`trusting`: a copy of the same size is one that an earlier lead made."""
        with _shown(self._folder, _LOGS) as place:
            if place is None:
                return
            for path in paths:
                known, found = self._copied.get(path), _mark(place, _base(path))
                if known != found and not (trusting and known is None and self._is_of_before(path, found)):
                    self._copied[path] = _copy_file(self._folder.path / path, place, _base(path))

    def _is_of_before(self, path: str, found: Mark) -> bool:
        """Whether an earlier lead has copied it, as far as can be seen without reading it."""
        with contextlib.suppress(OSError):
            return stat.S_ISREG(found[4]) and found[1] == (self._folder.path / path).stat().st_size
        return False


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _copy_file(source: Path, folder: int, name: str) -> Mark:
    try:
        opened = os.open(source, _READ)
    except OSError:
        # It was never written, or is no file: there is nothing to show.
        return _NOTHING
    try:
        size = os.fstat(opened).st_size
        if size > _LARGEST_COPY:
            _place_link(folder, name, source)
            return _mark(folder, name)
        return _place_file(folder, name, lambda file: _pour(opened, file, size))
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

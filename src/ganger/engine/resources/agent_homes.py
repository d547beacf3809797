"""Homes of agents: a folder for each task and agent that outlives its processes, so that a session can continue.

An agent owns its home while it works and is not trusted with it: Ganger follows no link there when it writes.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Collection, Mapping
from pathlib import Path, PurePosixPath

from ganger.core.names import file_stem
from ganger.errors import GangerError
from ganger.local.run_folder import named_os_errors

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
# Nothing is there, or something that is not a folder; after any other error, clearing it could lose a session.
_IN_THE_WAY = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)

# No task's or agent's name has a "+" in its file name.
_LIST = "+files"
_LONGEST_LIST = 1024 * 1024
_NOTHING: Mapping[str, bytes] = {}

Owner = tuple[int, int] | None
Clear = Callable[[int, str], None]


class Homes:
    """The homes of one run. `shared` is for what all agents of a kind may read; agents never own it."""

    def __init__(self, folder: Path, shared: Path, discard: Callable[[Path], object]) -> None:
        """`discard` removes whatever is at a path, however it was made."""
        self._folder, self._shared, self.discard = folder / "homes", shared, discard

    def of(self, task: str, agent: str) -> Path:
        return self._folder / f"{file_stem(task)}@{file_stem(agent)}"

    def furnish(
        self,
        home: Path,
        files: Mapping[str, bytes],
        owner: Owner,
        *,
        fresh: bool = False,
        own: Mapping[str, bytes] = _NOTHING,
    ) -> None:
        """Makes it and writes the agent's own settings; anything in the way, including links it left, is replaced.

        `fresh`: no session continues in it, so nothing that an earlier process left there is kept. `own`: files of its
        session, which are written too and are not on the list of what is removed.
        """
        with named_os_errors(home):
            if fresh:
                self._discard(home)
            try:
                self._fill(home, files, owner, own)
            except PermissionError:
                # The agent locked a folder against its owner: then nothing of its session can be used either.
                self._discard(home)
                self._fill(home, files, owner, _NOTHING)

    def _fill(self, home: Path, files: Mapping[str, bytes], owner: Owner, own: Mapping[str, bytes]) -> None:
        self._folder.mkdir(mode=0o711, exist_ok=True)
        above = os.open(self._folder, _FOLDER)
        try:
            # The list comes first: it names what may be there, whenever a process dies.
            self._write(above, PurePosixPath(_beside(home).name), json.dumps(list(files)).encode(), None)
        except BaseException:
            os.close(above)
            raise
        top = _descend(above, (home.name,), clear=self._clear)
        try:
            _give(top, owner)
            for name, data in {**own, **files}.items():
                self._write(top, _inside(name), data, owner)
        finally:
            os.close(top)

    def share(self, kind: str) -> Path:
        place = self._shared / file_stem(kind)
        with named_os_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        return place

    def remove(self, task: str) -> None:
        """Harmless to repeat. What an agent made unreadable for its owner stays until `ganger clean`."""
        for home in self._homes(f"{_escaped(file_stem(task))}@*"):
            self._discard(home)

    def sweep(self, working: Collection[str], waiting: Collection[str]) -> None:
        """Removes all homes except those of tasks whose agent works, or whose session may continue."""
        at_work, kept = {file_stem(name) for name in working}, {file_stem(name) for name in waiting}
        for home in self._homes("*@*"):
            owner = home.name.rpartition("@")[0]
            if owner not in at_work and owner not in kept:
                self._discard(home)
            elif owner not in at_work:
                self.forget(home)

    def _discard(self, home: Path) -> None:
        self.discard(home)
        if not os.path.lexists(home):
            self.discard(_beside(home))

    def _homes(self, pattern: str) -> list[Path]:
        """Also homes of which only the list is left."""
        try:
            return sorted({self._folder / found.name.removesuffix(_LIST) for found in self._folder.glob(pattern)})
        except OSError:
            return []

    def forget(self, home: Path) -> None:
        """What was put there, a login included, is in the home only while the agent works."""
        try:
            self._forget(home)
        except PermissionError:
            self._discard(home)

    def _forget(self, home: Path) -> None:
        for name in _listed(home):
            try:
                path = _inside(name)
                folder = _descend(os.open(home, _FOLDER), path.parent.parts)
            except PermissionError:
                raise
            except (OSError, ValueError, GangerError):
                continue
            try:
                os.unlink(path.name, dir_fd=folder)
            except (FileNotFoundError, IsADirectoryError, ValueError):
                continue
            finally:
                os.close(folder)

    def _write(self, top: int, path: PurePosixPath, data: bytes, owner: Owner) -> None:
        folder = _descend(os.dup(top), path.parent.parts, clear=self._clear, owner=owner)
        try:
            self._clear(folder, path.name)
            file = os.open(path.name, _NEW_FILE, _PRIVATE_FILE, dir_fd=folder)
            with open(file, "wb") as opened:
                opened.write(data)
                _give(opened.fileno(), owner)
        finally:
            os.close(folder)

    def _clear(self, folder: int, name: str) -> None:
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return
        except (IsADirectoryError, PermissionError):
            self.discard(Path(f"/proc/self/fd/{folder}") / name)


def _beside(home: Path) -> Path:
    """The list of what was put into a home, where a sandboxed agent cannot reach it."""
    return home.with_name(home.name + _LIST)


def _listed(home: Path) -> list[str]:
    """An agent without a sandbox may have replaced it with anything."""
    try:
        with open(os.open(_beside(home), _READ), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return []
            names = json.loads(file.read(_LONGEST_LIST))
    except (OSError, ValueError, RecursionError):
        return []
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _inside(name: str) -> PurePosixPath:
    """A name from a configuration may lead anywhere, including the operator's own file of that name."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name:
        raise GangerError(
            f"{name!r} is not a path inside a home",
            hint="name files in home_files relative to your home, such as .tool/login.json",
            code="NOT_WRITABLE",
        )
    return path


def _descend(folder: int, parts: tuple[str, ...], *, clear: Clear | None = None, owner: Owner = None) -> int:
    """Consumes `folder`. With `clear`, which removes what is in the way, missing folders are created."""
    for part in parts:
        try:
            try:
                inner = os.open(part, _FOLDER, dir_fd=folder)
            except OSError as error:
                if clear is None or error.errno not in _IN_THE_WAY:
                    raise
                clear(folder, part)
                os.mkdir(part, _PRIVATE_FOLDER, dir_fd=folder)
                inner = os.open(part, _FOLDER, dir_fd=folder)
                _give(inner, owner)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _give(descriptor: int, owner: Owner) -> None:
    if owner is not None:
        os.fchown(descriptor, *owner)


def _escaped(stem: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in stem)

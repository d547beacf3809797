"""Control groups, where this process may make some: each launch lives in one of its own, which no descendant can leave
by forking, and which is ended as a whole."""

# ruff: noqa: PTH
from __future__ import annotations

import contextlib
import os
import time

from ganger.launchers.proc import read

PREFIX = "ganger-"
_SLOW_SEC = 0.003
_CLEAR_WITHIN_SEC = 10.0


class Cgroups:
    """One folder of control groups below the process's own."""

    def __init__(self, home: str, name: str) -> None:
        self._home = home
        self.folder = f"{home}/{PREFIX}{name}"

    @staticmethod
    def make(name: str) -> Cgroups | None:
        """None where control groups cannot be had, or where moving between them costs more than it is worth."""
        home = own_cgroup()
        if home is None:
            return None
        groups = Cgroups(home, name)
        try:
            os.mkdir(groups.folder)
        except OSError:
            return None
        if groups._usable():
            return groups
        clear(groups.folder)
        return None

    def enter(self, name: str) -> None:
        """What this process starts from now on is born in the group; no window is left in which it is not."""
        os.mkdir(f"{self.folder}/{name}")
        _write(f"{self.folder}/{name}/cgroup.procs", "0")

    def leave(self) -> None:
        _write(f"{self._home}/cgroup.procs", "0")

    def kill(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            _write(f"{self.folder}/{name}/cgroup.kill", "1")

    def remove(self, name: str) -> bool:
        """Removes the group if nothing lives in it, which proves that nothing does."""
        return _remove(f"{self.folder}/{name}")

    def close(self) -> None:
        clear(self.folder)

    def _usable(self) -> bool:
        if not os.path.exists(f"{self.folder}/cgroup.kill"):
            return False
        try:
            began = time.monotonic()
            for trial in ("a", "b"):
                self.enter(trial)
                self.leave()
            return (time.monotonic() - began) / 4 < _SLOW_SEC
        except OSError:
            return False


def own_cgroup() -> str | None:
    """The folder of this process's version 2 control group, wherever that hierarchy is mounted."""
    own = next((line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::")), None)
    if own is None:
        return None
    for line in _lines("/proc/self/mountinfo"):
        left, _, right = line.partition(" - ")
        fields = left.split()
        if right.startswith("cgroup2 ") and own.startswith(fields[3].rstrip("/")):
            folder = f"{_unescaped(fields[4])}/{own[len(fields[3].rstrip('/')) :].lstrip('/')}".rstrip("/")
            if str(os.getpid()) in _lines(f"{folder}/cgroup.procs"):
                return folder
    return None


def clear(folder: str) -> bool:
    """Ends everything in a folder of control groups that was made here, and removes it; harmless when it is gone."""
    if not os.path.basename(folder).startswith(PREFIX):
        return False
    give_up_at = time.monotonic() + _CLEAR_WITHIN_SEC
    while os.path.isdir(folder) and not _remove(folder):
        if time.monotonic() > give_up_at:
            return False
        with contextlib.suppress(OSError):
            _write(f"{folder}/cgroup.kill", "1")
        time.sleep(0.001)
    return True


def _remove(path: str) -> bool:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        # A program that may make groups itself can have left some in its own.
        with contextlib.suppress(OSError):
            inner = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
            if inner and all([_remove(each) for each in inner]):
                os.rmdir(path)
                return True
        return False
    return True


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _lines(path: str) -> list[str]:
    return os.fsdecode(read(path)).splitlines()


def _unescaped(name: str) -> str:
    return name.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")

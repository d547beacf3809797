"""A control group for the keeper and all its programs, where this process may make one: it is killed as a whole."""

# ruff: noqa: PTH102, PTH106, PTH110, PTH112, PTH119, PTH120
# Importing pathlib would take longer than all other imports of the guard.

from __future__ import annotations

import contextlib
import os
import time

from ganger.local.procfs import read

PREFIX = "ganger-"
_CLEAR_WITHIN_SEC = 10.0


def make(name: str) -> str | None:
    """A new group below this process's own, for this process and all its future children; None where that is not
    possible."""
    home = own_cgroup()
    if home is None:
        return None
    folder = f"{home}/{PREFIX}{name}"
    try:
        os.mkdir(folder)
    except OSError:
        return None
    try:
        if os.path.exists(f"{folder}/cgroup.kill"):
            _write(f"{folder}/cgroup.procs", "0")
            return folder
    except OSError:
        pass
    _remove(folder)
    return None


def leave(folder: str) -> bool:
    """Moves this process to the parent group and removes the old one if it is empty; returns whether it was."""
    with contextlib.suppress(OSError):
        _write(f"{os.path.dirname(folder)}/cgroup.procs", "0")
    return _remove(folder)


def own_cgroup() -> str | None:
    """The folder of this process's control group, version 2, wherever that hierarchy is mounted."""
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
    """Kills everything in a control group folder that was made here, and removes it; safe to call when it is gone."""
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
        # A program that can make groups may have left some inside its own.
        with contextlib.suppress(OSError):
            inner = [entry.path for entry in os.scandir(path) if entry.is_dir(follow_symlinks=False)]
            if inner and False not in [_remove(each) for each in inner]:
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

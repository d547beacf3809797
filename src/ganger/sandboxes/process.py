"""The process to be confined: its environment, its user, its limits, and the program its launch names."""

from __future__ import annotations

import os
import pwd
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path

from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.paths import TEMPORARY, is_within
from ganger.sandboxes.settings import SandboxSettings

_POINTS_OUTSIDE = ("DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK", "TMP", "TEMP")
# Variables that the shell, bubblewrap and the interpreter add on the way.
ADDED_ON_THE_WAY = ("PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE")
USER_NAME = "agent"


def inside(env: Mapping[str, str], home: str, *, renamed: bool, furnished: bool = False) -> dict[str, str]:
    """`furnished`: the home was made for this process, so its variables about places in the home are kept."""
    kept = {name: value for name, value in env.items() if name not in _POINTS_OUTSIDE}
    names = {"USER": USER_NAME, "LOGNAME": USER_NAME} if renamed else {}
    places = {
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
    }
    chosen = {name: env[name] for name in places if furnished and name in env}
    return {
        **kept,
        **names,
        "HOME": home,
        "TMPDIR": "/tmp",  # noqa: S108
        **places,
        **chosen,
        "XDG_RUNTIME_DIR": "/tmp/run",  # noqa: S108
    }


# Neither a distribution nor systemd assigns the user ids from 60706 to 61183, and every container maps them.
_FIRST, _LAST = 61023, 61183


def owner_of_workspaces(uid: int | None) -> tuple[int, int] | None:
    """The owner of what an agent may write; None: this user, who is not root."""
    if os.geteuid() != 0:
        return None
    number = uid if uid is not None else next((n for n in range(_FIRST, _LAST) if not _is_taken(n)), _FIRST)
    return number, number


def identity_in(room: Room, owner: tuple[int, int]) -> tuple[int, int]:
    """In a folder that belongs to another user already, the agent becomes that user: a project never changes its
    owner."""
    for folder in room.writable:
        if folder.is_dir():
            found = folder.stat()
            return found.st_uid, found.st_gid
    return owner


def users_with(uid: int, gid: int, home: str) -> str:
    """The passwd file; it has the agent's user, because many programs look up their own name."""
    listed = _listed().rstrip("\n")
    return listed if is_listed(uid) else f"{listed}\n{USER_NAME}:x:{uid}:{gid}::{home}:/bin/sh"


def is_listed(uid: int) -> bool:
    return any(line.split(":")[2:3] == [str(uid)] for line in _listed().splitlines())


def _listed() -> str:
    try:
        return Path("/etc/passwd").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _is_taken(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


_MB = 1 << 20
# Before 5.14 the kernel counted a user's processes on the whole machine, in all namespaces together.
_COUNTS_PER_NAMESPACE = (5, 14)


def orders(settings: SandboxSettings, *, counted_apart: bool) -> Iterator[str]:
    """`counted_apart`: whether the kernel counts this tree's processes separately from the user's others."""
    yield f"limit={resource.RLIMIT_CORE}:0"
    yield f"limit={resource.RLIMIT_FSIZE}:{settings.file_mb * _MB}"
    if settings.memory_mb is not None:
        # Address space would be the wrong measure: many runtimes reserve far more of it than they use.
        yield f"limit={resource.RLIMIT_DATA}:{settings.memory_mb * _MB}"
    if counted_apart:
        yield f"limit={resource.RLIMIT_NPROC}:{settings.processes}"


def counts_namespaces_apart() -> bool:
    numbers = os.uname().release.split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdigit()) >= _COUNTS_PER_NAMESPACE


# ruff: noqa: PTH100, PTH113, PTH118
# Names are text, like the places they are compared with.


def file_of(launch: Launch) -> str:
    """The file that the launcher will find; empty where there is none."""
    found = (place for place in _places(launch) if os.path.isfile(place) and os.access(place, os.X_OK))
    return next(found, "")


def will_be_missed(launch: Launch, room: Room, settings: SandboxSettings) -> bool:
    """Whether no sandboxed process can create the program before it is started: such a launch needs no sandbox."""
    folders = [os.path.abspath(folder) for folder in (*room.writable, *settings.writable)]
    return not any(is_within(place, folder) for place in _places(launch) for folder in (*folders, *TEMPORARY))


def _places(launch: Launch) -> list[str]:
    """The candidate files, in search order."""
    if not launch.argv or not launch.argv[0]:
        return []
    name, cwd = launch.argv[0], str(launch.cwd.absolute())
    folders = [""] if "/" in name else launch.env.get("PATH", os.defpath).split(os.pathsep)
    return [os.path.normpath(os.path.join(cwd, folder, name)) for folder in folders]

"""Who a confined process is: an ordinary user stays itself; root becomes one who owns nothing but workspaces."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from ganger.ports import Room
from ganger.sandboxes.environment import USER_NAME

# Neither a distribution nor systemd gives out the numbers from 60706 to 61183, and every container maps them.
_FIRST, _LAST = 61023, 61183


def owner_of_workspaces(uid: int | None) -> tuple[int, int] | None:
    """Who must own what an agent may write; None: this user, who is not root."""
    if os.geteuid() != 0:
        return None
    number = uid if uid is not None else next((n for n in range(_FIRST, _LAST) if not _is_taken(n)), _FIRST)
    return number, number


def identity_in(room: Room, owner: tuple[int, int]) -> tuple[int, int]:
    """A folder that belongs to somebody else already is worked on by that one: nobody's project is given away."""
    for folder in room.writable:
        if folder.is_dir():
            found = folder.stat()
            return found.st_uid, found.st_gid
    return owner


def users_with(uid: int, gid: int, home: str) -> str:
    """The list of users; whoever works here is in it, because many programs ask for their own name."""
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

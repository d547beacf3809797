"""The user of a sandboxed process: an ordinary user stays the same; root becomes a user who owns only workspaces."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from ganger.ports import Room
from ganger.sandboxes.process.environment import USER_NAME

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

"""The program a launch names: its file, and whether it is certain that there is none."""

# ruff: noqa: PTH100, PTH113, PTH118
# Names are text, like the places they are compared with.

from __future__ import annotations

import os

from ganger.ports import Launch, Room
from ganger.sandboxes.paths import TEMPORARY, is_within
from ganger.sandboxes.settings import SandboxSettings


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

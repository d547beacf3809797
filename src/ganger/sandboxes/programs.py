"""The program a launch names: which file it is, and whether it can be known that there is none."""

# ruff: noqa: PTH100, PTH113, PTH118
# As in the places they are compared with, names are text.

from __future__ import annotations

import os

from ganger.ports import Launch, Room
from ganger.sandboxes.places import TEMPORARY, is_within
from ganger.sandboxes.settings import SandboxSettings


def file_of(launch: Launch) -> str:
    """The file, as whoever starts the launch will find it; empty where there is none."""
    found = (place for place in _places(launch) if os.path.isfile(place) and os.access(place, os.X_OK))
    return next(found, "")


def will_be_missed(launch: Launch, room: Room, settings: SandboxSettings) -> bool:
    """Whether nobody confined can make it appear before it is started: such a launch harms nobody without walls."""
    folders = [os.path.abspath(folder) for folder in (*room.writable, *settings.writable)]
    return not any(is_within(place, folder) for place in _places(launch) for folder in (*folders, *TEMPORARY))


def _places(launch: Launch) -> list[str]:
    """The files among which it is looked for, in order."""
    if not launch.argv or not launch.argv[0]:
        return []
    name, cwd = launch.argv[0], str(launch.cwd.absolute())
    folders = [""] if "/" in name else launch.env.get("PATH", os.defpath).split(os.pathsep)
    return [os.path.normpath(os.path.join(cwd, folder, name)) for folder in folders]

"""What a killed keeper leaves behind: programs in its control group, its socket, its address."""

# ruff: noqa: PTH106, PTH108, PTH119, PTH120
# Importing pathlib would take longer than all other imports of the guard.

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from ganger.launchers.processes.cgroups import PREFIX, clear


def clear_traces(room: str) -> None:
    """Kills and removes them; call it only when the keeper is gone. A keeper that exits normally leaves nothing."""
    _clear(f"{room}/cgroup", clear)
    _clear(f"{room}/address", remove_socket)


def remove_socket(address: str) -> None:
    """Removes the socket, and its folder if that was made for a keeper."""
    folder = os.path.dirname(address)
    if os.path.basename(folder).startswith(PREFIX):
        with contextlib.suppress(OSError):
            os.unlink(address)
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _clear(path: str, remove: Callable[[str], object]) -> None:
    with contextlib.suppress(FileNotFoundError):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            remove(file.read())
        os.unlink(path)

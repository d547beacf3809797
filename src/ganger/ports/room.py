"""Which part of the machine a confined process gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Room:
    """What a confined process may touch besides the system's programs: these folders, whole.

    `fixed` are folders in a writable one that it may only read. `home`: a writable one; else a new one, for its time.
    `unread` are files and folders in a writable one that it is shown empty, where the walls can.
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    unread: tuple[Path, ...] = ()
    home: Path | None = None

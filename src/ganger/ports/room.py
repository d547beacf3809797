"""Which part of the machine a sandboxed process gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Room:
    """What a sandboxed process may access besides the system's programs: these folders, completely.

    `fixed` are folders in a writable one that it may only read. `home`: a writable one; else it gets a temporary one.
    `unread` are files and folders in a writable one that appear empty, where the sandbox can do that.
    """

    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()
    unread: tuple[Path, ...] = ()
    home: Path | None = None

"""Isolation of an untrusted process, and which part of the machine it gets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ganger.ports.processes import Launch


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


class Sandbox(Protocol):
    """Isolates an untrusted process."""

    @property
    def name(self) -> str:
        """The kind of sandbox: `bubblewrap`, `landlock` or `none`."""

    @property
    def owner(self) -> tuple[int, int] | None:
        """The owner (uid, gid) of folders made for a sandboxed process; None: no change of owner."""

    def confine(self, launch: Launch, room: Room) -> Launch:
        """The same launch inside the sandbox."""

    def shows(self, path: Path, launch: Launch, room: Room) -> bool:
        """Whether the sandboxed program can read this path of the machine."""

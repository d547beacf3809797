"""What the operator wants of the walls, and what they must know of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Use = Literal["auto", "require", "off"]
Network = Literal["allow", "loopback", "none"]


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """`repos` are other repositories of the run: out of sight as the project's own folder is.

    `shown` is where people look for runs that are kept elsewhere: out of sight, too, where walls can do that.

    `hidden` is invisible whatever else is granted; `readable` and `writable` are the operator's extra grants.

    `in_place`: agents work in the project's own folder.

    `path` is the PATH of the confined programs. `uid` is who root turns into (None: a number nobody else uses).

    `tracked` says which files of a folder are in its history, and so are no secret.
    """

    project: Path
    state_dir: Path
    home: Path
    path: str
    use: Use = "auto"
    network: Network = "allow"
    hidden: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    processes: int = 1024
    memory_mb: int | None = None
    file_mb: int = 8192
    uid: int | None = None
    in_place: bool = False
    repos: tuple[Path, ...] = ()
    shown: Path | None = None
    tracked: Callable[[str, Sequence[str]], frozenset[str]] = lambda _root, _paths: frozenset()

"""What the operator wants from the sandbox, and what the sandbox must know about the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Use = Literal["auto", "require", "off"]
Network = Literal["allow", "loopback", "none"]


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """`repos` are other repositories of the run: hidden like the project's own folder.

    `shown` is the folder in the project that links to runs stored elsewhere: hidden too, where the sandbox can do that.

    `hidden` is invisible whatever else is granted, `readable` and `writable` are the operator's extra grants.

    `in_place`: agents work in the project's own folder.

    `path` is the PATH of the sandboxed programs. `uid` is the user id that root changes to (None: an unused one).

    `tracked` says which files of a folder are in its history, and so are not secret.
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

"""The change from one folder to another, as git would see it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from ganger.ports.changes import Side, Touched

LINK, PROGRAM, PLAIN = 0o120000, 0o100755, 0o100644


class FolderChange:
    def __init__(self, base: Path, after: Path) -> None:
        self._base, self._after = base, after

    @property
    def touched(self) -> tuple[Touched, ...]:
        both = [(path, side(self._base / path), side(self._after / path)) for path in self._paths()]
        return tuple(Touched(path, was, now) for path, was, now in both if was != now)

    def before(self, path: str) -> bytes:
        return content(self._base / path)

    def after(self, path: str) -> bytes:
        return content(self._after / path)

    def names_before(self, folder: str) -> list[str]:
        place = self._base / folder
        return sorted(one.name for one in place.iterdir()) if place.is_dir() else []

    def _paths(self) -> list[str]:
        return sorted(
            {one.relative_to(root).as_posix() for root in (self._base, self._after) for one in root.rglob("*")}
        )


def content(path: Path) -> bytes:
    if path.is_symlink():
        return os.fsencode(os.readlink(path))
    return path.read_bytes() if path.is_file() else b""


def side(path: Path) -> Side | None:
    if not path.is_symlink() and not path.is_file():
        return None
    data = content(path)
    mode = LINK if path.is_symlink() else PROGRAM if path.stat().st_mode & stat.S_IXUSR else PLAIN
    return Side(mode, len(data), hashlib.sha256(data).hexdigest())

"""The refs of a repository, read from its files without git: nothing from the repository's settings is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ganger.errors import GangerError
from ganger.workspaces.files.tree import Tree, sha256_of

_LARGEST_REF = 4096
_LARGEST_PACKED = 256 << 20
_SHOWN = 12


def refs_of(git: Path) -> dict[str, str]:
    """What each ref points to, by name; `git` is a `.git` folder or file. A ref that cannot be read is `unreadable`."""
    folder = _folder_of(git)
    if folder is None:
        return {}
    common = _common(folder)
    found = dict(_packed(common))
    found.update(_loose(common))
    if (head := _text(folder, "HEAD")) is not None:
        found["HEAD"] = head.removeprefix("ref: ").strip()
    if (tables := _text(common, "reftable/tables.list")) is not None:
        found["reftable"] = sha256_of(tables.encode())
    return found


def moves(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The differences in words."""
    names = sorted({*before, *after}) if before != after else []
    differing = [name for name in names if before.get(name) != after.get(name)]
    return tuple(f"{name}: {_shown(before.get(name))} → {_shown(after.get(name))}" for name in differing)


def _shown(value: str | None) -> str:
    if value is None:
        return "nothing"
    return value if value.startswith("refs/") else value[:_SHOWN]


def _folder_of(git: Path) -> Path | None:
    """The git folder; a linked checkout or a submodule names it in a file."""
    if git.is_symlink() or not git.exists():
        return None
    if git.is_dir():
        return git
    text = _text(git.parent, git.name) or ""
    named = text.strip().removeprefix("gitdir: ")
    folder = Path(os.path.normpath(git.parent / named))
    return folder if text.startswith("gitdir: ") and folder.is_dir() else None


def _common(folder: Path) -> Path:
    text = _text(folder, "commondir")
    common = Path(os.path.normpath(folder / text.strip())) if text else folder
    return common if common.is_dir() else folder


def _packed(folder: Path) -> Iterator[tuple[str, str]]:
    text = _text(folder, "packed-refs", _LARGEST_PACKED) or ""
    for line in text.splitlines():
        value, _, name = line.partition(" ")
        if name and not line.startswith(("#", "^")):
            yield name, value


def _loose(folder: Path) -> Iterator[tuple[str, str]]:
    for above, _, names in os.walk(folder / "refs", followlinks=False):
        inside = os.path.relpath(above, folder)
        for name in names:
            if not name.endswith(".lock"):
                path = f"{inside}/{name}"
                yield path, (_text(folder, path) or "unreadable").removeprefix("ref: ").strip()


def _text(folder: Path, name: str, limit: int = _LARGEST_REF) -> str | None:
    """None where there is no such file, or no readable one."""
    with suppress(GangerError, OSError):
        with Tree(folder) as tree:
            found = tree.read(name, limit)
        return None if found is None else found.data.decode("utf-8", "replace")
    return None

"""What of a workspace a task that declares what it reads (Z08) is not shown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ganger.core.model.records import TaskSpec

# What programs bring with them is no file of the project.
_LEFT_ALONE = frozenset({".git", ".ganger", ".venv", "venv", "node_modules"})


def unread(folder: Path, spec: TaskSpec) -> tuple[Path, ...]:
    """Files, and folders whole, that hold nothing the task declares to read, create or modify; nothing where it
    declares no reading."""
    if not spec.reads:
        return ()
    named = (*spec.reads, *(spec.creates or ()), *(spec.modifies or ()), *spec.expected)
    allowed = frozenset(os.path.normpath(path) for path in named)
    return tuple(_below(folder, "", allowed))


def _below(folder: Path, under: str, allowed: frozenset[str]) -> Iterator[Path]:
    """A link is left alone: what it leads to is either in the workspace, and judged there, or out of reach."""
    try:
        with os.scandir(folder / under) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        path = f"{under}/{entry.name}" if under else entry.name
        if path in allowed or entry.is_symlink() or (not under and entry.name in _LEFT_ALONE):
            continue
        if entry.is_dir(follow_symlinks=False) and any(name.startswith(f"{path}/") for name in allowed):
            yield from _below(folder, path, allowed)
        else:
            yield folder / path

"""What the write tests share: a place with an outside, a snapshot that sees everything, and one call that writes."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.errors import WriteRefused
from ganger.workspaces.direct.write import apply_changes, prepare_backup
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.rules.writes import ChangeSet, WriteRequest, WriteRules, check_changes, plan_changes

Entry = tuple[str, int, bytes, int]


@dataclass(frozen=True)
class Place:
    """A workspace, a sibling whose name begins like it, and where backups go."""

    root: Path
    outside: Path
    folder: Path

    def snapshot(self) -> dict[str, Entry]:
        return snapshot(self.root.parent, skip=self.folder)


def make_place(above: Path, files: dict[str, str] | None = None) -> Place:
    place = Place(above / "ws", above / "ws-evil", above / "state" / "backup")
    place.root.mkdir()
    place.outside.mkdir()
    place.folder.parent.mkdir()
    (place.outside / "secret.txt").write_text("outside\n")
    for name, text in (files or {}).items():
        target = place.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return place


def snapshot(top: Path, skip: Path | None = None) -> dict[str, Entry]:
    """Every entry below: kind, mode, bytes or link target, and for files the modification time."""
    seen: dict[str, Entry] = {}
    for folder, directories, files in os.walk(top):
        directories[:] = [one for one in directories if Path(folder, one) != skip]
        for name in (*directories, *files):
            path = Path(folder, name)
            seen[str(path.relative_to(top))] = _entry(path)
    return seen


def _entry(path: Path) -> Entry:
    found = path.lstat()
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return ("link", mode, os.fsencode(path.readlink()), 0)
    if stat.S_ISREG(found.st_mode):
        return ("file", mode, path.read_bytes(), found.st_mtime_ns)
    return (oct(stat.S_IFMT(found.st_mode)), mode, b"", 0)


def land(place: Place, requests: Sequence[WriteRequest], rules: WriteRules | None = None) -> ChangeSet:
    with Tree(place.root) as tree:
        changes = plan_changes(tree, requests, rules or WriteRules())
        apply_changes(tree, changes, prepare_backup(tree, changes, place.folder))
    return changes


def plan(place: Place, requests: Sequence[WriteRequest], rules: WriteRules | None = None) -> ChangeSet:
    with Tree(place.root) as tree:
        return plan_changes(tree, requests, rules or WriteRules())


def code_of(place: Place, request: WriteRequest, rules: WriteRules | None = None) -> str:
    """The refusal's code, or "" when the write was carried out."""
    try:
        land(place, [request], rules)
    except WriteRefused as refusal:
        return refusal.code
    return ""


def all_codes(place: Place, requests: Sequence[WriteRequest]) -> list[str]:
    with Tree(place.root) as tree:
        return [refusal.code for refusal in check_changes(tree, requests, WriteRules())]


def create(path: str, content: str = "new\n", **more: str | None) -> WriteRequest:
    return WriteRequest(path, "create", content, **more)


def replace(path: str, content: str = "new\n", **more: str | None) -> WriteRequest:
    return WriteRequest(path, "replace", content, **more)


def append(path: str, content: str = "new\n", **more: str | None) -> WriteRequest:
    return WriteRequest(path, "append", content, **more)


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A folder in memory where there is one: the sweeps sync thousands of times."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(os.path.realpath(name))


def skip_here(reason: str) -> None:
    """Skip on a developer's machine, fail in CI: a proof that never runs proves nothing."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"cannot be skipped in CI: {reason}")
    pytest.skip(reason)

"""Names that are equal on many systems: those of a change against the base, and those of a merge against both sides."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ganger.ports.changes import Change
from ganger.workspaces.files.tree import parents_of
from ganger.workspaces.git.objects import ObjectReader
from ganger.workspaces.rules.protected import folded

_LARGEST_TREE = 64 << 20
_FOLDER = 0o40000


class Listing:
    """The entries of each folder in a set of paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._names: dict[str, set[str]] = {"": set()}
        for path in paths:
            self._add(path)

    def names(self, folder: str) -> Collection[str]:
        return self._names.get(folder, ())

    def _add(self, path: str) -> None:
        while True:
            folder, _, name = path.rpartition("/")
            known = folder in self._names
            self._names.setdefault(folder, set()).add(name)
            if known:
                return
            path = folder


def base_twins(change: Change) -> Iterator[tuple[str, str, str]]:
    """Each new path, the new name in it, and the path of the base whose name is equal on other systems.

    Pairs that the base has already are accepted; a path removed in the same change does not count.
    """
    gone = {one.path for one in change.touched if one.after is None}
    folders: dict[str, dict[str, list[str]]] = {}
    for touched in change.touched:
        if touched.after is None or touched.before is not None:
            continue
        for one in (*parents_of(touched.path), touched.path):
            folder, _, name = one.rpartition("/")
            if folder not in folders:
                folders[folder] = _by_key(change.names_before(folder))
            alike = folders[folder].get(folded(name), [])
            if name in alike:
                continue
            above = f"{folder}/" if folder else ""
            other = next((above + twin for twin in alike if _stays(above + twin, change, gone)), None)
            if other is not None:
                yield touched.path, one, other
            break


def _by_key(names: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(folded(name), []).append(name)
    return found


def _stays(path: str, change: Change, gone: Collection[str]) -> bool:
    """A folder stays while an entry in it stays."""
    waiting = [path]
    while waiting:
        one = waiting.pop()
        inside = change.names_before(one)
        if not inside and one not in gone:
            return True
        waiting += [f"{one}/{name}" for name in inside]
    return False


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: int
    oid: str


def merged_twins(reader: ObjectReader, merged: str, sides: tuple[str, ...]) -> list[tuple[str, str]]:
    """Pairs of paths of a merged tree that are equal on other systems and that neither side has together.

    Only folders that differ from both sides are read: all others hold the entries of one side only.
    """
    found: list[tuple[str, str]] = []
    waiting = [("", merged, sides)]
    while waiting:
        folder, tree, others = waiting.pop()
        if tree in others:
            continue
        entries = _read_tree(reader, tree)
        before = [_read_tree(reader, one) if one else {} for one in others]
        found += [
            (f"{folder}{names[0]}", f"{folder}{names[1]}")
            for names in _by_key(entries).values()
            if len(names) > 1 and not any(all(name in side for name in names) for side in before)
        ]
        for name, entry in entries.items():
            if entry.mode == _FOLDER:
                below = tuple(_folder_id(side.get(name)) for side in before)
                waiting.append((f"{folder}{name}/", entry.oid, below))
    return sorted(found)


def _folder_id(entry: _Entry | None) -> str:
    return entry.oid if entry is not None and entry.mode == _FOLDER else ""


def _read_tree(reader: ObjectReader, oid: str) -> Mapping[str, _Entry]:
    data = reader.read(oid, _LARGEST_TREE) or b""
    width = len(oid) // 2
    entries: dict[str, _Entry] = {}
    at = 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        mode = int(data[at:space], 8)
        at = end + 1 + width
        entries[os.fsdecode(data[space + 1 : end])] = _Entry(mode, data[end + 1 : at].hex())
    return entries

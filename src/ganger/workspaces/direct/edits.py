"""What changed in the project's own folder: two snapshots, the contents behind them, and a summary for people."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ganger.errors import WriteRefused
from ganger.ports.changes import Side, Touched
from ganger.workspaces.files.content_store import ContentStore
from ganger.workspaces.files.snapshot import DIGEST_LENGTH, FileEntry, Snapshot, read_through, still
from ganger.workspaces.files.tree import Draft, Tree, parents_of, sha256_of
from ganger.workspaces.files.tree_links import TreeLinks
from ganger.workspaces.git.case_twins import Listing
from ganger.workspaces.refusals import named_failures, refused


@dataclass(frozen=True, slots=True, eq=False)
class FolderEdits:
    """A `Change`. Besides the touched paths it has files with changed permissions that git does not record, and folders
    that are new, gone or have another mode; those are undone and never judged."""

    touched: tuple[Touched, ...]
    permissions: tuple[str, ...]
    folders: tuple[str, ...]
    baseline: Snapshot
    present: Snapshot
    root: Path
    kept: ContentStore
    _listings: list[Listing] = field(default_factory=list, init=False, repr=False)

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to judge and nothing to undo."""
        return not (self.touched or self.permissions or self.folders)

    @property
    def lost(self) -> tuple[str, ...]:
        """Paths that cannot be put back, because their earlier content was not kept."""
        return tuple(one.path for one in self.touched if one.before and not self.kept.has(one.before.digest))

    def before(self, path: str) -> bytes:
        """The earlier content; empty also where it was not kept, and `lost` names those."""
        entry = self.baseline.files.get(path)
        return (self.kept.read(entry.digest) if entry is not None and entry.has_digest else None) or b""

    def after(self, path: str) -> bytes:
        """Content that matches the digest, or a refusal: the judged content must be the content that was seen."""
        entry = self.present.files.get(path)
        if entry is None or not (entry.is_file or entry.is_link):
            return b""
        with TreeLinks(self.root) as tree, named_failures(path):
            try:
                data = tree.target(path) if entry.is_link else tree.read_file(path, limit=entry.size)
            except WriteRefused as refusal:
                if refusal.code != "TOO_LARGE":
                    raise
                # It has grown since: its earlier size is not a limit to report.
                data = b""
        if sha256_of(data) != entry.digest:
            raise refused(path, "HASH_MISMATCH", "the file was changed after the change was examined")
        return data

    def names_before(self, folder: str) -> Collection[str]:
        return self._listing.names(folder)

    @property
    def _listing(self) -> Listing:
        if not self._listings:
            self._listings.append(Listing(self.baseline.files))
        return self._listings[0]


def compare(
    tree: TreeLinks,
    kept: ContentStore,
    baseline: Snapshot,
    present: Snapshot,
    *,
    ignoring: Mapping[str, str],
    only: Callable[[str], bool] | None = None,
    last: Snapshot | None = None,
) -> FolderEdits:
    """What differs. `ignoring` are paths with their expected digest; `""`: the path must not exist.

    `last` is the result of an earlier comparison: a file that is unchanged since is not read again.
    """
    differing = _differing(baseline, present)
    if only is not None:
        differing = _with_what_is_in_the_way(differing, only)
    files = dict(present.files)
    for path in differing:
        entry = files.get(path)
        found = entry
        if entry is not None and not entry.digest:
            found = still(last, path, entry) or read_through(tree, path, entry)
        if found is not None:
            files[path] = found
        elif entry is not None:
            del files[path]
    seen = Snapshot(present.taken_ns, files, present.folders, present.times)
    changed = [path for path in differing if ignoring.get(path) != _digest(files.get(path))]
    touched = [path for path in changed if not _alike(baseline.files.get(path), files.get(path))]
    alike = sorted(set(changed).difference(touched))
    return FolderEdits(
        touched=_with_renames(touched, baseline, seen),
        permissions=tuple(path for path in alike if baseline.files[path].mode != files[path].mode),
        folders=_folders(baseline, present, None if only is None else touched, ignoring),
        baseline=baseline,
        present=seen,
        root=tree.root,
        kept=kept,
    )


def _differing(baseline: Snapshot, present: Snapshot) -> list[str]:
    old, new = baseline.files, present.files
    if old == new:
        return []
    found = [path for path, entry in new.items() if old.get(path) is not entry]
    if len(new) - len(found) != len(old):
        found += [path for path in old if path not in new]
    return sorted(found)


def _with_what_is_in_the_way(paths: list[str], only: Callable[[str], bool]) -> list[str]:
    """A watched path can be hidden by a link above it or by a folder with the same name."""
    watched = {path for path in paths if only(path)}
    above = {parent for path in watched for parent in parents_of(path)}
    return [path for path in paths if path in watched or path in above or watched.intersection(parents_of(path))]


def _digest(entry: FileEntry | None) -> str:
    return entry.digest if entry is not None else ""


def _alike(before: FileEntry | None, after: FileEntry | None) -> bool:
    if before is None or after is None:
        return before is after
    return after.is_like(before)


def _folders(
    baseline: Snapshot, present: Snapshot, touched: list[str] | None, ignoring: Mapping[str, str]
) -> tuple[str, ...]:
    """All folders that differ, or those related to the touched paths; without those that Ganger made for its writes."""
    old, new = baseline.folders, present.folders
    if old == new:
        return ()
    found = {path for path in {*old, *new} if old.get(path) != new.get(path)}
    found.difference_update(parent for path in ignoring for parent in parents_of(path))
    if touched is not None:
        found.intersection_update(one for path in touched for one in (*parents_of(path), path))
    return tuple(sorted(found))


def _with_renames(paths: list[str], baseline: Snapshot, present: Snapshot) -> tuple[Touched, ...]:
    old, new = baseline.files, present.files
    went: dict[str, list[str]] = {}
    for path in reversed(paths):
        if path not in new and old[path].has_digest and old[path].size:
            went.setdefault(old[path].digest, []).append(path)
    touched = []
    for path in paths:
        before, after = old.get(path), new.get(path)
        origins = went.get(after.digest) if before is None and after is not None else None
        touched.append(
            Touched(
                path,
                before.side() if before else None,
                after.side() if after else None,
                origins.pop() if origins else "",
            )
        )
    return tuple(touched)


SUMMARY_NAME = "summary.json"
SAVED_LIMIT_BYTES = 64 << 20

_FORMAT = 1
_FILES = "files"
_KINDS = ("added", "modified", "deleted")
_LARGEST_SUMMARY = 256 << 20


def save_edit(
    change: FolderEdits, folder: Path, *, contents: bool = True, limit_bytes: int = SAVED_LIMIT_BYTES
) -> tuple[str, ...]:
    """Writes the complete artifact, the summary last. An existing one is never replaced: if it describes all of this
    change nothing is written, else the artifact goes into `folder.2` and so on.

    Returns the files whose content is not in it, because they are too large or cannot be read.
    """
    for number in itertools.count(1):
        place = folder if number == 1 else folder.with_name(f"{folder.name}.{number}")
        with named_failures(str(place)):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            with Tree(place) as store:
                if store.look(SUMMARY_NAME) is not None and not _tells(store, change):
                    continue
                if store.look(SUMMARY_NAME) is None:
                    _write(change, store, limit_bytes if contents else -1)
                saved = _saved(change, store)
                break
    return tuple(path for path in _made(change) if path not in saved)


def _tells(store: Tree, change: FolderEdits) -> bool:
    """Whether a summary has every path of the change with its present content; half an undo leaves fewer paths."""
    try:
        summary = json.loads(store.read_file(SUMMARY_NAME, limit=_LARGEST_SUMMARY))
        told = {one["path"]: one["after"] for kind in _KINDS for one in summary[kind]}
    except (ValueError, KeyError, TypeError):
        return False
    return all(told.get(_shown(one.path), "") == _side(one.after) for one in change.touched)


def _write(change: FolderEdits, store: Tree, limit_bytes: int) -> None:
    _save_contents(change, store, limit_bytes)
    text = json.dumps(_summary(change, store), indent=1)
    store.land(SUMMARY_NAME, _draft(text.encode("ascii")), expected=None, tag="edit")
    store.sync([""])


def _made(change: FolderEdits) -> list[str]:
    """Files only: a link could lead a reader out of the artifact, so its target stands in the summary."""
    present = change.present.files
    return [one.path for one in change.touched if one.after is not None and present[one.path].is_file]


def _saved(change: FolderEdits, store: Tree) -> frozenset[str]:
    return frozenset(path for path in _made(change) if store.look(f"{_FILES}/{path}") is not None)


def _save_contents(change: FolderEdits, store: Tree, limit_bytes: int) -> None:
    places: list[str] = []
    for path in _made(change):
        entry = change.present.files[path]
        if not entry.has_digest or entry.size > limit_bytes:
            continue
        place = f"{_FILES}/{path}"
        store.make_directories(parents_of(place))
        store.restore(place, _draft(change.after(path)), tag="edit")
        places.append(place)
        limit_bytes -= entry.size
    store.sync(folder for place in places for folder in parents_of(place))


def _draft(data: bytes) -> Draft:
    return Draft(data, 0o600, owner=(os.geteuid(), os.getegid()))


def _summary(change: FolderEdits, store: Tree) -> dict[str, object]:
    kinds: dict[str, list[dict[str, object]]] = {kind: [] for kind in _KINDS}
    saved = _saved(change, store)
    for one in change.touched:
        kind = one.kind if one.kind in kinds else "modified"
        kinds[kind].append(_described(change, one, is_saved=one.path in saved))
    return {"kind": "direct_edit", "format": _FORMAT, **kinds}


def _described(change: FolderEdits, one: Touched, *, is_saved: bool) -> dict[str, object]:
    more: dict[str, object] = {"renamed_from": _shown(one.renamed_from)} if one.renamed_from else {}
    if one.after is not None:
        entry = change.present.files[one.path]
        more["saved"] = is_saved
        if entry.is_link and entry.has_digest:
            more["link_to"] = _shown(os.fsdecode(change.after(one.path)))
    return {"path": _shown(one.path), "before": _side(one.before), "after": _side(one.after), **more}


def _side(side: Side | None) -> dict[str, object] | None:
    if side is None:
        return None
    is_read = len(side.digest) == DIGEST_LENGTH
    return {"mode": f"{side.mode:06o}", "size": side.size, "sha256": side.digest if is_read else None}


def _shown(path: str) -> str:
    """Escapes bytes that are not UTF-8, so that every JSON reader accepts the text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")

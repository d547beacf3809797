"""What changed in the project's own folder: two snapshots, and the contents they refer to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ganger.errors import WriteRefused
from ganger.ports import Touched
from ganger.workspaces.files.content_store import Kept
from ganger.workspaces.files.snapshot import Entry, Snapshot, read_through, still
from ganger.workspaces.files.tree import parents_of, sha256_of
from ganger.workspaces.files.tree_links import Reach
from ganger.workspaces.git.case_twins import Listing
from ganger.workspaces.refusals import named_failures, refused


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """A `Change`. Besides the touched paths it has files with changed permissions that git does not record, and folders
    that are new, gone or have another mode; those are undone and never judged."""

    touched: tuple[Touched, ...]
    permissions: tuple[str, ...]
    folders: tuple[str, ...]
    baseline: Snapshot
    present: Snapshot
    root: Path
    kept: Kept
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
        with Reach(self.root) as tree, named_failures(path):
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
    tree: Reach,
    kept: Kept,
    baseline: Snapshot,
    present: Snapshot,
    *,
    ignoring: Mapping[str, str],
    only: Callable[[str], bool] | None = None,
    last: Snapshot | None = None,
) -> InPlace:
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
    return InPlace(
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


def _digest(entry: Entry | None) -> str:
    return entry.digest if entry is not None else ""


def _alike(before: Entry | None, after: Entry | None) -> bool:
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

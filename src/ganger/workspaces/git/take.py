"""What changed in a workspace: found without running anything in it, held as a `Change`, kept as a commit."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ganger.errors import GangerError, WriteRefused
from ganger.local.scratch import scratch_folder
from ganger.ports.changes import Side, Touched
from ganger.workspaces.git.case_twins import Listing
from ganger.workspaces.git.git import Git, GitCall
from ganger.workspaces.git.index import SUBMODULE, IndexEntry, git_mode, read_index, stamp_of
from ganger.workspaces.git.objects import Leaf, ObjectReader, blob_id, ignored, write_blobs
from ganger.workspaces.git.scan import Census, ScanScope, open_entry, read_entry, take_census
from ganger.workspaces.refusals import refused, require_none
from ganger.workspaces.rules.writes import FileChange

_LARGEST_IGNORE = 1 << 20
_LARGEST_BEFORE = 64 << 20
_BATCH_BYTES = 16 << 20
_BATCH_FILES = 500
_STREAMED_BYTES = 16 << 20
# A larger file is not copied: a sparse file costs its agent nothing, and takes hours to read.
_MOST_KEPT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large one change may be."""

    max_file_bytes: int
    max_total_bytes: int
    max_files: int


@dataclass(frozen=True, slots=True)
class Source:
    """A workspace to examine: where it is, the commit and the index it was made from.

    `linked` are folders that came from the user's project and are never part of a change.
    """

    git: Git
    folder: Path
    commit: str
    index: Path
    linked: tuple[str, ...] = ()
    generated: Callable[[str], bool] = lambda _: False


@dataclass(slots=True)
class TreeDifference:
    """Paths that differ from the commit the workspace was made from; None: gone. `by_index`: its index was complete.

    `contents` are the new contents, where they were kept. `left_out` are paths that cannot be held, with the reason.
    """

    before: Mapping[str, IndexEntry]
    by_index: bool = True
    leaves: dict[str, Leaf | None] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    left_out: dict[str, WriteRefused] = field(default_factory=dict)

    def put(self, path: str, leaf: Leaf, data: bytes = b"", *, size: int | None = None) -> None:
        """Notes a path's present state, unless it is unchanged. With a size the content is not kept."""
        entry = self.before.get(path)
        if entry is not None and (entry.mode, entry.oid) == (leaf.mode, leaf.oid):
            self.leaves.pop(path, None)
            self.contents.pop(path, None)
            return
        self.leaves[path] = leaf
        self.sizes[path] = len(data) if size is None else size
        if size is None:
            self.contents[path] = data

    def lay_over(self, changes: Iterable[FileChange]) -> None:
        """Adds the writes an agent requested to the changes it made itself."""
        width = id_width(self.before)
        for one in changes:
            self.put(
                one.path, Leaf(0o100755 if one.mode & 0o100 else 0o100644, blob_id(one.content, width)), one.content
            )

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(sorted(self.leaves))


def id_width(entries: Mapping[str, IndexEntry]) -> int:
    return next((len(entry.oid) for entry in entries.values()), 40)


def _began_with(source: Source) -> TreeDifference:
    """An empty difference. Without a complete index of the workspace, contents must be compared."""
    found = read_index(source.index)
    if found is not None:
        return TreeDifference(found)
    answer = source.git.ask("ls-tree", "-r", "-z", "--full-tree", source.commit, doing="reading the workspace's commit")
    entries: dict[str, IndexEntry] = {}
    for line in answer.names:
        head, _, path = line.partition("\t")
        mode, _, oid = head.split(" ")
        entries[path] = IndexEntry(int(mode, 8), oid, None)
    return TreeDifference(entries, by_index=False)


def to_judge(source: Source, bounds: Bounds) -> TreeDifference:
    """The difference by which a task is judged, all of it in memory; raises WriteRefused for what cannot be held."""
    look = _Look.at(source, into_repositories=False)
    nested = "this folder is a git repository of its own; remove its .git"
    unknown = [refused(path, "EMBEDDED_REPOSITORY", nested) for path, commit in look.embedded.items() if not commit]
    require_none([*look.odd.values(), *unknown])
    for path, commit in look.embedded.items():
        look.difference.leaves[path] = Leaf(SUBMODULE, commit)
    _require_no_bare_folder(look)
    _require_bounds(look, bounds)
    width = id_width(look.difference.before)
    for path, mode in look.changed.items():
        data = read_entry(source.folder, path, bounds.max_file_bytes)
        look.difference.put(path, Leaf(mode, blob_id(data, width)), data)
    return look.difference


def _require_no_bare_folder(look: _Look) -> None:
    """A folder of the project that became a bare repository: git run below it would read the configuration in it."""
    for path in look.changed:
        folder, _, name = path.rpartition("/")
        parts = (f"{folder}/objects/", f"{folder}/refs/")
        if (
            name == "HEAD"
            and folder
            and path not in look.difference.before
            and all(any(one.startswith(part) for one in look.census.files) for part in parts)
        ):
            raise refused(folder, "EMBEDDED_REPOSITORY", "this folder was turned into a bare git repository; undo that")


def to_keep(source: Source) -> TreeDifference:
    """The difference as far as it can be held, with its contents already in the repository; never raises for
    content."""
    look = _Look.at(source, into_repositories=True)
    difference = look.difference
    difference.left_out |= look.odd
    for path, commit in look.embedded.items():
        if commit:
            difference.put(path, Leaf(SUBMODULE, commit), size=0)
        elif path in difference.before:
            difference.left_out[path] = refused(path, "EMBEDDED_REPOSITORY", "its commit is unknown")
    for batch in _batches(look):
        _keep(source, difference, batch)
    return difference


def _keep(source: Source, difference: TreeDifference, batch: Mapping[str, int]) -> None:
    width = id_width(difference.before)
    small: list[bytes] = []
    for path, mode in batch.items():
        try:
            data = read_entry(source.folder, path, _STREAMED_BYTES)
            difference.put(path, Leaf(mode, blob_id(data, width)), size=len(data))
            small += [data] if path in difference.leaves else []
        except WriteRefused as refusal:
            if refusal.code == "TOO_LARGE":
                oid, size = _streamed(source, path)
                difference.put(path, Leaf(mode, oid), size=size)
            else:
                difference.left_out[path] = refusal
    write_blobs(source.git, small, width)


def _streamed(source: Source, path: str) -> tuple[str, int]:
    with open_entry(source.folder, path) as fd, os.fdopen(os.dup(fd), "rb") as file:
        size = os.fstat(fd).st_size
        if size > _MOST_KEPT_BYTES:
            told = f"{path!r} has {size} bytes, too many to keep a copy of; it stays in {source.folder}"
            raise GangerError(told, hint="look at it; ganger clean removes the folder", code="TOO_LARGE")
        words = ("hash-object", "-w", "--no-filters", "--stdin")
        oid = source.git.call(GitCall(words, f"storing {path!r}", data=file)).text
        return oid, os.fstat(fd).st_size


def _batches(look: _Look) -> Iterator[dict[str, int]]:
    batch: dict[str, int] = {}
    size = 0
    for path, mode in look.changed.items():
        batch[path] = mode
        size += min(look.census.files[path].st_size, _STREAMED_BYTES)
        if size > _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = {}, 0
    yield batch


def _require_bounds(look: _Look, bounds: Bounds) -> None:
    """Checks the limits by stat, before anything is read."""
    count = len(look.changed) + len(look.difference.leaves)
    if count > bounds.max_files:
        first = next(iter(look.changed), next(iter(look.difference.leaves), ""))
        raise refused(first, "TOO_LARGE", f"{count} files were changed; the limit is {bounds.max_files}")
    sizes = {path: look.census.files[path].st_size for path in look.changed}
    limit = bounds.max_file_bytes
    require_none(
        [
            refused(path, "TOO_LARGE", f"the file has {size} bytes; the limit is {limit}")
            for path, size in sizes.items()
            if size > limit
        ]
    )
    total = 0
    for path, size in sizes.items():
        total += size
        if total > bounds.max_total_bytes:
            raise refused(path, "TOO_LARGE", f"the changed files have more than {bounds.max_total_bytes} bytes")


@dataclass(frozen=True, slots=True)
class _Look:
    """A census compared with the state before. `changed` are paths whose content must be read, with their present
    mode."""

    census: Census
    difference: TreeDifference
    changed: dict[str, int]
    embedded: dict[str, str]
    odd: dict[str, WriteRefused]

    @classmethod
    def at(cls, source: Source, *, into_repositories: bool) -> _Look:
        difference = _began_with(source)
        before = difference.before
        folders = _folders(before)
        census = take_census(_scope(source, before, folders, into_repositories=into_repositories))
        changed = _changed(census, difference)
        new = [path for path in census.files if path not in before]
        difference.dropped += [*census.dropped, *(path for path in new if source.generated(path))]
        embedded = {path: commit for path, commit in census.repositories.items() if _moved(before.get(path), commit)}
        named = [path for path in new if not source.generated(path)]
        queried = [*named, *(f"{path}/" for path in embedded), *census.odd]
        out = _ignored(source, census, queried)
        changed |= {path: git_mode(census.files[path].st_mode) for path in named if path not in out}
        return cls(
            census,
            difference,
            changed,
            {path: commit for path, commit in embedded.items() if path in before or f"{path}/" not in out},
            {path: why for path, why in census.odd.items() if path in before or path not in out},
        )


def _folders(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in found:
            found.add(above)
            above = above.rpartition("/")[0]
    return found


def _scope(
    source: Source, before: Mapping[str, IndexEntry], folders: set[str], *, into_repositories: bool
) -> ScanScope:
    return ScanScope(
        root=source.folder,
        skipped=tuple(path for path in source.linked if path not in before and path not in folders),
        drop=lambda path: path not in folders and path not in before and source.generated(path),
        submodules={path: entry.oid for path, entry in before.items() if entry.mode == SUBMODULE},
        tracked=folders,
        into_repositories=into_repositories,
    )


def _changed(census: Census, difference: TreeDifference) -> dict[str, int]:
    """Notes what is gone, and returns what may have changed."""
    changed: dict[str, int] = {}
    for path, entry in difference.before.items():
        if entry.mode == SUBMODULE:
            if path not in census.repositories:
                difference.leaves[path] = None
            continue
        found = census.files.get(path)
        if found is None:
            difference.leaves[path] = None
        elif git_mode(found.st_mode) != entry.mode or entry.stamp is None or entry.stamp != stamp_of(found):
            changed[path] = git_mode(found.st_mode)
    return changed


def _moved(entry: IndexEntry | None, commit: str) -> bool:
    return entry is None or entry.mode != SUBMODULE or entry.oid != commit


def _ignored(source: Source, census: Census, paths: Sequence[str]) -> set[str]:
    """Ignored paths, by copies of the .gitignore files: git never opens anything the agent made."""
    if not paths:
        return set()
    with scratch_folder("ignore") as folder:
        for path, found in census.files.items():
            if path.rpartition("/")[2] == ".gitignore" and stat.S_ISREG(found.st_mode):
                _copy_ignore(source.folder, path, Path(folder))
        return ignored(source.git, Path(folder), paths)


def _copy_ignore(folder: Path, path: str, mirror: Path) -> None:
    try:
        data = read_entry(folder, path, _LARGEST_IGNORE)
    except WriteRefused:
        return
    (mirror / path).parent.mkdir(parents=True, exist_ok=True)
    (mirror / path).write_bytes(data)


class FolderChange:
    """A difference as a `Change` for the safeguards."""

    def __init__(self, difference: TreeDifference, renames: Mapping[str, str], reader: ObjectReader) -> None:
        self._difference = difference
        self._renames = renames
        self._reader = reader
        self.touched = tuple(self._touched(path) for path in difference.files)

    def before(self, path: str) -> bytes:
        entry = self._difference.before.get(path)
        if entry is None or entry.mode == SUBMODULE:
            return b""
        return self._reader.read(entry.oid, _LARGEST_BEFORE) or b""

    def after(self, path: str) -> bytes:
        return self._difference.contents.get(path, b"")

    def names_before(self, folder: str) -> Collection[str]:
        return self._listing.names(folder)

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self._difference.before)

    def _touched(self, path: str) -> Touched:
        entry, leaf = self._difference.before.get(path), self._difference.leaves[path]
        return Touched(
            path,
            None if entry is None else Side(entry.mode, self._size(entry), entry.oid),
            None if leaf is None else Side(leaf.mode, self._difference.sizes.get(path, 0), leaf.oid),
            self._renames.get(path, ""),
        )

    def _size(self, entry: IndexEntry) -> int:
        found = None if entry.mode == SUBMODULE else self._reader.look(entry.oid)
        return 0 if found is None else found[2]


def renames_of(git: Git, before: str, after: str, difference: TreeDifference) -> dict[str, str]:
    """The old paths of renamed files, by git's rename detection; used only when files were both added and removed."""
    leaves = difference.leaves
    if not any(leaf is None for leaf in leaves.values()) or all(path in difference.before for path in leaves):
        return {}
    words = ("diff-tree", "-r", "-z", "-M", "-l2000", "--raw", "--no-ext-diff", "--no-textconv", before, after)
    pieces = iter(git.ask(*words, doing="looking for renames").names)
    renames: dict[str, str] = {}
    for head in pieces:
        path = next(pieces)
        if head.rpartition(" ")[2].startswith("R"):
            renames[next(pieces)] = path
    return renames


def scratch_index(source: Source, difference: TreeDifference, folder: Path) -> Path:
    """A copy of the workspace's index, for rewriting."""
    copy = folder / "index"
    if difference.by_index:
        shutil.copyfile(source.index, copy)
    else:
        words = ("read-tree", source.commit)
        source.git.call(GitCall(words, "reading the workspace's commit", index=copy))
    return copy


def require_outside_links(paths: Iterable[str], linked: Sequence[str]) -> None:
    """Refuses a write into a folder that belongs to the user's project and not to the workspace."""
    require_none(
        [
            refused(path, "PATH_PROTECTED", f"{folder!r} comes from the user's project and is not part of it")
            for path in paths
            for folder in linked
            if path == folder or path.startswith(f"{folder}/")
        ]
    )


def shown_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Paths as text: bytes that are not UTF-8 become a replacement character."""
    return tuple(os.fsencode(path).decode("utf-8", "replace") for path in paths)

"""An attempt that works in the project's own folder: how it was before, what became of it, the rules that judge it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ganger.errors import NotFoundError
from ganger.ports.changes import Change, Rules, Touched
from ganger.ports.workspace import Restored
from ganger.workspaces.direct.edits import FolderEdits, compare, save_edit
from ganger.workspaces.direct.undo import Undo
from ganger.workspaces.files.baseline import Baseline
from ganger.workspaces.files.content_store import DEFAULT_LIMIT_BYTES, ContentStore
from ganger.workspaces.files.snapshot import FileEntry, Snapshot, look_at, take
from ganger.workspaces.files.tree import parents_of
from ganger.workspaces.files.tree_links import TreeLinks
from ganger.workspaces.gates.gates import Gates
from ganger.workspaces.refusals import named_failures, refused
from ganger.workspaces.rules.artifacts import is_generated
from ganger.workspaces.safeguards import ChangeLimits, require

_T = TypeVar("_T")


class FolderWatch:
    """Watches one folder for one attempt at a time. `folder` is Ganger's own, on the same file system if possible."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        skip: Callable[[str], bool],
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        *,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._aside = folder / "aside"
        self._kept = ContentStore(folder / "contents", limit_bytes)
        self._record = Baseline(folder / "baseline", self._root)
        self._skip = _without(self._root, folder, skip)
        self._now_ns = now_ns
        self._baseline: Snapshot | None = None
        self._unsaved: frozenset[str] = frozenset()
        self._last: Snapshot | None = None

    @property
    def whole(self) -> bool:
        """Whether everything can be put back; if not, changes are seen, but some of them cannot be undone."""
        return self._kept.whole

    def begin(self) -> None:
        """Takes the present state as the baseline of the next attempt. Durable on return; fast when little changed."""
        earlier = self._baseline or self._record.load()
        with self._tree() as tree:
            present = take(tree, self._skip, earlier, self._now_ns())
            if self._baseline is not None and present.shows_no_change_since(self._baseline):
                self._baseline = present
            else:
                self._establish(tree, present)

    def resume(self) -> bool:
        """Loads the baseline of an attempt that an earlier process began; False when there is none."""
        self._baseline = self._record.load()
        if self._baseline is None:
            return False
        self._kept.covers(self._baseline)
        return True

    def changed(self, ignoring: Mapping[str, str] | None = None) -> FolderEdits:
        """Everything that differs from the baseline, except paths with exactly the digest that Ganger wrote.

        An empty digest stands for a path that Ganger removed.
        """
        return self._compare(ignoring or {}, None)

    def drifted(self, paths: Callable[[str], bool]) -> FolderEdits:
        """Of these paths, those that now differ from the baseline, with the entries that block them."""
        return self._compare({}, paths)

    def undo(self, change: FolderEdits) -> tuple[str, ...]:
        """Puts everything in the change back; returns the paths for which that was not possible.

        Content that the last `save` could not save is moved out of the project instead of being removed.
        """
        with self._tree() as tree:
            return Undo(tree, change, self._aside, self._unsaved).run()

    def restore(self, drift: FolderEdits) -> tuple[str, ...]:
        """Does the same for what `drifted` found."""
        return self.undo(drift)

    def save(self, change: FolderEdits, folder: Path, *, contents: bool = True) -> tuple[str, ...]:
        """Saves the change, with a summary; returns the files that could not be saved. An earlier save is not changed:
        what it does not hold goes to a folder beside it."""
        unsaved = save_edit(change, folder, contents=contents)
        self._unsaved = frozenset(unsaved)
        return unsaved

    def accept(self, change: FolderEdits) -> None:
        """Accepts the change: its paths' present state becomes part of the baseline."""
        paths = [*(one.path for one in change.touched), *change.permissions]
        if not change.is_nothing:
            self._adopt(paths, change.folders, change.present)

    def absorb(self, written: Mapping[str, str]) -> None:
        """Takes Ganger's own writes during an attempt into the baseline; a path with another digest than given is left
        for `changed` to find."""
        files: dict[str, FileEntry] = {}
        folders: dict[str, int] = {}
        adopted: list[str] = []
        with self._tree() as tree:
            for path, digest in written.items():
                found = look_at(tree, path)
                if (found.digest if found else "") != digest:
                    continue
                adopted.append(path)
                if found is not None:
                    files[path] = found
                    folders.update((above, now.st_mode) for above in parents_of(path) if (now := tree.look(above)))
        self._adopt(adopted, folders, Snapshot(0, files, folders))

    def snapshot(self) -> Snapshot:
        """The present state, by inodes and times."""
        with self._tree() as tree:
            return take(tree, self._skip, self._need(), self._now_ns())

    def _compare(self, ignoring: Mapping[str, str], only: Callable[[str], bool] | None) -> FolderEdits:
        baseline = self._need()
        with self._tree() as tree:
            present = take(tree, self._skip, baseline, self._now_ns())
            found = compare(tree, self._kept, baseline, present, ignoring=ignoring, only=only, last=self._last)
        self._last = found.present
        return found

    def _adopt(self, paths: Iterable[str], folders: Iterable[str], present: Snapshot) -> None:
        baseline = self._need()
        files, modes = dict(baseline.files), dict(baseline.folders)
        for path in paths:
            _carry(path, present.files, files)
        for path in folders:
            _carry(path, present.folders, modes)
        # The earlier time stays: with it more files are read again, never fewer.
        with self._tree() as tree:
            self._establish(tree, Snapshot(baseline.taken_ns, files, modes))

    def _establish(self, tree: TreeLinks, snapshot: Snapshot) -> None:
        """Contents are written first: a baseline on disk can always be restored."""
        kept = self._kept.keep(tree, snapshot)
        self._record.save(kept)
        self._baseline = kept

    @contextmanager
    def _tree(self) -> Iterator[TreeLinks]:
        with named_failures(str(self._root)), TreeLinks(self._root) as tree:
            yield tree

    def _need(self) -> Snapshot:
        if self._baseline is None:
            raise NotFoundError(
                f"there is no snapshot of {self._root} to compare with", hint="Begin or resume an attempt first."
            )
        return self._baseline


def _carry(path: str, source: Mapping[str, _T], target: dict[str, _T]) -> None:
    if path in source:
        target[path] = source[path]
    else:
        target.pop(path, None)


def _without(root: Path, folder: Path, skip: Callable[[str], bool]) -> Callable[[str], bool]:
    """Ganger's own folder is not part of the project, even inside it."""
    try:
        own = Path(os.path.realpath(folder)).relative_to(root).as_posix()
    except ValueError:
        return skip
    return lambda path: path == own or skip(path)


_HARMLESS_GROUPS = frozenset({b"[console_scripts]", b"[gui_scripts]"})


class Watching:
    """The `FolderWatch` port. `path` is the PATH of the checks."""

    def __init__(self, root: Path, watch: FolderWatch, limits: ChangeLimits, path: str) -> None:
        self._root, self._watch, self._limits, self._path = root, watch, limits, path
        self._seen: Snapshot | None = None

    def begin(self) -> None:
        self._watch.begin()

    def resume(self) -> None:
        if not self._watch.resume():
            self._watch.begin()

    def changed(self, ignoring: Mapping[str, str]) -> FolderEdits:
        return self._watch.changed(ignoring)

    def judge(self, change: Change, rules: Rules) -> None:
        require(_Part(change, self._counting(change)), rules, self._limits)

    def _counting(self, change: Change) -> tuple[Touched, ...]:
        """Files an installation adds are not the agent's work, unless they change which tools a check uses."""
        return tuple(one for one in change.touched if not self._is_installed(one, change))

    def _is_installed(self, touched: Touched, change: Change) -> bool:
        parts = touched.path.split("/")
        if touched.before is not None or not is_generated(touched.path):
            return False
        if "node_modules" in parts:
            return shutil.which(parts[-1], path=self._path) is None
        if parts[-1] == "entry_points.txt":
            groups = [line for line in change.after(touched.path).splitlines() if line.startswith(b"[")]
            return _HARMLESS_GROUPS.issuperset(line.strip() for line in groups)
        return True

    def missing(self, rules: Rules) -> tuple[str, ...]:
        return tuple(name for name in rules.expected if not (self._root / name).is_file())

    def undo(self, change: Change) -> tuple[str, ...]:
        assert isinstance(change, FolderEdits)
        return self._watch.undo(change)

    def save(self, change: Change, folder: Path, *, contents: bool = True) -> None:
        assert isinstance(change, FolderEdits)
        self._watch.save(change, folder, contents=contents)

    def mark(self) -> FolderMark:
        taken, self._seen = self._seen or self._watch.snapshot(), None
        return FolderMark(taken, self._watch.snapshot)

    def restore_gates(self, ignoring: Mapping[str, str], rules: Rules, folder: Path) -> Restored:
        change = self._watch.changed(ignoring)
        gates = Gates(rules.verify, declared=(*(rules.create or ()), *(rules.modify or ())))
        touched = self._counting(change) if change.touched else ()
        wrong = {one.path for one in touched if self._limits.protection.protected_by(one.path)}
        if not rules.may_change_gates:
            wrong |= {one.path for one in touched if gates.gate_of(one, change)}
        # If nothing was put back, this is the folder's present state.
        self._seen = None if wrong else change.present
        if wrong:
            drift = self._watch.drifted(wrong.__contains__)
            self._watch.save(drift, folder)
            for path in self._watch.restore(drift):
                raise refused(
                    path, "GATE_CHANGED", "it was changed while Ganger was not watching and cannot be put back"
                )
        return Restored(tuple(sorted(wrong)), len(touched) > len(wrong))


@dataclass(frozen=True, slots=True)
class FolderMark:
    """The `Mark` port."""

    taken: Snapshot
    again: Callable[[], Snapshot]

    def moved(self) -> tuple[str, ...]:
        return self.again().moved_since(self.taken)

    def had(self, path: str) -> bool:
        return path in self.taken.files


class _Part:
    """A change without some of its paths."""

    def __init__(self, whole: Change, touched: tuple[Touched, ...]) -> None:
        self._whole, self.touched = whole, touched

    def before(self, path: str) -> bytes:
        return self._whole.before(path)

    def after(self, path: str) -> bytes:
        return self._whole.after(path)

    def names_before(self, folder: str) -> Collection[str]:
        return self._whole.names_before(folder)


def is_unwatched(path: str) -> bool:
    """Generated files, except those that would give a check other programs or plugins than the operator's."""
    parts = path.split("/")
    if "node_modules" in parts:
        below = parts[parts.index("node_modules") + 1 :]
        return bool(below) and below[0] != ".bin"
    if any(part.endswith((".egg-info", ".dist-info")) for part in parts):
        return parts[-1] != "entry_points.txt" and not parts[-1].endswith((".egg-info", ".dist-info"))
    return is_generated(path)

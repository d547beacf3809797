"""An attempt in the project's own folder: the state before, the changes, and how to undo them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from ganger.errors import NotFoundError
from ganger.workspaces.direct.edit_summary import save_edit
from ganger.workspaces.direct.edits import InPlace, compare
from ganger.workspaces.direct.undo import Undo
from ganger.workspaces.files.baseline import Baseline
from ganger.workspaces.files.content_store import DEFAULT_LIMIT_BYTES, Kept
from ganger.workspaces.files.snapshot import Entry, Snapshot, look_at, take
from ganger.workspaces.files.tree import parents_of
from ganger.workspaces.files.tree_links import Reach
from ganger.workspaces.refusals import named_failures

_T = TypeVar("_T")


class Watch:
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
        self._kept = Kept(folder / "contents", limit_bytes)
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

    def changed(self, ignoring: Mapping[str, str] | None = None) -> InPlace:
        """Everything that differs from the baseline, except paths with exactly the digest that Ganger wrote.

        An empty digest stands for a path that Ganger removed.
        """
        return self._compare(ignoring or {}, None)

    def drifted(self, paths: Callable[[str], bool]) -> InPlace:
        """Of these paths, those that now differ from the baseline, with the entries that block them."""
        return self._compare({}, paths)

    def undo(self, change: InPlace) -> tuple[str, ...]:
        """Puts everything in the change back; returns the paths for which that was not possible.

        Content that the last `save` could not save is moved out of the project instead of being removed.
        """
        with self._tree() as tree:
            return Undo(tree, change, self._aside, self._unsaved).run()

    def restore(self, drift: InPlace) -> tuple[str, ...]:
        """Does the same for what `drifted` found."""
        return self.undo(drift)

    def save(self, change: InPlace, folder: Path, *, contents: bool = True) -> tuple[str, ...]:
        """Saves the change, with a summary; returns the files that could not be saved. An earlier save is not changed:
        what it does not hold goes to a folder beside it."""
        unsaved = save_edit(change, folder, contents=contents)
        self._unsaved = frozenset(unsaved)
        return unsaved

    def accept(self, change: InPlace) -> None:
        """Accepts the change: its paths' present state becomes part of the baseline."""
        paths = [*(one.path for one in change.touched), *change.permissions]
        if not change.is_nothing:
            self._adopt(paths, change.folders, change.present)

    def absorb(self, written: Mapping[str, str]) -> None:
        """Takes Ganger's own writes during an attempt into the baseline; a path with another digest than given is left
        for `changed` to find."""
        files: dict[str, Entry] = {}
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

    def _compare(self, ignoring: Mapping[str, str], only: Callable[[str], bool] | None) -> InPlace:
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

    def _establish(self, tree: Reach, snapshot: Snapshot) -> None:
        """Contents are written first: a baseline on disk can always be restored."""
        kept = self._kept.keep(tree, snapshot)
        self._record.save(kept)
        self._baseline = kept

    @contextmanager
    def _tree(self) -> Iterator[Reach]:
        with named_failures(str(self._root)), Reach(self._root) as tree:
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

"""What no task may change in the project's own folder: git's settings, installed packages, linked folders."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ganger.errors import GangerError, RollbackFailed, WriteRefused
from ganger.ports.fixed import FixedChange
from ganger.workspaces.direct.edits import FolderEdits, compare, save_edit
from ganger.workspaces.direct.undo import Undo
from ganger.workspaces.direct.watch import FolderMark
from ganger.workspaces.files.baseline import Baseline
from ganger.workspaces.files.content_store import DEFAULT_LIMIT_BYTES, ContentStore
from ganger.workspaces.files.snapshot import MOST_LEVELS, Snapshot, take
from ganger.workspaces.files.tree import Tree, sha256_of
from ganger.workspaces.files.tree_links import TreeLinks
from ganger.workspaces.refusals import named_failures
from ganger.workspaces.rules.line_counts import listed

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


PACKAGES = frozenset({".venv", "venv", "node_modules", ".tox", ".nox", ".direnv", "__pypackages__", ".eggs"})
_ENVIRONMENT = "pyvenv.cfg"
_GIT = ".git"
_NAMED = PACKAGES | {_GIT, _ENVIRONMENT}
# Tools write these on their own when they run what is installed: put back, and charged to no agent.
_CACHES = frozenset({"__pycache__", ".cache", ".vite", ".vite-temp", ".vitest"})
_UNENTERED = frozenset({"__pycache__"})

_DATA_FOLDERS = listed("refs logs lfs rr-cache rebase-merge rebase-apply sequencer reftable annex fsmonitor--daemon")
_DATA_FILE = re.compile(
    r"HEAD|[A-Z_]+_HEAD|index|index\..*|sharedindex\..*|packed-refs|shallow|gc\.(log|pid)|gitk\.cache"
    r"|(COMMIT_EDIT|MERGE_|SQUASH_|TAG_EDIT)MSG|MERGE_(MODE|RR|AUTOSTASH)|AUTO_MERGE|BISECT_[A-Z_]+|NOTES_[A-Z_]+"
    r"|fsmonitor--daemon.*|.*\.lock"
)
_BORROWED = frozenset({"objects", "objects/info", "objects/info/alternates", "objects/info/http-alternates"})
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_data_of_git(inside: Sequence[str]) -> bool:
    """Whether a path in a git folder is history, index or a state file; everything else configures git."""
    top = inside[0]
    if top == "worktrees":
        return len(inside) > 2 and is_data_of_git(inside[2:])
    if top == "modules":
        # A submodule's name can have any number of parts.
        return any(is_data_of_git(inside[start:]) for start in range(2, len(inside)))
    if top == "objects":
        return "/".join(inside) not in _BORROWED
    if top == "info":
        return list(inside) == ["info", "refs"]
    return top in _DATA_FOLDERS or (len(inside) == 1 and _DATA_FILE.fullmatch(top) is not None)


def is_left_alone(path: str) -> bool:
    parts = path.split("/")
    if _GIT not in parts:
        return False
    inside = parts[len(parts) - parts[::-1].index(_GIT) :]
    return bool(inside) and is_data_of_git(inside)


@dataclass(frozen=True, slots=True, eq=False)
class FoundFixed:
    """What differs: paths that changed, and whole places that are new. An agent is responsible for the `grave` ones;
    the others are what tools leave on their own."""

    change: FolderEdits | None
    came: tuple[str, ...]
    grave: tuple[str, ...]
    refs: tuple[str, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.came, *(one.path for one in self.change.touched)) if self.change is not None else self.came

    @property
    def is_nothing(self) -> bool:
        return not self.came and (self.change is None or self.change.is_nothing)


class FixedFiles:
    """The `FixedFiles` port. `folder` is Ganger's own.

    `walled` finds out whether the sandbox keeps agents from writing these. If it does, Ganger only looks for what
    is new among the installed packages.
    """

    def __init__(
        self,
        root: Path,
        folder: Path,
        *,
        own: Path,
        linked: Iterable[str] = (),
        opened: Iterable[Path] = (),
        walled: Callable[[], bool] = lambda: False,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._own = _inside(self._root, own)
        self._linked = tuple(name for given in linked if (name := _inside(self._root, self._root / given)))
        self._opened = tuple(name for place in opened if (name := _inside(self._root, place)))
        self._find_out, self._now_ns = walled, now_ns
        # Flushing thousands of files would delay a run's start more than reading them.
        self._kept = ContentStore(folder / "contents", limit_bytes, durable=False)
        self._record = Baseline(folder / "baseline", self._root)
        self._aside = folder / "aside"
        self._baseline: Snapshot | None = None
        self._tops: list[str] = []
        self._refs_file = folder / "refs.json"
        self._refs: dict[str, str] = {}

    @cached_property
    def walled(self) -> bool:
        """Found out only where there is something to protect."""
        return self._find_out()

    @property
    def exposed(self) -> bool:
        with self._tree() as tree:
            return bool(self._places(tree)) and not self.walled

    def begin(self) -> tuple[str, ...]:
        """Takes the present state as the new baseline; returns the refs that moved since the last look."""
        known = self._refs if self._baseline is not None else None
        earlier = self._baseline or self._record.load()
        with self._tree() as tree:
            places = self._places(tree)
            present = self._take(tree, places, earlier)
            if self._baseline is None or not present.shows_no_change_since(self._baseline):
                present = self._kept.keep(tree, present)
                self._record.save(present)
        self._count_from(present)
        self._know_refs(self._read_refs(places))
        return () if known is None else moves(known, self._refs)

    def resume(self) -> None:
        """Loads the baseline of an earlier lead."""
        earlier = self._record.load()
        if earlier is None:
            self.begin()
            return
        self._count_from(earlier)
        self._kept.covers(earlier)
        with suppress(OSError, ValueError):
            told = json.loads(self._refs_file.read_text(encoding="utf-8"))
            self._refs = {str(name): str(value) for name, value in told.items()}

    def _count_from(self, snapshot: Snapshot) -> None:
        self._baseline, self._tops = snapshot, _tops(snapshot)

    def _know_refs(self, now: dict[str, str]) -> None:
        """Saves the baseline for the next lead too."""
        if now == self._refs:
            return
        self._refs = now
        with suppress(OSError):
            temp = self._refs_file.with_name(f"{self._refs_file.name}.tmp")
            temp.write_text(json.dumps(now), encoding="utf-8")
            temp.replace(self._refs_file)

    def folders(self) -> tuple[Path, ...]:
        """What a sandboxed program may not write although it lies in a folder that it may write."""
        return tuple(self._root / place for place in self._tops)

    def look(self) -> FoundFixed:
        """What differs now. Each moved ref is reported once."""
        baseline = self._baseline
        assert baseline is not None, "begin or resume first"
        with self._tree() as tree:
            places = self._places(tree)
            if not places and not self._tops:
                return FoundFixed(None, (), (), ())
            came = tuple(place for place in places if place not in self._tops)
            present = self._take(tree, self._tops, baseline)
            change = compare(tree, self._kept, baseline, present, ignoring={})
        now = self._read_refs([place for place in places if place not in came])
        moved = moves(self._refs, now)
        self._know_refs(now)
        grave = [place for place in came if place.rpartition("/")[2] == _GIT]
        grave += [one.path for one in change.touched if _CACHES.isdisjoint(one.path.split("/"))]
        return FoundFixed(change, came, tuple(grave), moved)

    def put_back(self, found: FixedChange, folder: Path) -> tuple[str, ...]:
        """Puts everything back, after saving the found state to `folder`. Returns the paths for which that failed."""
        assert isinstance(found, FoundFixed)
        if found.change is None:
            return ()
        unsaved = save_edit(found.change, folder) if found.change.touched else ()
        left: list[str] = []
        with self._tree() as tree:
            for number, place in enumerate(found.came):
                name = f"{number}-{place.replace('/', '+')[-60:]}"
                if not _moved_out(tree, place, (folder / "came", self._aside), name):
                    left.append(place)
            left += Undo(tree, found.change, self._aside, frozenset(unsaved)).run()
        return tuple(left)

    def mark(self) -> FolderMark:
        """The present state, for a later comparison; the parent folders show when a place appears or disappears."""
        return FolderMark(self._snapshot(), self._snapshot)

    def _snapshot(self) -> Snapshot:
        if not self._tops:
            return Snapshot(0, {}, {})
        with self._tree() as tree:
            return self._take(tree, self._tops, self._baseline)

    def _places(self, tree: TreeLinks) -> list[str]:
        """Where places of this kind are, judged by names only."""
        with tree.top() as fd:
            found = [*_find(fd, "", self._own, 1)]
        for name in self._linked:
            with suppress(WriteRefused):
                if name not in found and tree.look(name) is not None:
                    found.append(name)
        outer = {name for name in found if not any(name.startswith(f"{other}/") for other in found)}
        return sorted(name for name in outer if not any(_is_within(name, place) for place in self._opened))

    def _take(self, tree: TreeLinks, places: Iterable[str], earlier: Snapshot | None) -> Snapshot:
        entered, closed = [], {}
        for place in places:
            found = _look(tree, place) if place.rpartition("/")[2] != _GIT and self.walled else None
            if found is not None and stat.S_ISDIR(found.st_mode):
                closed[place] = found.st_mode
            else:
                entered.append(place)
        seen = take(tree, is_left_alone, earlier, self._now_ns(), places=entered)
        return Snapshot(seen.taken_ns, seen.files, {**seen.folders, **closed}, seen.times)

    def _read_refs(self, places: Iterable[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for place in places:
            above, _, name = place.rpartition("/")
            if name == _GIT:
                prefix = f"{above}: " if above else ""
                found.update((f"{prefix}{ref}", value) for ref, value in refs_of(self._root / place).items())
        return found

    @contextmanager
    def _tree(self) -> Iterator[TreeLinks]:
        with named_failures(str(self._root)), TreeLinks(self._root) as tree:
            yield tree


def _find(fd: int, above: str, own: str, level: int) -> Iterator[str]:
    below: list[str] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            name = entry.name
            if name in _NAMED:
                if name == _ENVIRONMENT:
                    # The folder itself is an environment, whatever it is called.
                    yield above.rstrip("/") or name
                    continue
                if name == _GIT or entry.is_symlink() or entry.is_dir(follow_symlinks=False):
                    yield above + name
            elif entry.is_dir(follow_symlinks=False) and name not in _UNENTERED and above + name != own:
                below.append(name)
    if level >= MOST_LEVELS:
        return
    for name in below:
        try:
            inner = os.open(name, _STEP, dir_fd=fd)
        except OSError as problem:
            if problem.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR):
                raise
            continue
        try:
            with suppress(PermissionError):
                yield from _find(inner, f"{above}{name}/", own, level + 1)
        finally:
            os.close(inner)


def _tops(snapshot: Snapshot) -> list[str]:
    """The places a snapshot was taken of: entries that lie inside no other entry."""
    paths = (*snapshot.folders, *snapshot.files)
    return sorted(path for path in paths if path.rpartition("/")[0] not in snapshot.folders)


def _is_within(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _inside(root: Path, place: Path) -> str:
    """A place's path from the root; empty where it lies elsewhere."""
    try:
        name = Path(os.path.normpath(place)).relative_to(root).as_posix()
    except ValueError:
        return ""
    return "" if name == "." else name


def _look(tree: TreeLinks, place: str) -> os.stat_result | None:
    with suppress(WriteRefused):
        return tree.look(place)
    return None


def _moved_out(tree: TreeLinks, place: str, folders: Iterable[Path], name: str) -> bool:
    """Moves it whole, to the first folder on the same file system."""
    for folder in folders:
        try:
            tree.carry_out(place, folder, f"{secrets.token_hex(4)}-{name}")
        except FileNotFoundError:
            return True
        except OSError as problem:
            if problem.errno not in (errno.EXDEV, errno.EACCES, errno.EPERM, errno.EBUSY):
                raise RollbackFailed(
                    f"{place} cannot be moved out of the project: {problem.strerror}",
                    hint="Fix the cause and run again.",
                ) from problem
        else:
            return True
    return False

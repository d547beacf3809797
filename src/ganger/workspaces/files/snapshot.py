"""What a folder holds at one moment: one walk through descriptors; contents are read only where size and times do not
decide."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from ganger.errors import WriteRefused
from ganger.ports.changes import Side
from ganger.workspaces.files.tree_links import TreeLinks
from ganger.workspaces.refusals import failure_for

MOST_LEVELS = 100
DIGEST_LENGTH = 64
LARGEST_READ_BYTES = 256 << 20

_SECOND = 1_000_000_000
# A file that was just written may be written again without a change of its times.
_TOO_YOUNG_NS = _SECOND // 10
_TOO_YOUNG_ON_COARSE_CLOCKS_NS = 2 * _SECOND
_CHUNK_BYTES = 1 << 20
_TYPE = 0o170000
_FILE, _LINK, _FOLDER = stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNREAD = "unread:"


class FileEntry(NamedTuple):
    """One path that is not a plain folder. `digest` is empty before the first read, and begins with `unread:` when the
    file cannot be read; a folder that cannot be opened is an entry too."""

    mode: int
    size: int
    mtime_ns: int
    ino: int
    ctime_ns: int
    uid: int
    gid: int
    digest: str = ""

    @property
    def is_file(self) -> bool:
        return self.mode & _TYPE == _FILE

    @property
    def is_link(self) -> bool:
        return self.mode & _TYPE == _LINK

    @property
    def has_digest(self) -> bool:
        return len(self.digest) == DIGEST_LENGTH

    @property
    def is_unread(self) -> bool:
        return self.digest.startswith(_UNREAD)

    def unread(self) -> FileEntry:
        """Identified by its inode and times only, and equal to nothing else."""
        return self._replace(digest=f"{_UNREAD}{self.ino}:{self.size}:{self.mtime_ns}:{self.ctime_ns}")

    def is_like(self, other: FileEntry) -> bool:
        """Whether type, content and executable bit are the same; permissions that git does not record are ignored."""
        return self.size == other.size and _same_content(self, other) and _git_mode(self) == _git_mode(other)

    def side(self) -> Side:
        return Side(_git_mode(self), self.size, self.digest or self.unread().digest)


_GIT = FileEntry(_FOLDER, 0, 0, 0, 0, 0, 0, f"{_UNREAD}git")


def _same_content(one: FileEntry, other: FileEntry) -> bool:
    return one is other or (one.digest == other.digest != "")


def _git_mode(entry: FileEntry) -> int:
    """Git's mode; with set-user-id, set-group-id and sticky bits where set, the bare type where git has no mode."""
    kind = entry.mode & _TYPE
    if kind != _FILE:
        return kind
    if entry.is_unread:
        return _FILE
    return _FILE | (entry.mode & 0o7000) | (0o755 if entry.mode & 0o100 else 0o644)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Files, links and special files by path; folders with their modes. An entry that did not change between two
    snapshots is the same object in both. `times` hold when an entry was last added to or removed from a folder."""

    taken_ns: int
    files: Mapping[str, FileEntry]
    folders: Mapping[str, int]
    times: Mapping[str, int] = field(default_factory=dict, compare=False)

    def shows_no_change_since(self, other: Snapshot) -> bool:
        return self.files == other.files and self.folders == other.folders

    def moved_since(self, other: Snapshot) -> tuple[str, ...]:
        """Paths that were touched in between, whatever they hold now, and folders whose entries changed, by the
        kernel's change time."""
        moved = [f"{path}/" for path, time in self.times.items() if other.times.get(path) != time]
        old, new = other.files, self.files
        if old == new:
            return tuple(moved)
        moved += [path for path, now in new.items() if (was := old.get(path)) is not now and not _is_same(was, now)]
        return tuple(sorted([*moved, *(path for path in old if path not in new)]))


def take(
    tree: TreeLinks,
    skip: Callable[[str], bool],
    previous: Snapshot | None,
    now_ns: int,
    *,
    places: Iterable[str] | None = None,
) -> Snapshot:
    """The present tree. What may have changed since `previous` without a trace is read and compared.

    `places`: only these, and git's own folders among them are entered.
    """
    scan = _Scan(skip, previous, inside_git=places is not None)
    try:
        if places is None:
            with tree.top() as fd:
                scan.times["."] = os.fstat(fd).st_ctime_ns
                scan.folder(fd, "", 1)
        for place in places or ():
            scan.place(tree, place)
    except OSError as problem:
        raise failure_for(str(tree.root), problem) from problem
    for path in scan.ties:
        _settle(tree, path, scan)
    return Snapshot(now_ns, scan.files, scan.folders, scan.times)


def _settle(tree: TreeLinks, path: str, scan: _Scan) -> None:
    known, now = scan.old[path], scan.files[path]
    if known.mode & _TYPE != now.mode & _TYPE or known.size != now.size or now.is_unread:
        return
    settled = now.unread() if known.is_unread else read_through(tree, path, now)
    if settled is None:
        del scan.files[path]
    else:
        scan.files[path] = settled


class _Scan:
    """One walk. Depth is bounded, so that no tree can use up stack or descriptors."""

    def __init__(self, skip: Callable[[str], bool], previous: Snapshot | None, *, inside_git: bool) -> None:
        self._inside_git = inside_git
        self.files: dict[str, FileEntry] = {}
        self.folders: dict[str, int] = {}
        self.times: dict[str, int] = {}
        self.ties: list[str] = []
        self._skip = skip
        self.old: Mapping[str, FileEntry] = previous.files if previous else {}
        self._old_folders: Mapping[str, int] = previous.folders if previous else {}
        taken_ns = previous.taken_ns if previous else 0
        self._young_ns = taken_ns - _TOO_YOUNG_NS
        self._maybe_young_ns = taken_ns - _TOO_YOUNG_ON_COARSE_CLOCKS_NS

    def place(self, tree: TreeLinks, path: str) -> None:
        """One place with everything below it; nothing where it does not exist."""
        with suppress(FileNotFoundError, WriteRefused), tree.holding(path) as (fd, name):
            now = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if now.st_mode & _TYPE == _FOLDER:
                self._step(fd, name, path, now, 1)
                return
            seen, known = _entry(now), self.old.get(path)
            young = known is not None and self._is_young(known)
            self.files[path] = known if known is not None and _is_same(known, seen) and not young else seen
            if known is not None and self.files[path] is seen:
                self.ties.append(path)

    def folder(self, fd: int, above: str, level: int) -> None:
        below: list[tuple[str, os.stat_result]] = []
        old, files, maybe_young_ns = self.old, self.files, self._maybe_young_ns
        with os.scandir(fd) as entries:
            for entry in entries:
                try:
                    now = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                if now.st_mode & _TYPE == _FOLDER:
                    below.append((entry.name, now))
                    continue
                path = above + entry.name
                known = old.get(path)
                # Only the change time decides: no program but the kernel sets it.
                if (
                    known is not None
                    and known.ctime_ns == now.st_ctime_ns
                    and known.mtime_ns == now.st_mtime_ns
                    and known.size == now.st_size
                    and known.ino == now.st_ino
                    and known.mode == now.st_mode
                    and (known.ctime_ns < maybe_young_ns or not self._is_young(known))
                ):
                    files[path] = known
                elif known is not None or not self._skip(path):
                    files[path] = _entry(now)
                    if known is not None:
                        self.ties.append(path)
        for name, now in below:
            self._step(fd, name, above + name, now, level)

    def _is_young(self, known: FileEntry) -> bool:
        return known.ctime_ns >= self._young_ns or known.ctime_ns % _SECOND == 0

    def _step(self, above_fd: int, name: str, path: str, now: os.stat_result, level: int) -> None:
        if path not in self._old_folders and self._skip(path):
            return
        if name == ".git" and not self._inside_git:
            # Its existence counts; its content is left to git.
            self.files[path] = _GIT
            return
        self.folders[path] = now.st_mode
        self.times[path] = now.st_ctime_ns
        if level >= MOST_LEVELS:
            self._seal(path, now)
            return
        for last in (False, True):
            try:
                fd = os.open(name, _STEP, dir_fd=above_fd)
            except FileNotFoundError:
                del self.folders[path]
                return
            except OSError as problem:
                if problem.errno not in (errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR):
                    raise
                self._seal(path, now)
                return
            try:
                self.folder(fd, f"{path}/", level + 1)
                return
            except PermissionError:
                # An entry that is unreadable for a moment would look like a new one later.
                if last:
                    self._seal(path, now)
            finally:
                os.close(fd)

    def _seal(self, path: str, now: os.stat_result) -> None:
        sealed = _entry(now).unread()
        known = self.old.get(path)
        self.files[path] = known if known == sealed else sealed


def _is_same(was: FileEntry | None, now: FileEntry) -> bool:
    """The same inode, untouched; whether it was read makes no difference."""
    return was is not None and was[:-1] == now[:-1]


def still(last: Snapshot | None, path: str, now: FileEntry) -> FileEntry | None:
    """The entry with its earlier digest, if no change since then can have gone unseen."""
    known = last.files.get(path) if last is not None else None
    if last is None or known is None or not known.has_digest or known._replace(digest="") != now:
        return None
    return known if known.ctime_ns < last.taken_ns - _TOO_YOUNG_ON_COARSE_CLOCKS_NS else None


def look_at(tree: TreeLinks, path: str) -> FileEntry | None:
    """One path with its digest; None when it does not exist or is a folder."""
    try:
        now = tree.look(path)
    except WriteRefused:
        return None
    return None if now is None or now.st_mode & _TYPE == _FOLDER else read_through(tree, path, _entry(now))


def _entry(now: os.stat_result) -> FileEntry:
    """An entry from a stat. A special file has no content: it is unchanged while its inode is the same."""
    digest = "" if now.st_mode & _TYPE in (_FILE, _LINK, _FOLDER) else f"{_UNREAD}{now.st_ino}"
    return FileEntry(
        now.st_mode, now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns, now.st_uid, now.st_gid, digest
    )


def hashed(fd: int, size: int) -> str:
    """The digest of at most `size` bytes and one chunk: a file that keeps growing must not be read forever."""
    digest = hashlib.sha256()
    done = 0
    while done <= size and (piece := os.read(fd, _CHUNK_BYTES)):
        digest.update(piece)
        done += len(piece)
    return digest.hexdigest()


def read_through(
    tree: TreeLinks, path: str, seen: FileEntry, reader: Callable[[int, int], str] = hashed, *, tries: int = 3
) -> FileEntry | None:
    """The entry with its digest, read between two equal stats if possible; None when it no longer exists.

    `reader` gets the open file and its size and returns the digest.
    """
    try:
        if seen.is_link:
            return seen._replace(digest=hashlib.sha256(tree.target(path)).hexdigest())
        if not seen.is_file or seen.size > LARGEST_READ_BYTES:
            return seen.unread()
        with tree.opened(path) as fd:
            for _ in range(tries):
                before = _entry(os.fstat(fd))
                found = before._replace(digest=reader(fd, before.size))
                if _entry(os.fstat(fd)) == before:
                    break
                os.lseek(fd, 0, os.SEEK_SET)
            return found
    except FileNotFoundError:
        return None
    except WriteRefused:
        return seen.unread()
    except OSError as problem:
        if problem.errno not in (errno.EACCES, errno.EPERM, errno.EINVAL, errno.ELOOP):
            raise failure_for(path, problem) from problem
        return seen.unread()

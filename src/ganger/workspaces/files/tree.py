"""One directory tree reached by file descriptors alone: nothing leaves it, no symbolic link is ever followed."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ganger.errors import NotFoundError
from ganger.workspaces.refusals import failure_for, refused

TEMP_PREFIX = ".ganger-"
TEMP_SUFFIX = ".tmp"
ASIDE_SUFFIX = ".aside"
NEW_FILE_MODE = 0o644
NEW_DIRECTORY_MODE = 0o755

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP})
_NOT_OURS_TO_GIVE = frozenset({errno.EPERM, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileImage:
    """The state of one regular file at one moment."""

    sha256: str
    size: int
    mode: int
    mtime_ns: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A regular file, completely read."""

    image: FileImage
    data: bytes


@dataclass(frozen=True, slots=True)
class Draft:
    """A file to be placed. By default it gets its directory's owner and the present time."""

    data: bytes
    mode: int
    owner: tuple[int, int] | None = None
    mtime_ns: int | None = None


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def parents_of(path: str) -> tuple[str, ...]:
    """Every directory above a path, nearest the root first; the root itself is not among them."""
    parts = path.split("/")
    return tuple("/".join(parts[:depth]) for depth in range(1, len(parts)))


class Tree:
    """The only way Ganger touches a workspace: walk down by descriptor, act on (directory, name)."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._root_fd = -1

    def __enter__(self) -> Self:
        try:
            self._root_fd = os.open(self.root, _DIRECTORY)
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(f"there is no directory {self.root}", hint="Check the path of the workspace.") from None
        except OSError as problem:
            raise failure_for(str(self.root), problem) from problem
        return self

    def __exit__(self, *_: object) -> None:
        descriptor, self._root_fd = self._root_fd, -1
        os.close(descriptor)

    def look(self, path: str) -> os.stat_result | None:
        """The stat of the entry itself, never of a link's target; None when it or a directory above it is missing."""
        with suppress(FileNotFoundError), self._parent(path) as (directory, name):
            return _entry(directory, name)
        return None

    def read(self, path: str, limit_bytes: int) -> TreeEntry | None:
        """A regular file's bytes and image; None when missing, refused when it is anything else or too large."""
        with suppress(FileNotFoundError), self._parent(path) as (directory, name), _opened(directory, name, path) as fd:
            data = _read_bounded(fd, limit_bytes)
            if len(data) > limit_bytes:
                raise refused(path, "TOO_LARGE", f"the file is larger than the limit of {limit_bytes} bytes")
            return TreeEntry(_image(os.fstat(fd), sha256_of(data), len(data)), data)
        return None

    def read_file(self, path: str, *, limit: int) -> bytes:
        """The bytes of a regular file that must exist."""
        found = self.read(path, limit)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found.data

    def image(self, path: str) -> FileImage | None:
        """A regular file's image without holding its bytes; None when missing, refused when it is anything else."""
        with suppress(FileNotFoundError), self._parent(path) as (directory, name):
            return _image_at(directory, name, path)
        return None

    def missing_parents(self, path: str) -> tuple[str, ...]:
        """The directories that must be made before this path can be written."""
        above = parents_of(path)
        with self._walked(above[-1] if above else "") as (_, depth):
            return above[depth:]

    def names(self, directory: str) -> list[str]:
        """The entries of a directory; `""` is the root."""
        with self._directory(directory) as fd:
            with os.scandir(fd) as entries:
                return [entry.name for entry in entries]

    def make_directories(self, paths: Iterable[str], made: list[str] | None = None) -> None:
        """Make these directories, nearest the root first; an existing one is kept, each new one is noted in `made`."""
        for path in paths:
            with self._parent(path) as (directory, name):
                is_new = _made_directory(directory, name)
                if is_new and made is not None:
                    made.append(path)
                fd = _step(directory, name, path)
                try:
                    if is_new:
                        _give(fd, _owner(os.fstat(directory)))
                finally:
                    os.close(fd)

    def land(
        self,
        path: str,
        draft: Draft,
        *,
        expected: FileImage | None,
        tag: str,
        taking: Callable[[], None] = lambda: None,
    ) -> None:
        """Put a file in place if the existing entry is still the planned one; `taking` is called just before."""
        with self._parent(path) as (directory, name), _temporary(directory, draft, tag) as temp:
            _confirm(directory, name, path, expected)
            taking()
            if expected is None:
                _place_new(directory, temp, name, path)
            else:
                os.rename(temp, name, src_dir_fd=directory, dst_dir_fd=directory)

    def restore(self, path: str, draft: Draft, *, tag: str) -> None:
        """Put a file in place of any existing entry; a directory there is an error."""
        with self._parent(path) as (directory, name), _temporary(directory, draft, tag) as temp:
            os.rename(temp, name, src_dir_fd=directory, dst_dir_fd=directory)

    def unlink(self, path: str) -> None:
        with self._parent(path) as (directory, name):
            os.unlink(name, dir_fd=directory)

    def remove_if_empty(self, path: str) -> bool:
        """True when the directory is gone afterwards."""
        try:
            with self._parent(path) as (directory, name):
                os.rmdir(name, dir_fd=directory)
        except FileNotFoundError:
            return True
        except OSError as problem:
            if problem.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                return False
            raise
        return True

    def move_aside(self, path: str, *, tag: str) -> str:
        """Rename whatever is at a path to an unused name beside it, and say which."""
        aside = _fresh_name(tag, ASIDE_SUFFIX)
        with self._parent(path) as (directory, name):
            os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
        return "/".join([*parents_of(path)[-1:], aside])

    def sync(self, directories: Iterable[str]) -> None:
        """Make the entries of these directories survive a power cut; `""` is the root."""
        for directory in sorted(set(directories)):
            with self._directory(directory) as fd:
                os.fsync(fd)

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        above, _, name = path.rpartition("/")
        _check_name(name, path)
        with self._directory(above) as fd:
            yield fd, name

    @contextmanager
    def _directory(self, path: str) -> Iterator[int]:
        with self._walked(path) as (fd, depth):
            if path and depth <= path.count("/"):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            yield fd

    @contextmanager
    def _walked(self, path: str) -> Iterator[tuple[int, int]]:
        """The deepest existing directory of a path, and how many of the path's parts it covers."""
        fd, depth = os.dup(self._root_fd), 0
        try:
            for name in path.split("/") if path else ():
                _check_name(name, path)
                try:
                    below = _step(fd, name, path)
                except FileNotFoundError:
                    break
                above, fd, depth = fd, below, depth + 1
                os.close(above)
            yield fd, depth
        finally:
            os.close(fd)


def _check_name(name: str, path: str) -> None:
    if name in ("", ".", "..") or "\0" in name:
        raise refused(path, "PATH_NOT_NORMAL", "a part of the path is empty, '.', '..' or has a NUL in it")


def _entry(directory: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=directory, follow_symlinks=False)


def _step(directory: int, name: str, path: str) -> int:
    """The descriptor of a sub-directory; a link or a file in its place is refused."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError as problem:
        if problem.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
            raise
        if stat.S_ISLNK(_entry(directory, name).st_mode):
            raise refused(path, "PATH_SYMLINK", f"{name!r} is a symbolic link; write to the real directory") from None
        raise refused(path, "PATH_NOT_REGULAR", f"{name!r} is not a directory") from None


def _made_directory(directory: int, name: str) -> bool:
    """False when the name is taken already."""
    try:
        os.mkdir(name, NEW_DIRECTORY_MODE, dir_fd=directory)
    except FileExistsError:
        return False
    return True


def _require_regular(entry: os.stat_result, path: str) -> None:
    if stat.S_ISLNK(entry.st_mode):
        raise refused(path, "PATH_SYMLINK", "this is a symbolic link; write to the real file")
    if not stat.S_ISREG(entry.st_mode):
        raise refused(path, "PATH_NOT_REGULAR", "this is not a regular file; only regular files are read or written")


@contextmanager
def _opened(directory: int, name: str, path: str) -> Iterator[int]:
    """A regular file for reading. It is checked first, so that no FIFO blocks and no device is touched."""
    _require_regular(_entry(directory, name), path)
    try:
        fd = os.open(name, _READ, dir_fd=directory)
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.EMLINK):
            raise refused(path, "PATH_SYMLINK", "this became a symbolic link while it was opened") from None
        raise
    try:
        _require_regular(os.fstat(fd), path)
        yield fd
    finally:
        os.close(fd)


def _read_bounded(fd: int, limit_bytes: int) -> bytes:
    """At most one byte more than the limit, so that the caller can tell."""
    pieces: list[bytes] = []
    left = limit_bytes + 1
    while left > 0 and (piece := os.read(fd, min(left, _CHUNK_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _image(entry: os.stat_result, sha256: str, size: int) -> FileImage:
    return FileImage(sha256, size, stat.S_IMODE(entry.st_mode), entry.st_mtime_ns, entry.st_uid, entry.st_gid)


def _image_at(directory: int, name: str, path: str) -> FileImage:
    with _opened(directory, name, path) as fd:
        entry = os.fstat(fd)
        digest = hashlib.sha256()
        size = 0
        # A file that keeps growing must not be read forever.
        while size <= entry.st_size and (piece := os.read(fd, _CHUNK_BYTES)):
            digest.update(piece)
            size += len(piece)
        return _image(entry, digest.hexdigest(), size)


def _confirm(directory: int, name: str, path: str, expected: FileImage | None) -> None:
    try:
        present = _image_at(directory, name, path)
    except FileNotFoundError:
        if expected is None:
            return
        raise refused(path, "HASH_MISMATCH", "the file was removed after the change was planned") from None
    if expected is None:
        raise refused(path, "CREATE_EXISTS", "a file appeared here after the change was planned")
    if present.sha256 != expected.sha256:
        raise refused(path, "HASH_MISMATCH", "the file was changed by someone else after the change was planned")


def _place_new(directory: int, temp: str, name: str, path: str) -> None:
    """Give a new file its name without replacing another: a link fails where a rename would overwrite."""
    try:
        os.link(temp, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except FileExistsError:
        raise refused(path, "CREATE_EXISTS", "a file appeared here after the change was planned") from None
    except OSError as problem:
        if problem.errno not in _NO_HARD_LINKS:
            raise
        os.rename(temp, name, src_dir_fd=directory, dst_dir_fd=directory)


def _fresh_name(tag: str, suffix: str) -> str:
    return f"{TEMP_PREFIX}{tag}-{secrets.token_hex(8)}{suffix}"


@contextmanager
def _temporary(directory: int, draft: Draft, tag: str) -> Iterator[str]:
    """A written and synced temporary file beside its target; its name is always removed afterwards."""
    name = _fresh_name(tag, TEMP_SUFFIX)
    try:
        _write_new(directory, name, draft)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _write_new(directory: int, name: str, draft: Draft) -> None:
    fd = os.open(name, _NEW, 0o600, dir_fd=directory)
    try:
        left = memoryview(draft.data)
        while left:
            left = left[os.write(fd, left) :]
        _give(fd, draft.owner or _owner(os.fstat(directory)))
        os.fchmod(fd, draft.mode)
        if draft.mtime_ns is not None:
            os.utime(fd, ns=(draft.mtime_ns, draft.mtime_ns))
        os.fsync(fd)
    finally:
        os.close(fd)


def _owner(entry: os.stat_result) -> tuple[int, int]:
    return entry.st_uid, entry.st_gid


def _give(fd: int, owner: tuple[int, int]) -> None:
    """Sets the owner where allowed, so that an agent that runs as another user keeps access to its workspace."""
    if _owner(os.fstat(fd)) == owner:
        return
    try:
        os.fchown(fd, *owner)
    except OSError as problem:
        if problem.errno not in _NOT_OURS_TO_GIVE:
            raise

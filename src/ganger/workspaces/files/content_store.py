"""Contents kept for undoing: one copy of each, named by its digest, never more bytes than the limit."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import itertools
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from ganger.workspaces.files.snapshot import FileEntry, Snapshot, hashed, read_through
from ganger.workspaces.files.tree import sha256_of
from ganger.workspaces.files.tree_links import TreeLinks
from ganger.workspaces.refusals import failure_for, named_failures

DEFAULT_LIMIT_BYTES = 256 << 20

_FICLONE = 0x40049409
_CLONED_FROM_BYTES = 1 << 20
_READ_UNKEPT_UP_TO_BYTES = 16 << 20
_SYNCED_TOGETHER_FROM = 12
_BATCH_FILES = 1000
_CHUNK_BYTES = 1 << 20
_TEMP = ".tmp-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ContentStore:
    """`whole` is False while something did not fit or cannot be read: a change to it is seen and cannot be undone.

    `durable`: the contents survive a power cut. Without it, a lost content is detected by its digest and counts as not
    held.
    """

    def __init__(self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES, *, durable: bool = True) -> None:
        self.whole = True
        self._durable = durable
        self._folder = folder
        self._limit_bytes = limit_bytes
        self._held: dict[str, int] | None = None
        self._total = 0
        self._can_clone = True
        self._numbers = itertools.count()

    def keep(self, tree: TreeLinks, snapshot: Snapshot) -> Snapshot:
        """Copies what is not held yet; returns the snapshot with the digests computed on the way."""
        if self.covers(snapshot):
            return snapshot
        held, files = self._open(), dict(snapshot.files)
        wanted = [
            (entry.size, path)
            for path, entry in files.items()
            if entry.digest not in held and not entry.is_unread and (entry.is_file or entry.is_link)
        ]
        if self._total + sum(size for size, _ in wanted) > self._limit_bytes:
            self.drop_all_but(entry.digest for entry in files.values())
        # Smallest first: one large file must not displace the sources.
        wanted.sort()
        with named_failures(str(self._folder)):
            for start in range(0, len(wanted), _BATCH_FILES):
                batch = _Batch(self, tree, files)
                batch.add([path for _, path in wanted[start : start + _BATCH_FILES]])
        found = Snapshot(snapshot.taken_ns, files, snapshot.folders)
        self.covers(found)
        return found

    def covers(self, snapshot: Snapshot) -> bool:
        """Whether every file and link of it is held; sets `whole`."""
        held = self._open()
        missing = (entry for entry in snapshot.files.values() if entry.digest not in held)
        self.whole = not any(entry.is_file or entry.is_link for entry in missing)
        return self.whole

    def has(self, digest: str) -> bool:
        return digest in self._open()

    def read(self, digest: str) -> bytes | None:
        """None when it is not held, or is damaged."""
        if not self.has(digest):
            return None
        try:
            data = (self._folder / digest).read_bytes()
        except OSError:
            return None
        return data if sha256_of(data) == digest else None

    def drop_all_but(self, digests: Iterable[str]) -> None:
        held = self._open()
        needed = set(digests)
        for digest in [one for one in held if one not in needed]:
            (self._folder / digest).unlink(missing_ok=True)
            self._total -= held.pop(digest)

    def fits(self, size: int) -> bool:
        return self._total + size <= self._limit_bytes

    def fill(self, target: int, source: int, size: int) -> str:
        """Copies the source's bytes into the target, sharing blocks where the file system can; returns their digest."""
        os.ftruncate(target, 0)
        os.lseek(target, 0, os.SEEK_SET)
        if size >= _CLONED_FROM_BYTES and self._cloned(target, source):
            return hashed(target, size)
        digest, done = hashlib.sha256(), 0
        while done <= size and (piece := os.read(source, _CHUNK_BYTES)):
            digest.update(piece)
            write_all(target, piece)
            done += len(piece)
        return digest.hexdigest()

    def settle(self, temps: Mapping[str, tuple[str, int]]) -> None:
        """Gives written files their names, after their content is on disk."""
        held = self._open()
        fd = os.open(self._folder, _FOLDER)
        try:
            if self._durable:
                _sync_files(fd, temps)
            for temp, (digest, size) in temps.items():
                os.rename(temp, digest, src_dir_fd=fd, dst_dir_fd=fd)
                if digest not in held:
                    held[digest] = size
                    self._total += size
            if self._durable:
                os.fsync(fd)
        finally:
            os.close(fd)

    def new_file(self) -> tuple[str, int]:
        name = f"{_TEMP}{next(self._numbers)}"
        return name, os.open(self._folder / name, _NEW, 0o600)

    def forget(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def _cloned(self, target: int, source: int) -> bool:
        if self._can_clone:
            try:
                fcntl.ioctl(target, _FICLONE, source)
            except OSError:
                self._can_clone = False
        return self._can_clone

    def _open(self) -> dict[str, int]:
        """What is held, sizes by digest; removes what a killed process was writing."""
        if self._held is None:
            with named_failures(str(self._folder)):
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                held: dict[str, int] = {}
                with os.scandir(self._folder) as entries:
                    for entry in entries:
                        if entry.name.startswith(_TEMP):
                            self.forget(entry.name)
                        else:
                            held[entry.name] = entry.stat(follow_symlinks=False).st_size
            self._held, self._total = held, sum(held.values())
        return self._held


class _Batch:
    """A batch of copies that become durable together."""

    def __init__(self, kept: ContentStore, tree: TreeLinks, files: dict[str, FileEntry]) -> None:
        self._kept, self._tree, self._files = kept, tree, files
        self._temps: dict[str, tuple[str, int]] = {}
        self._coming: set[str] = set()
        self._bytes = 0

    def add(self, paths: Iterable[str]) -> None:
        try:
            for path in paths:
                self._add(path, self._files[path])
            if self._temps:
                self._kept.settle(self._temps)
        except BaseException:
            for name in self._temps:
                self._kept.forget(name)
            raise

    def _add(self, path: str, seen: FileEntry) -> None:
        fits = self._kept.fits(self._bytes + seen.size)
        found = self._copy(path, seen) if fits else self._only_read(path, seen)
        if found is None:
            del self._files[path]
        elif not seen.has_digest or seen.digest == found.digest:
            self._files[path] = found

    def _copy(self, path: str, seen: FileEntry) -> FileEntry | None:
        name, fd = self._kept.new_file()
        try:
            if seen.is_link:
                return self._copy_target(name, fd, path, seen)
            found = read_through(self._tree, path, seen, partial(self._kept.fill, fd))
            self._note(name, found)
            return found
        finally:
            os.close(fd)
            if name not in self._temps:
                self._kept.forget(name)

    def _copy_target(self, name: str, fd: int, path: str, seen: FileEntry) -> FileEntry | None:
        try:
            target = self._tree.target(path)
        except OSError:
            return seen.unread()
        write_all(fd, target)
        found = seen._replace(digest=sha256_of(target))
        self._note(name, found)
        return found

    def _note(self, name: str, found: FileEntry | None) -> None:
        if found is None or not found.has_digest or found.digest in self._coming or self._kept.has(found.digest):
            return
        self._temps[name] = (found.digest, found.size)
        self._coming.add(found.digest)
        self._bytes += found.size

    def _only_read(self, path: str, seen: FileEntry) -> FileEntry | None:
        """For a file that does not fit: its digest still shows a change, unless it is too large to be judged at all."""
        if seen.has_digest:
            return seen
        return seen.unread() if seen.size > _READ_UNKEPT_UP_TO_BYTES else read_through(self._tree, path, seen)


def write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _sync_files(directory: int, names: Iterable[str]) -> None:
    """Flushes the file system once, which is many times faster than flushing many files one by one."""
    each = list(names)
    if len(each) >= _SYNCED_TOGETHER_FROM and _synced_together(directory):
        return
    for name in each:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _synced_together(directory: int) -> bool:
    """False where the system lacks this call."""
    with suppress(AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(directory) == 0:
            return True
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EBADF, errno.EINVAL):
            raise failure_for("the kept contents", OSError(number, os.strerror(number)))
    return False

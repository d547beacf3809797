"""What an agent's folder holds, read through descriptors only: nothing in it is run, followed or waited for."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ganger.errors import GangerError, WriteRefused
from ganger.workspaces.files.removal import names_in, open_up
from ganger.workspaces.refusals import refused
from ganger.workspaces.rules.protected import folded

MOST_ENTRIES = 2_000_000
_DEEPEST = 128
_LONGEST_PATH = 4000
_LONGEST_REF = 4096
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_OF_THE_MACHINE = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS})


@dataclass(frozen=True, slots=True)
class Census:
    """Files and links by path; folders that are repositories of their own, with their commit ("": none, or unknown);
    generated folders that were not entered; and what cannot be taken."""

    files: dict[str, os.stat_result] = field(default_factory=dict)
    repositories: dict[str, str] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    odd: dict[str, WriteRefused] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScanScope:
    """What a census covers: nothing in or below `skipped`, and no folder that `drop` names.

    `submodules` are those of the commit the folder was made from (an empty one was never filled). `tracked` are the
    folders of that commit: a git folder that appears in one of them does not hide its content.
    """

    root: Path
    skipped: Collection[str] = ()
    drop: Callable[[str], bool] = lambda _: False
    submodules: Mapping[str, str] = field(default_factory=dict)
    tracked: Collection[str] = ()
    into_repositories: bool = False


def is_git_name(name: str) -> bool:
    """Whether some operating system treats this name as `.git`; git itself refuses such names."""
    if name.isascii() and "git" not in name.lower():
        return False
    plain = folded(name)
    return plain == ".git" or (plain.startswith("git~") and plain[4:].isdigit())


def take_census(scope: ScanScope) -> Census:
    """One pass over the folder."""
    census = Census()
    with opened(scope.root, None) as fd:
        owner = os.fstat(fd).st_uid
        _Walk(scope, census, owner).into(fd, "", 0)
    return census


@dataclass(slots=True)
class _Walk:
    scope: ScanScope
    census: Census
    owner: int
    seen: int = 0

    def into(self, fd: int, above: str, depth: int) -> None:
        with os.scandir(fd) as listing:
            entries = list(listing)
        self.seen += len(entries)
        if self.seen > MOST_ENTRIES:
            raise refused(above or ".", "TOO_LARGE", f"the folder holds more than {MOST_ENTRIES} entries")
        files, skipped = self.census.files, self.scope.skipped
        for entry in entries:
            name = entry.name
            path = f"{above}{name}"
            if path in skipped or (is_git_name(name) and self._is_out(name, path)):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    self._folder(fd, name, path, depth)
                    continue
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as problem:
                self.census.odd[path] = _unreadable(path, problem)
                continue
            if why := self._oddity(found):
                self.census.odd[path] = refused(path, "SPECIAL_FILE", why)
            else:
                files[path] = found

    def _is_out(self, name: str, path: str) -> bool:
        """Skips the workspace's own `.git` and those of repositories inside it; a disguised one is refused."""
        if name != ".git":
            self.census.odd[path] = refused(path, "PATH_PROTECTED", "git and other systems take this for a git folder")
        return True

    def _oddity(self, found: os.stat_result) -> str:
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
            return "this is a pipe, a socket or a device; only files and links are taken"
        if found.st_nlink > 1 and found.st_uid != self.owner:
            return "this is a hard link to a file of another user"
        return ""

    def _folder(self, fd: int, name: str, path: str, depth: int) -> None:
        if self.scope.drop(path):
            self.census.dropped.append(f"{path}/")
            return
        if depth >= _DEEPEST or len(os.fsencode(path)) > _LONGEST_PATH:
            self.census.odd[path] = refused(path, "PATH_TOO_LONG", "the folders are nested too deeply")
            return
        with opened(name, fd) as below:
            if path in self.scope.submodules and not names_in(below):
                self.census.repositories[path] = self.scope.submodules[path]
            elif self._is_apart(below, path):
                self.census.repositories[path] = self._commit(below, path)
            else:
                self.into(below, f"{path}/", depth + 1)

    def _is_apart(self, below: int, path: str) -> bool:
        """An embedded repository, with a git folder of its own or bare."""
        if path not in self.scope.submodules and (path in self.scope.tracked or self.scope.into_repositories):
            return False
        return _kind(below, ".git") is not None or looks_bare(below)

    def _commit(self, below: int, path: str) -> str:
        """The commit of an embedded repository, read without git. Its git folder may lie in the workspace's own."""
        kind = _kind(below, ".git")
        if kind is None:
            return _head(below)
        if stat.S_ISDIR(kind):
            with opened(".git", below) as inner:
                return _head(inner)
        said = _text(below, ".git", _LONGEST_REF)
        inside = posixpath.normpath(posixpath.join(path, said.removeprefix("gitdir:").strip()))
        if not inside.startswith(".git/modules/"):
            return ""
        with _at(self.scope.root, f"{inside}/HEAD") as (inner, _):
            return _head(inner)


def _unreadable(path: str, problem: OSError) -> WriteRefused:
    reason = os.strerror(problem.errno) if problem.errno else str(problem)
    if problem.errno in _OF_THE_MACHINE:
        raise GangerError(
            f"{path!r} cannot be read: {reason}; the disk or the system reports errors, so the run stops",
            hint="check the disk and the limits of this process, then run the same command again",
            code="IO_ERROR",
        ) from problem
    return refused(path, "UNREADABLE", f"this cannot be read: {reason}")


@contextmanager
def opened(name: str | Path, above: int | None, flags: int = _DIRECTORY) -> Iterator[int]:
    """Opens a directory (or, with other flags, a file); gives its owner back a read permission the agent removed."""
    try:
        fd = os.open(name, flags, dir_fd=above)
    except PermissionError:
        open_up(Path(name), above=above)
        fd = os.open(name, flags, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)


def looks_bare(fd: int) -> bool:
    return _kind(fd, "HEAD") is not None and all(stat.S_ISDIR(_kind(fd, name) or 0) for name in ("objects", "refs"))


def _kind(fd: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
    except OSError:
        return None


def _head(fd: int) -> str:
    said = _line(fd, "HEAD")
    for _ in range(5):
        if not said.startswith("ref: "):
            break
        name = said[5:].strip()
        said = _line(fd, name) or _packed(fd, name)
    return said if len(said) in (40, 64) and all(sign in "0123456789abcdef" for sign in said) else ""


def _line(fd: int, path: str) -> str:
    return _text(fd, path, _LONGEST_REF).strip()


def _packed(fd: int, name: str) -> str:
    for line in _text(fd, "packed-refs", 1 << 20).splitlines():
        oid, _, found = line.partition(" ")
        if found == name:
            return oid
    return ""


def _text(fd: int, path: str, limit: int) -> str:
    """The start of a regular file below a directory; "" for everything else."""
    *folders, name = path.split("/")
    try:
        if folders:
            if folders[0] in ("", ".", ".."):
                return ""
            with opened(folders[0], fd) as below:
                return _text(below, "/".join([*folders[1:], name]), limit)
        if not name or not stat.S_ISREG(_kind(fd, name) or 0):
            return ""
        with opened(name, fd, _READ) as file:
            return os.read(file, limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def read_entry(root: Path, path: str, limit_bytes: int) -> bytes:
    """A file's bytes or a link's target, read without following links; refused when it is too large."""
    with _at(root, path) as (fd, name):
        if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            return os.fsencode(os.readlink(name, dir_fd=fd))
        with _file(fd, name, path) as file:
            return _bytes(file, path, limit_bytes)


@contextmanager
def open_entry(root: Path, path: str) -> Iterator[int]:
    """Opens a regular file that is too large to hold in memory."""
    with _at(root, path) as (fd, name), _file(fd, name, path) as file:
        yield file


@contextmanager
def _file(fd: int, name: str, path: str) -> Iterator[int]:
    if stat.S_ISREG(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
        with opened(name, fd, _READ) as file:
            if stat.S_ISREG(os.fstat(file).st_mode):
                yield file
                return
    raise refused(path, "SPECIAL_FILE", "this is no longer a file")


def _bytes(file: int, path: str, limit_bytes: int) -> bytes:
    pieces: list[bytes] = []
    left = limit_bytes + 1
    while left > 0 and (piece := os.read(file, min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    if left <= 0:
        raise refused(path, "TOO_LARGE", f"the file is larger than the limit of {limit_bytes} bytes")
    return b"".join(pieces)


@contextmanager
def _at(root: Path, path: str) -> Iterator[tuple[int, str]]:
    *folders, name = path.split("/")
    fd = os.open(root, _DIRECTORY)
    try:
        for folder in folders:
            above = fd
            fd = os.open(folder, _DIRECTORY, dir_fd=above)
            os.close(above)
        yield fd, name
    except OSError as problem:
        if problem.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
            raise refused(path, "UNREADABLE", "this changed while it was read") from problem
        raise _unreadable(path, problem) from problem
    finally:
        os.close(fd)

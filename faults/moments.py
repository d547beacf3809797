"""Moments strace cannot name in a lead: what its threads do to files, and the git processes they start.

A lead of a run in git works in threads, so the order of their system calls says little. Named instead are the n-th
rename of all threads while `merged` is the last event recorded (`@os.rename/merged:n`), the moment before and after a
`git update-ref` (`@git-update-ref/merged:n`, `@git-update-ref.done/merged:n`), a system call of the n-th such process
(`git-update-ref/rename.1:n`), and the lead's death while that process hangs in it and goes on later
(`late-update-ref/rename.1:n`).
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from faults.strace import Point, Strike
from ganger.core import events as ev
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore
from ganger.workspaces.git.git import Git, GitAnswer, GitCall

_SEEN = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "shutil.copyfile", "shutil.move"})
_CHILD = re.compile(r"(git|late)-([a-z-]+)/(\w+)\.(\d+)")
# What changes something, or is the last thing a process does.
_TELLING = frozenset({"rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "rmdir"})
_TELLING_TOO = frozenset({"write", "pwrite64", "fsync", "fdatasync", "sync_file_range", "ftruncate", "exit_group"})
# The first thing a process does after it was loaded.
_FIRST = ("brk", 1)
_HANG_US = 1_500_000
_DIES_SEC = 0.3


def is_moment(point: Point) -> bool:
    return point.call.startswith("@") or _CHILD.fullmatch(point.call) is not None


def is_late(point: Point) -> bool:
    return point.call.startswith("late-")


def arrange(strike: Strike, before: Callable[[], None] | None) -> Callable[[], None]:
    """What to call in a lead before it runs, so that it is struck at this moment."""
    return partial(_arrange, strike, before)


def _arrange(strike: Strike, before: Callable[[], None] | None) -> None:
    if before is not None:
        before()
    point = strike.point
    child = _CHILD.fullmatch(point.call)
    if child is None:
        _Moments(lambda name, count: _die() if (name, count) == (point.call[1:], point.ordinal) else None).listen()
        return
    kind, word, call, nth = child.groups()
    how = f"delay_enter={_HANG_US}" if kind == "late" else strike.how
    strace = [*_strace(), "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:{how}:when={nth}"]

    def prefix(name: str, count: int) -> Sequence[str]:
        if (name, count) != (word, point.ordinal):
            return ()
        if kind == "late":
            threading.Timer(_DIES_SEC, _die).start()
        return strace

    _Children(prefix).wrap()


def record(into: Path, before: Callable[[], None] | None) -> Callable[[], None]:
    """What to call in a lead whose moments shall all be written down in a folder."""
    return partial(_record, into, before)


def _record(into: Path, before: Callable[[], None] | None) -> None:
    if before is not None:
        before()
    into.mkdir()

    def note(name: str, count: int) -> None:
        with open(into / "moments", "a", encoding="utf-8") as file:
            file.write(f"@{name}:{count}\n")

    def prefix(word: str, count: int) -> Sequence[str]:
        return [*_strace(), "-y", "-s", "8", "-o", str(into / f"{word}.{count}")]

    _Moments(note).listen()
    _Children(prefix).wrap()


def recorded_in(into: Path) -> list[Point]:
    """The lead's own moments, in order."""
    return [Point.read(line) for line in (into / "moments").read_text().splitlines()]


def children_in(into: Path) -> list[Point]:
    """The telling calls of its git processes."""
    found = []
    for trace in sorted(into.glob("*.*"), key=lambda path: path.stat().st_mtime_ns):
        word, _, count = trace.name.partition(".")
        if not count.isdigit():
            continue
        calls: Counter[str] = Counter()
        for line in trace.read_text(errors="replace").splitlines():
            call, _, rest = line.partition("(")
            calls[call] += 1
            if _telling(call, rest) or (call, calls[call]) == _FIRST:
                found.append(Point(f"git-{word}/{call}.{calls[call]}", int(count), rest[:200]))
    return found


def _telling(call: str, rest: str) -> bool:
    if call == "openat":
        return "O_CREAT" in rest and "/project" in rest
    if call in ("write", "pwrite64"):
        return "/project" in rest.partition(",")[0]
    return call in _TELLING or call in _TELLING_TOO


def _strace() -> list[str]:
    return [shutil.which("strace") or "strace", "-qq"]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


class _Moments:
    """Counts what the threads of this process do, each kind by itself."""

    def __init__(self, meet: Callable[[str, int], object]) -> None:
        self._meet = meet
        self._counts: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._main = threading.get_ident()
        self._in = threading.local()
        self._last = "nothing"

    def listen(self) -> None:
        sys.addaudithook(self._hook)
        append, call, fsync = SqliteStore.append, Git.call, os.fsync

        def appended(store: SqliteStore, batch: Sequence[Entry]) -> list[ev.Recorded]:
            done = append(store, batch)
            self._last = ev.type_name(done[-1].event) if done else self._last
            return done

        def counted(git: Git, one: GitCall) -> GitAnswer:
            self._met(f"git-{one.words[0]}")
            answer = call(git, one)
            self._met(f"git-{one.words[0]}.done")
            return answer

        def synced(fd: Any) -> None:
            if threading.get_ident() != self._main:
                self._met("os.fsync")
            fsync(fd)

        setattr(SqliteStore, "append", appended)  # noqa: B010
        setattr(Git, "call", counted)  # noqa: B010
        os.fsync = synced

    def _hook(self, event: str, _args: tuple[object, ...]) -> None:
        if event in _SEEN and threading.get_ident() != self._main:
            self._met(event)

    def _met(self, name: str) -> None:
        if getattr(self._in, "side", False):
            return
        self._in.side = True
        with self._lock:
            name = f"{name}/{self._last}"
            self._counts[name] += 1
            self._meet(name, self._counts[name])
        self._in.side = False


class _Children:
    """Puts other words before the command line of a git process: `prefix(word, number)`."""

    def __init__(self, prefix: Callable[[str, int], Sequence[str]]) -> None:
        self._prefix = prefix
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def wrap(self) -> None:
        argv = Git.argv

        def wrapped(git: Git, call: GitCall) -> list[str]:
            with self._lock:
                self._counts[call.words[0]] += 1
                number = self._counts[call.words[0]]
            return [*self._prefix(call.words[0], number), *argv(git, call)]

        setattr(Git, "argv", wrapped)  # noqa: B010

"""strace: which system calls a process makes, and what happens to it at one of them.

`when=N` counts per thread and per name, from the moment strace is attached; the signal comes before the call's effect.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PTRACER, _ANYBODY = 0x59616D61, ctypes.c_ulong(-1)
_STRACE = ("strace", "-qq")
_SHOWN_TYPE = re.compile(r'\\"type\\": \\"(\w+)\\"(?:, \\"task\\": \\"(\w+)\\")?')


@dataclass(frozen=True, slots=True)
class Point:
    """One system call of a lead: the `ordinal`-th of this name since it was forked.

    `after` is the event that was shown last before it: its type, and its task where it has one.
    """

    call: str
    ordinal: int
    arguments: str = field(default="", compare=False)
    after: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.call}:{self.ordinal}"

    @classmethod
    def read(cls, text: str) -> Point:
        call, _, ordinal = text.partition(":")
        return cls(call, int(ordinal))


@dataclass(frozen=True, slots=True)
class Strike:
    """What happens at a point: `signal=KILL`, `error=EIO`; `to_the_end` goes on doing it."""

    point: Point
    how: str = "signal=KILL"
    to_the_end: bool = False

    def options(self) -> list[str]:
        when = f"{self.point.ordinal}{'+' if self.to_the_end else ''}"
        return ["-e", f"trace={self.point.call}", "-e", f"inject={self.point.call}:{self.how}:when={when}"]


def points_in(record: Path, first: str) -> list[Point]:
    """The calls of a recorded process in order, from the first one on whose arguments name `first`."""
    counts: dict[str, int] = {}
    points: list[Point] = []
    touched, after = False, ""
    for line in record.read_text(errors="replace").splitlines():
        name, bracket, rest = line.partition("(")
        if not bracket or not name.isidentifier() or name == "exit_group":
            continue
        counts[name] = counts.get(name, 0) + 1
        touched = touched or first in rest
        if touched:
            points.append(Point(name, counts[name], rest[:200], after))
        if name == "write" and rest.startswith("1<") and (shown := _SHOWN_TYPE.search(rest)):
            after = f"{shown[1]} {shown[2] or ''}".strip()
    return points


def wait_to_be_watched() -> None:
    """Stops this process until somebody has attached and lets it go on."""
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


@contextlib.contextmanager
def watched(pid: int, options: Sequence[str]) -> Iterator[None]:
    """Attached to a process that waits to be watched, before it makes its next call."""
    until(lambda: status_of(pid, "State").startswith("T"), "the process did not stop to be watched")
    tracer = subprocess.Popen([*_STRACE, *options, "-p", str(pid)], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        until(
            lambda: status_of(pid, "TracerPid") not in ("", "0") or tracer.poll() is not None, "strace did not attach"
        )
        if tracer.poll() is not None:
            assert tracer.stderr is not None
            raise RuntimeError(f"strace cannot watch: {tracer.stderr.read().decode(errors='replace')}")
        os.kill(pid, signal.SIGCONT)
        yield
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            tracer.wait(5)
        tracer.kill()
        tracer.communicate()


def until(happened: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + 20
    while not happened():
        if time.monotonic() > end:
            raise RuntimeError(otherwise)
        time.sleep(0.001)


def status_of(pid: int, name: str) -> str:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{name}:")), "")

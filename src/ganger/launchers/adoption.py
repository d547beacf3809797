"""Adopting orphans: a process whose parent has ended becomes a child of this one instead of escaping. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Collection
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Makes this process the parent of every descendant that loses its own; whether the system can do that."""
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def children() -> set[int]:
    """The numbers of this process's children, whichever thread has them; cheap enough to ask after every exit."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (thread / "children").read_bytes().split()))
    return found


def reap(pids: Collection[int]) -> None:
    """Clears those of the adopted that have ended."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

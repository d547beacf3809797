"""Adopts orphans: a process whose parent has ended becomes a child of this one instead of escaping. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Collection

from ganger.local.procfs import children

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> bool:
    """Makes this process the parent of every descendant that loses its own; returns whether the system supports
    that."""
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def adopted(own: Collection[int]) -> set[int]:
    """The living children that this process did not start. Those that have ended are reaped."""
    while True:
        orphans = children().difference(own)
        ended = {pid for pid in orphans if reap(pid)}
        # An orphan's children are passed on before it can be reaped, so the last look must come after the last reaping.
        if not ended:
            return orphans


def reap(pid: int) -> bool:
    """Reaps a child that has ended; returns whether it is gone."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def kill_child(pid: int) -> None:
    """SIGKILL to a child and, if it leads or shares another process group, to that group. A child's id cannot be reused
    before it is reaped, so the signal reaches no other process."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        group = os.getpgid(pid)
        os.kill(pid, signal.SIGKILL)
        # A process that forks and exits again and again is caught by a signal to the group, which no fork outruns.
        if group not in (os.getpgrp(), 0):
            os.killpg(group, signal.SIGKILL)

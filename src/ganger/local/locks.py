"""Locks on files, which end with their process."""

from __future__ import annotations

import fcntl
import time


def locked(fd: int, tries: int = 20) -> bool:
    """A process that only looks holds the lock for an instant, so a refusal counts only if it lasts."""
    for _ in range(tries):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return True
    return False

"""A clock that no one can set."""

from __future__ import annotations

import time


def boot_seconds() -> float:
    """Seconds since the machine started, including sleep."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

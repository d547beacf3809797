"""How long a test waits: so many seconds of this machine when it has nothing else to do.

The clock of a test runs slower while more programs want a processor than there are. So a limit says what the code under
test needs, and no test fails because the machine is busy.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

_KNOWN_SEC = 0.25
_known: tuple[float, float] = (0.0, 1.0)


def busyness() -> float:
    """How many programs share one processor: the larger of this moment and the last minute, and at least one."""
    global _known
    now = time.monotonic()
    if now - _known[0] > _KNOWN_SEC:
        average, _, _, runnable, _ = Path("/proc/loadavg").read_text(encoding="ascii").split()
        wanting = max(float(average), float(runnable.partition("/")[0]))
        _known = (now, max(1.0, wanting / len(os.sched_getaffinity(0))))
    return _known[1]


def stretched(seconds: float) -> float:
    """A limit for something that takes one number at its start; twice for what may yet begin beside it."""
    return seconds * 2 * busyness()


class Patience:
    """Is used up by time that this machine really gave; `is_over` is asked again and again."""

    def __init__(self, seconds: float) -> None:
        self._left, self._at = seconds, time.monotonic()

    def is_over(self) -> bool:
        now = time.monotonic()
        self._left -= (now - self._at) / busyness()
        self._at = now
        return self._left < 0


def until(happened: Callable[[], object], within_sec: float = 30.0, *, pause_sec: float = 0.02) -> None:
    """Waits for something that another process or thread does."""
    patience = Patience(within_sec)
    while not happened():
        assert not patience.is_over(), f"it did not happen in {within_sec:g} s of this machine's time"
        time.sleep(pause_sec)


async def until_soon(happened: Callable[[], object], within_sec: float = 20.0, *, pause_sec: float = 0.01) -> None:
    """The same within an event loop."""
    patience = Patience(within_sec)
    while not happened():
        assert not patience.is_over(), f"it did not happen in {within_sec:g} s of this machine's time"
        await asyncio.sleep(pause_sec)

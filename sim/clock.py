"""Simulated time: a number that only the simulator moves, and what happens in the world at given moments."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

_EPOCH = 1_767_225_600.0


class SimClock:
    """`monotonic` never goes back; `now` is what the machine's clock says and may be stepped."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.skew = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def now(self) -> float:
        return _EPOCH + self.elapsed + self.skew

    def monotonic(self) -> float:
        return self.elapsed

    def at(self, when: float, happening: Callable[[], None]) -> None:
        """Something outside the lead that happens then, whether a lead lives or not."""
        heapq.heappush(self._agenda, (when, next(self._numbers), happening))

    def next_happening(self) -> float | None:
        return self._agenda[0][0] if self._agenda else None

    def advance(self, until: float) -> None:
        """Moves on to `until`; everything on the agenda happens at its own moment on the way."""
        while self._agenda and self._agenda[0][0] <= until:
            when, _, happening = heapq.heappop(self._agenda)
            self.elapsed = max(self.elapsed, when)
            happening()
        self.elapsed = max(self.elapsed, until)

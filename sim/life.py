"""One lead process as the simulator sees it: when it dies, and that a dead one has no effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


class Killed(KeyboardInterrupt):
    """SIGKILL. An interrupt, because asyncio lets those through at once instead of keeping them for a waiter."""


class Frozen(KeyboardInterrupt):
    """SIGSTOP: the process stays where it is; its loop can be run on."""


@dataclass(frozen=True, slots=True)
class Death:
    """When a lead dies: `points` steps after a moment of simulated time, or at the n-th visit of a named place.

    `freezes`: it is only stopped, and comes back after another process has taken the lead.
    """

    after_sec: float = 0.0
    points: int = 0
    place: str = ""
    freezes: bool = False


class Life:
    """Every step of the loop and both sides of every effect are points at which the lead may die."""

    def __init__(self, pid: int, death: Death | None, monotonic: Callable[[], float]) -> None:
        self.pid, self.death = pid, death
        self.dead = False
        self.away = False
        self._monotonic = monotonic
        self._since = monotonic() + (death.after_sec if death else 0.0)
        self._left = death.points if death else 0
        self.points = 0

    def point(self, place: str) -> None:
        """Raises where the process is to die; whatever a dead process tries raises again."""
        if self.dead:
            raise Killed(place)
        self.points += 1
        death = self.death
        if death is None or self.away or (death.place and death.place != place):
            return
        if self._monotonic() < self._since:
            return
        self._left -= 1
        if self._left < 0:
            self._end(place, death)

    def effect(self, place: str) -> None:
        """A point before something outside the store is touched: a lead that came back from a stop may not."""
        if self.away:
            self.dead = True
        self.point(place)

    def _end(self, place: str, death: Death) -> None:
        if death.freezes and place == "step":
            self.away = True
            raise Frozen(place)
        if not death.freezes:
            self.dead = True
            raise Killed(place)

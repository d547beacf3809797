"""Everybody who is connected at one moment: how many may be, and how much memory what they send may take."""

from __future__ import annotations

from typing import Protocol

SCRATCH = 64 * 1024
_MOST_LINES = 512
_MOST_HELD = 64 << 20


class Guest(Protocol):
    """A connection. `idle_since` is when it last had an answer, however much it has sent since; None: it is served."""

    idle_since: float | None

    def drop(self) -> None: ...


class Hall:
    """`held` counts the bytes of all requests that are being read or answered."""

    def __init__(self, most_lines: int = _MOST_LINES, most_held: int = _MOST_HELD) -> None:
        self._most_lines, self._most_held = most_lines, most_held
        self.guests: set[Guest] = set()
        self.held = 0
        # Bytes are copied out of it before the loop reads from anybody else.
        self.scratch = memoryview(bytearray(SCRATCH))

    @property
    def is_overfull(self) -> bool:
        return self.held > self._most_held

    def enter(self, guest: Guest) -> bool:
        """Whoever has been idle longest makes room; False when everybody is being served."""
        if len(self.guests) >= self._most_lines:
            idle = [(one.idle_since, one) for one in self.guests if one.idle_since is not None]
            if not idle:
                return False
            oldest = min(idle, key=lambda pair: pair[0])[1]
            self.guests.discard(oldest)
            oldest.drop()
        self.guests.add(guest)
        return True

    def leave(self, guest: Guest) -> None:
        self.guests.discard(guest)

"""The open connections: how many there may be, and how much memory their requests may take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ganger.endpoint.refusals import lead_busy, too_many

SCRATCH = 64 * 1024
_MOST_LINES = 512
_MOST_HELD = 64 << 20
_MOST_SERVED = 64
_MOST_WAITING = 8
_MOST_WAITING_IN_ALL = 1_024


class Guest(Protocol):
    """A connection. `idle_since` is the time of its last answer; None while a request is being served."""

    idle_since: float | None

    def drop(self) -> None: ...


class Hall:
    """`held` counts the bytes of all requests that are being read or answered.

    Requests that only wait for something to happen free their place for others, and are counted separately.
    """

    def __init__(self, most_lines: int = _MOST_LINES, most_held: int = _MOST_HELD) -> None:
        self._most_lines, self._most_held = most_lines, most_held
        self.guests: set[Guest] = set()
        self.held = 0
        self._came_with: dict[Hashable, str] = {}
        self._served: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._waiting_for: Counter[str] = Counter()
        # Its bytes are copied before the loop reads from another connection.
        self.scratch = memoryview(bytearray(SCRATCH))

    @property
    def is_overfull(self) -> bool:
        return self.held > self._most_held

    def enter(self, guest: Guest) -> bool:
        """Admits a connection; the one idle longest makes room. False if all are being served."""
        if len(self.guests) - self._waiting_for.total() >= self._most_lines:
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

    @contextmanager
    def serve(self, who: Hashable, token: str) -> Iterator[bool]:
        """Holds a place while a request with this token is answered; False if the token has too many. `who` is the
        connection it came on."""
        may = self._served[token] < _MOST_SERVED
        self._came_with[who] = token
        try:
            with _counted(self._served, token, 1):
                yield may
        finally:
            del self._came_with[who]

    @contextmanager
    def wait(self, who: Hashable, verb: str, token: str, *, alone: bool) -> Iterator[None]:
        """Frees the place while a request only waits; raises Refused if too many do. `alone`: the token belongs to one
        worker, and needs few."""
        if alone and self._waiting[token] >= _MOST_WAITING:
            raise too_many("wait")
        if self._waiting_for[verb] >= _MOST_WAITING_IN_ALL:
            raise lead_busy("too many requests are waiting")
        own = _counted(self._waiting, token, 1)
        with own, _counted(self._waiting_for, verb, 1), _counted(self._served, self._came_with[who], -1):
            yield


@contextmanager
def _counted(counts: Counter[str], key: str, by: int) -> Iterator[None]:
    counts[key] += by
    try:
        yield
    finally:
        counts[key] -= by
        if not counts[key]:
            del counts[key]

"""The event store in memory: for dry runs and for trying policies; forgets everything at exit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ganger.core.events import Event, Recorded


class MemoryStore:
    def __init__(self) -> None:
        self._events: list[Recorded] = []

    def append(self, batch: Sequence[tuple[str, Event]]) -> list[Recorded]:
        start = len(self._events) + 1
        recorded = [Recorded(start + n, at, event) for n, (at, event) in enumerate(batch)]
        self._events.extend(recorded)
        return recorded

    def read(self, since: int = 0) -> Iterator[Recorded]:
        yield from self._events[since:]

    def last_seq(self) -> int:
        return len(self._events)

    def close(self) -> None:
        return None

"""The journal: every event is made durable, then applied, then shown. Events of one tick share a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from datetime import UTC, datetime

from ganger.core.events import Event
from ganger.core.records import RunState
from ganger.core.transitions import apply
from ganger.ports import Clock, Listener, Store


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


class _Commit:
    """Await it to know that the events are durable. Who gives up waiting does not take the commit from the others."""

    def __init__(self, work: asyncio.Task[None]) -> None:
        self._work = work

    def __await__(self) -> Generator[object, None, None]:
        return asyncio.shield(self._work).__await__()


class Journal:
    """Single-threaded: `record` may be called from any coroutine of the lead's loop."""

    def __init__(self, store: Store, state: RunState, clock: Clock) -> None:
        self.store, self.state, self.clock = store, state, clock
        self.listeners: list[Listener] = []
        self.error: BaseException | None = None
        self._queue: list[tuple[str, Event]] = []
        self._tick: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def record(self, *events: Event) -> Awaitable[None]:
        """Queues events for this tick's commit. Await the answer before relying on them."""
        at = stamp(self.clock.now())
        self._queue.extend((at, event) for event in events)
        if self._tick is None:
            self._tick = asyncio.get_running_loop().create_task(self._commit())
            self._tick.add_done_callback(self._committed)
        return _Commit(self._tick)

    async def _commit(self) -> None:
        queue, self._queue, self._tick = self._queue, [], None
        if self.error is not None:
            raise self.error
        recorded = self.store.append(queue)
        for entry in recorded:
            apply(self.state, entry)
        for entry in recorded:
            for listener in self.listeners:
                listener(entry)

    def _committed(self, tick: asyncio.Task[None]) -> None:
        problem = asyncio.CancelledError() if tick.cancelled() else tick.exception()
        self.error = self.error or problem
        self._changed.set()

    async def changed(self) -> None:
        """Returns after the next commit; raises if one has failed: nothing can be relied on then."""
        if self.error is None:
            self._changed.clear()
            await self._changed.wait()
        if self.error is not None:
            raise self.error

    def wake(self) -> None:
        """Makes `changed` return although nothing was recorded."""
        self._changed.set()

    async def settle(self) -> None:
        """Waits for what was recorded without being awaited."""
        if self._tick is not None:
            await _Commit(self._tick)

    def replay(self) -> int:
        """Brings the state up to the store's end; the number of events read."""
        count = 0
        for entry in self.store.read(self.state.last_seq):
            apply(self.state, entry)
            count += 1
        return count

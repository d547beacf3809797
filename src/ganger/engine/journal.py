"""The journal: every event goes through here, is durable, then applied, then shown. Events of one tick share a commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime

from ganger.core.events import Event
from ganger.core.records import RunState
from ganger.core.transitions import apply
from ganger.errors import GangerError
from ganger.ports import Clock, Listener, Store


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Journal:
    """Single-threaded: `record` may be called from any coroutine of the lead's loop."""

    def __init__(self, store: Store, state: RunState, clock: Clock) -> None:
        self.store, self.state, self.clock = store, state, clock
        self.listeners: list[Listener] = []
        self.error: GangerError | None = None
        self._queue: list[tuple[str, Event]] = []
        self._batch: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()

    def record(self, *events: Event) -> Awaitable[None]:
        """Queues events for this tick's commit. Await the answer before relying on them."""
        at = stamp(self.clock.now())
        self._queue.extend((at, event) for event in events)
        if self._batch is None:
            loop = asyncio.get_running_loop()
            self._batch = loop.create_future()
            loop.call_soon(self._flush)
        return self._batch

    def _flush(self) -> None:
        queue, batch = self._queue, self._batch
        self._queue, self._batch = [], None
        assert batch is not None
        try:
            if self.error is not None:
                raise self.error
            self._commit(queue)
            batch.set_result(None)
        except GangerError as error:
            self.error = error
            batch.set_exception(error)
            batch.exception()  # whoever does not wait for this batch learns it from `changed`
        self._changed.set()

    def _commit(self, queue: list[tuple[str, Event]]) -> None:
        for entry in self.store.append(queue):
            apply(self.state, entry)
            for listener in self.listeners:
                listener(entry)

    async def changed(self) -> None:
        """Returns after the next commit; raises if the store has failed."""
        if self.error is not None:
            raise self.error
        self._changed.clear()
        await self._changed.wait()
        if self.error is not None:
            raise self.error

    def wake(self) -> None:
        """Makes `changed` return although nothing was recorded."""
        self._changed.set()

    def replay(self) -> int:
        """Brings the state up to the store's end; the number of events read."""
        count = 0
        for entry in self.store.read(self.state.last_seq):
            apply(self.state, entry)
            count += 1
        return count

"""Access to one shared folder: one writer at a time, or several readers that check it unchanged."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class FolderLock:
    """A fair many-readers, one-writer lock for one event loop."""

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @contextlib.asynccontextmanager
    async def take(self, *, alone: bool) -> AsyncIterator[None]:
        await self._enter(alone)
        try:
            yield
        finally:
            self._uncount(alone)
            self._admit()

    async def _enter(self, alone: bool) -> None:
        if not self._waiting and self._fits(alone):
            self._count(alone)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((alone, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._uncount(alone)
            else:
                self._waiting = deque(entry for entry in self._waiting if entry[1] is not turn)
            self._admit()
            raise

    def _fits(self, alone: bool) -> bool:
        return not self._writing and (not alone or self._readers == 0)

    def _count(self, alone: bool) -> None:
        if alone:
            self._writing = True
        else:
            self._readers += 1

    def _uncount(self, alone: bool) -> None:
        if alone:
            self._writing = False
        else:
            self._readers -= 1

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            alone, turn = self._waiting.popleft()
            if not turn.cancelled():
                self._count(alone)
                turn.set_result(None)

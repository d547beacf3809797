"""A blocking store on a thread of its own, so that the engine's event loop never waits for a disk."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from ganger.core.events import Recorded
from ganger.errors import GangerError
from ganger.local.boot_clock import boot_seconds
from ganger.ports.store import LEASE_SEC, BlockingStore, Command, Entry, RunStores

_READ_AT_ONCE = 1000
_LOOK_SEC = 0.2
_T = TypeVar("_T")


class OnThread:
    """The port `Store` for a run in `stores`. The thread opens the store at the first call, and alone uses it.

    What is asked of the thread is done, also when its caller is cancelled meanwhile.
    """

    def __init__(self, stores: RunStores, run: Path) -> None:
        self._stores, self._run = stores, run
        self._opened: BlockingStore | None = None
        self._lead: AbstractContextManager[int] | None = None
        self._asked: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], object]] | None] = SimpleQueue()
        self._thread: Thread | None = None

    async def _call(self, work: Callable[[BlockingStore], _T]) -> _T:
        return await self._in_turn(lambda: work(self._store()))

    def _in_turn(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        """Not an executor: that would drop what is cancelled while it waits for its turn, and costs twice as much."""
        if self._thread is None:
            self._thread = Thread(target=self._work, name="store", daemon=True)
            self._thread.start()
        answer: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._asked.put((answer, work))
        return answer

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            answer, work = asked
            try:
                done = partial(_answer, answer, work())
            except BaseException as problem:  # noqa: BLE001
                done = partial(_fail, answer, problem)
            # The loop of a caller that waits no longer may be closed.
            with suppress(RuntimeError):
                answer.get_loop().call_soon_threadsafe(done)
            del asked, answer, work, done

    def _store(self) -> BlockingStore:
        if self._opened is None:
            self._opened = self._stores.open(self._run)
        return self._opened

    async def take_lead(self) -> int:
        return await self._call(self._take)

    def _take(self, store: BlockingStore) -> int:
        lead = self._stores.leading(self._run, store)
        fence = lead.__enter__()
        self._lead = lead
        return fence

    async def renew(self) -> None:
        await self._call(lambda store: store.renew(boot_seconds(), LEASE_SEC))

    async def release(self) -> None:
        with suppress(GangerError, OSError):
            await self._in_turn(self._give_back)

    def _give_back(self) -> None:
        lead, self._lead = self._lead, None
        if lead is not None:
            lead.__exit__(None, None, None)

    async def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        return await self._call(lambda store: store.append(batch))

    async def read(self, since: int = 0) -> AsyncIterator[Recorded]:
        while True:
            found = await self._call(partial(_some, since))
            for recorded in found:
                yield recorded
            if len(found) < _READ_AT_ONCE:
                return
            since = found[-1].seq

    async def commands(self, since: int) -> list[Command]:
        return await self._call(lambda store: store.commands(since))

    async def wait(self, *, events: int | None = None, commands: int | None = None) -> None:
        while not await self._call(lambda store: store.has_new(events=events, commands=commands)):
            await asyncio.sleep(_LOOK_SEC)

    async def save_snapshot(self, seq: int, text: str) -> None:
        await self._call(lambda store: store.save_snapshot(seq, text))

    async def snapshot(self) -> tuple[int, str] | None:
        return await self._call(lambda store: store.snapshot())

    async def exists(self) -> bool:
        return await self._call(lambda store: store.exists())

    async def close(self) -> None:
        await self._in_turn(self._close)
        self._asked.put(None)
        self._thread = None

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _some(since: int, store: BlockingStore) -> list[Recorded]:
    return list(islice(store.read(since), _READ_AT_ONCE))


def _answer(future: asyncio.Future[_T], value: _T) -> None:
    if not future.cancelled():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], problem: BaseException) -> None:
    if not future.cancelled():
        future.set_exception(problem)

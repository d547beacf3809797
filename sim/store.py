"""The store as one lead sees it: the real one in memory, failing or outliving the lead around a commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from ganger.core.events import Recorded
from ganger.errors import DiskFullError, GangerError, StoreError
from ganger.ports.store import LEASE_SEC, BlockingStore, Command, Entry, Owner
from sim.life import Life
from sim.plan import StoreFault


@dataclass(slots=True)
class Disk:
    """Counts the appends of the whole run, so that a fault hits one of them whoever leads."""

    faults: dict[int, StoreFault]
    appends: int = 0
    fired: list[StoreFault] = field(default_factory=list)

    def next(self) -> StoreFault | None:
        self.appends += 1
        fault = self.faults.pop(self.appends, None)
        if fault is not None:
            self.fired.append(fault)
        return fault


Committed = Callable[[Life, Sequence[Recorded]], None]


class SimStore:
    """Everything goes to `inner`; `committed` is told what became durable, by whom, before anybody else is."""

    def __init__(
        self,
        inner: BlockingStore,
        life: Life,
        disk: Disk,
        committed: Committed,
        *,
        elapsed: Callable[[], float],
        look_sec: float,
    ) -> None:
        self._inner, self._life, self._disk, self._committed = inner, life, disk, committed
        self._elapsed, self._look_sec = elapsed, look_sec

    async def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        self._life.point("append.before")
        # Other coroutines come in between, as they do while a thread writes.
        await asyncio.sleep(0)
        fault = self._disk.next()
        if fault is not None and not fault.after:
            raise _problem(fault)
        recorded = self._inner.append(batch)
        self._committed(self._life, recorded)
        self._life.point("append.after")
        await asyncio.sleep(0)
        if fault is not None:
            raise _problem(fault)
        return recorded

    def take_lead_as(self, owner: Owner, dead: Callable[[Owner], bool]) -> int:
        self._life.point("take_lead")
        return self._inner.take_lead(owner, now=self._elapsed(), lease_sec=LEASE_SEC, holder_is_dead=dead)

    async def take_lead(self) -> int:
        raise StoreError("a simulated lead has taken the lead before its loop runs")

    async def renew(self) -> None:
        self._life.point("renew")
        self._inner.renew(self._elapsed(), LEASE_SEC)

    async def release(self) -> None:
        self._life.point("release")
        self._inner.release()

    async def read(self, since: int = 0) -> AsyncIterator[Recorded]:
        self._life.point("read_events")
        for recorded in self._inner.read(since):
            yield recorded

    async def commands(self, since: int) -> list[Command]:
        self._life.point("commands")
        return self._inner.commands(since)

    async def wait(self, *, events: int | None = None, commands: int | None = None) -> None:
        while not self._inner.has_new(events=events, commands=commands):
            await asyncio.sleep(self._look_sec)

    async def save_snapshot(self, seq: int, text: str) -> None:
        self._life.point("snapshot.before")
        self._inner.save_snapshot(seq, text)
        self._life.point("snapshot.after")

    async def snapshot(self) -> tuple[int, str] | None:
        self._life.point("read_snapshot")
        return self._inner.snapshot()

    async def exists(self) -> bool:
        return self._inner.exists()

    async def close(self) -> None:
        self._inner.close()


def _problem(fault: StoreFault) -> GangerError:
    if fault.disk_full:
        return DiskFullError("the store cannot be written: the disk is full")
    return StoreError("the store cannot be written")

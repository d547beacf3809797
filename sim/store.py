"""The store as one lead sees it: the real one in memory, failing or outliving the lead around a commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ganger.core.events import Recorded
from ganger.errors import DiskFullError, GangerError, StoreError
from ganger.ports.store import Command, Entry, Owner, Store
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

    def __init__(self, inner: Store, life: Life, disk: Disk, committed: Committed) -> None:
        self._inner, self._life, self._disk, self._committed = inner, life, disk, committed

    def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        self._life.point("append.before")
        fault = self._disk.next()
        if fault is not None and not fault.after:
            raise _problem(fault)
        recorded = self._inner.append(batch)
        self._committed(self._life, recorded)
        self._life.point("append.after")
        if fault is not None:
            raise _problem(fault)
        return recorded

    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        self._life.point("take_lead")
        return self._inner.take_lead(owner, now=now, lease_sec=lease_sec, holder_is_dead=holder_is_dead)

    def renew(self, now: float, lease_sec: float) -> None:
        self._life.point("renew")
        self._inner.renew(now, lease_sec)

    def release(self) -> None:
        self._life.point("release")
        self._inner.release()

    def read(self, since: int = 0) -> Iterator[Recorded]:
        self._life.point("read_events")
        return self._inner.read(since)

    def send(self, at: str, kind: str, data: Mapping[str, object]) -> int:
        return self._inner.send(at, kind, data)

    def commands(self, since: int) -> list[Command]:
        self._life.point("commands")
        return self._inner.commands(since)

    def save_snapshot(self, seq: int, text: str) -> None:
        self._life.point("snapshot.before")
        self._inner.save_snapshot(seq, text)
        self._life.point("snapshot.after")

    def snapshot(self) -> tuple[int, str] | None:
        self._life.point("read_snapshot")
        return self._inner.snapshot()

    def close(self) -> None:
        self._inner.close()


def _problem(fault: StoreFault) -> GangerError:
    if fault.disk_full:
        return DiskFullError("the store cannot be written: the disk is full")
    return StoreError("the store cannot be written")

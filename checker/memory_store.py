"""The event store in memory, for the simulator and tests; its content is lost at exit."""

from __future__ import annotations

import json
import time
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ganger.core.events import AttemptStarted, Recorded
from ganger.errors import NotFoundError, StoreError
from ganger.local.boot_clock import boot_seconds
from ganger.ports.store import LEASE_SEC, BlockingStore, Command, Entry, Leader, Owner
from ganger.stores.lead_lock import this_process
from ganger.stores.leases import CLOSING, NOBODY, RELEASED, REPORTS, Claim, Lease, lead_lost, require_free, stale
from ganger.stores.on_thread import OnThread


@dataclass(slots=True)
class Memory:
    """The counterpart of the database file: several handles may share it."""

    events: list[Recorded] = field(default_factory=list)
    lease: Lease = field(default_factory=Lease)
    claims: dict[str, Claim] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    snapshot: tuple[int, str] | None = None


class MemoryStore:
    def __init__(self, shared: Memory | None = None) -> None:
        self.memory = Memory() if shared is None else shared
        self._fence = 0
        self._last = len(self.memory.events)

    def handle(self) -> MemoryStore:
        """A second handle, like that of another process on the same run."""
        return type(self)(self.memory)

    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        require_free(self.memory.lease, owner, now, holder_is_dead)
        self._fence = self.memory.lease.fence + 1
        self.memory.lease = Lease(self._fence, owner, now + lease_sec, now)
        self._last = len(self.memory.events)
        return self._fence

    def renew(self, now: float, lease_sec: float) -> None:
        if not self.memory.lease.held:
            raise lead_lost(self.memory.lease)
        self._require_lead()
        self.memory.lease = replace(self.memory.lease, expires_at=now + lease_sec)

    def release(self) -> None:
        if self.memory.lease.fence == self._fence:
            self.memory.lease = replace(self.memory.lease, owner=NOBODY)
        self._fence = RELEASED

    def _require_lead(self) -> None:
        if self.memory.lease.fence != self._fence:
            raise lead_lost(self.memory.lease)

    def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        if not batch:
            return []
        self._require_lead()
        claims: ChainMap[str, Claim] = ChainMap({}, self.memory.claims)
        ended: set[str] = set()
        for entry in batch:
            admit(claims, entry, ended)
        for task in ended:
            close_claim(claims, task)
        if self._last != len(self.memory.events):
            raise StoreError(
                "the store refused an event; another process may have written to it",
                hint="let one process lead this run, then run the same command again",
            )
        recorded = [Recorded(self._last + n, entry.at, entry.event) for n, entry in enumerate(batch, 1)]
        self.memory.claims.update(claims.maps[0])
        self.memory.events.extend(recorded)
        self._last += len(recorded)
        return recorded

    def read(self, since: int = 0) -> Iterator[Recorded]:
        yield from self.memory.events[since:]

    def send(self, at: str, kind: str, data: Mapping[str, object]) -> int:
        number = len(self.memory.commands) + 1
        self.memory.commands.append(Command(number, at, kind, json.loads(json.dumps(dict(data)))))
        return number

    def commands(self, since: int) -> list[Command]:
        return self.memory.commands[since:]

    def has_new(self, *, events: int | None = None, commands: int | None = None) -> bool:
        kept = self.memory
        return (events is not None and len(kept.events) > events) or (
            commands is not None and len(kept.commands) > commands
        )

    def save_snapshot(self, seq: int, text: str) -> None:
        self._require_lead()
        newest = self.memory.snapshot[0] if self.memory.snapshot else 1
        if newest <= seq <= len(self.memory.events):
            self.memory.snapshot = (seq, text)

    def snapshot(self) -> tuple[int, str] | None:
        return self.memory.snapshot

    def exists(self) -> bool:
        return True

    def close(self) -> None:
        return None


class MemoryStores:
    """Runs kept in memory. The folders of runs are only names here."""

    def __init__(self) -> None:
        self.files: tuple[str, ...] = ()
        self.kept: dict[Path, Memory] = {}

    def runs(self, above: Path) -> list[Path]:
        return sorted(run for run in self.kept if run.parent == above)

    def exists(self, run: Path) -> bool:
        return run in self.kept

    def open(self, run: Path, *, read_only: bool = False) -> MemoryStore:
        if read_only and run not in self.kept:
            raise NotFoundError(f"{run}: no event store here")
        return MemoryStore(self.kept.setdefault(run, Memory()))

    def open_async(self, run: Path) -> OnThread:
        return OnThread(self, run)

    @contextmanager
    def leading(self, run: Path, store: BlockingStore) -> Iterator[int]:
        """As this process, which leads a run at most once."""
        now = boot_seconds()
        yield store.take_lead(this_process(), now=now, lease_sec=LEASE_SEC, holder_is_dead=lambda _: False)
        store.release()

    def leader(self, run: Path) -> Leader | None:
        memory = self.kept.get(run)
        if memory is None or not memory.lease.held:
            return None
        return Leader(memory.lease.owner, time.time() - boot_seconds() + memory.lease.taken_at)


def close_claim(claims: ChainMap[str, Claim], task: str) -> None:
    if task in claims:
        claims[task] = replace(claims[task], open=False)


def admit(claims: ChainMap[str, Claim], entry: Entry, ended: set[str]) -> None:
    """Checks one entry against the claims and brings them up to date.

    A claim that `ended` in this batch is valid for the rest of the batch, until the task is claimed again.
    """
    event = entry.event
    task: str = getattr(event, "task", "")
    if isinstance(event, AttemptStarted) and task in ended:
        ended.remove(task)
        close_claim(claims, task)
    claim = claims.get(task)
    if isinstance(event, AttemptStarted):
        following = 1 if claim is None else claim.attempt + 1
        if (claim is not None and claim.open) or event.attempt != following:
            raise stale(entry, claim)
        claims[task] = Claim(event.attempt, event.token)
        return
    if type(event) in REPORTS or entry.token:
        current = claim is not None and claim.open and claim.token == entry.token
        if type(event) in REPORTS:
            current = current and claim is not None and claim.attempt == getattr(event, "attempt", None)
            current = current or (claim is None and not entry.token)
        if not current:
            raise stale(entry, claim)
    if type(event) in CLOSING:
        ended.add(task)

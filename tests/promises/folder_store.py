"""A third store, by CONTRIBUTING's section on stores alone: one file per event in a folder of the run."""

from __future__ import annotations

import fcntl
import json
import secrets
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from checker.memory_store import admit, close_claim
from ganger.core.events import Recorded, decode, encode, type_name
from ganger.errors import NotFoundError, StoreError
from ganger.local.atomic import replace_file, sync_folder
from ganger.ports.store import BlockingStore, Command, Entry, Leader, Owner, Store
from ganger.stores.lead_lock import folders_in, leader, leading
from ganger.stores.leases import NOBODY, RELEASED, Claim, Lease, lead_lost, require_free
from ganger.stores.on_thread import OnThread

EVENTS = "events"


class FolderStore:
    """`events/NUMBER.json`. Each names the last number of its batch; one without all its files does not count."""

    def __init__(self, run: Path, *, read_only: bool = False) -> None:
        self._folder = run / EVENTS
        if read_only and not self._folder.is_dir():
            raise NotFoundError(f"{self._folder}: no event store here", hint="start a run first: ganger run")
        if not read_only:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._claims: dict[str, Claim] = {}
        self._claimed = self._fence = 0
        self._last = len(self._whole())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with open(self._folder / "lock", "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    # --- the lead ---------------------------------------------------------------------------------------------------

    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        with self._alone():
            lease = self._lease()
            require_free(lease, owner, now, holder_is_dead)
            self._keep_lease(Lease(lease.fence + 1, owner, now + lease_sec, now))
            self._fence, self._last = lease.fence + 1, len(self._whole())
        return self._fence

    def renew(self, now: float, lease_sec: float) -> None:
        with self._alone():
            lease = self._lease()
            if not lease.held or lease.fence != self._fence:
                raise lead_lost(lease)
            self._keep_lease(replace(lease, expires_at=now + lease_sec))

    def release(self) -> None:
        with self._alone():
            lease = self._lease()
            if lease.fence == self._fence:
                self._keep_lease(replace(lease, owner=NOBODY))
        self._fence = RELEASED

    def _lease(self) -> Lease:
        kept = self._read("lease")
        return Lease(**{**kept, "owner": Owner(**kept["owner"])}) if kept else Lease()

    def _keep_lease(self, lease: Lease) -> None:
        self._write("lease", asdict(lease))

    def _require_lead(self) -> None:
        lease = self._lease()
        if lease.fence != self._fence:
            raise lead_lost(lease)

    # --- events -----------------------------------------------------------------------------------------------------

    def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        if not batch:
            return []
        with self._alone():
            self._require_lead()
            if len(self._whole()) != self._last:
                raise StoreError("the store refused an event; another process may have written to it")
            self._admit_known()
            claims = self._admitted(batch)
            recorded = [Recorded(self._last + n, entry.at, entry.event) for n, entry in enumerate(batch, 1)]
            texts = [encode(entry.event) for entry in batch]
            mark = [recorded[-1].seq, secrets.token_hex(8)]
            for one, entry, text in zip(recorded, batch, texts, strict=True):
                values = {"at": one.at, "type": type_name(one.event), "data": text, "token": entry.token}
                self._write(f"{one.seq:09}", {**values, "batch": mark})
            self._claims, self._last = claims, recorded[-1].seq
            self._claimed = self._last
        return recorded

    def _admitted(self, batch: Sequence[Entry]) -> dict[str, Claim]:
        claims: ChainMap[str, Claim] = ChainMap({}, self._claims)
        ended: set[str] = set()
        for entry in batch:
            admit(claims, entry, ended)
        for task in ended:
            close_claim(claims, task)
        return dict(claims)

    def _admit_known(self) -> None:
        """Claims are not stored: they follow from the events."""
        for numbers in self._batches():
            if numbers[0] > self._claimed:
                kept = [self._kept(number) for number in numbers]
                entries = [Entry(one["at"], decode(one["type"], one["data"]), one["token"]) for one in kept]
                self._claims, self._claimed = self._admitted(entries), numbers[-1]

    def _whole(self) -> list[int]:
        return [number for numbers in self._batches() for number in numbers]

    def _batches(self) -> list[list[int]]:
        names = sorted(int(path.stem) for path in self._folder.glob("[0-9]*.json"))
        found: list[list[int]] = []
        while names:
            mark = self._kept(names[0])["batch"]
            numbers = [number for number in names if number <= mark[0] and self._kept(number)["batch"] == mark]
            if len(numbers) != mark[0] - names[0] + 1:
                break
            found.append(numbers)
            names = names[len(numbers) :]
        return found

    def _kept(self, number: int) -> dict[str, Any]:
        return self._read(f"{number:09}")

    def read(self, since: int = 0) -> Iterator[Recorded]:
        for number in self._whole():
            if number > since:
                kept = self._kept(number)
                yield Recorded(number, kept["at"], decode(kept["type"], kept["data"]))

    # --- commands and the snapshot ----------------------------------------------------------------------------------

    def send(self, at: str, kind: str, data: Mapping[str, object]) -> int:
        with self._alone():
            number = self._commands_sent() + 1
            self._write(f"command-{number}", {"at": at, "kind": kind, "data": dict(data)})
        return number

    def _commands_sent(self) -> int:
        return sum(1 for _ in self._folder.glob("command-*.json"))

    def commands(self, since: int) -> list[Command]:
        numbers = range(since + 1, self._commands_sent() + 1)
        return [Command(number, **self._read(f"command-{number}")) for number in numbers]

    def has_new(self, *, events: int | None = None, commands: int | None = None) -> bool:
        if events is not None and len(self._whole()) > events:
            return True
        return commands is not None and self._commands_sent() > commands

    def save_snapshot(self, seq: int, text: str) -> None:
        with self._alone():
            self._require_lead()
            newest = self.snapshot() or (1, "")
            if newest[0] <= seq <= self._last:
                self._write("snapshot", {"seq": seq, "text": text})

    def snapshot(self) -> tuple[int, str] | None:
        kept = self._read("snapshot")
        return (kept["seq"], kept["text"]) if kept else None

    def exists(self) -> bool:
        return self._folder.is_dir()

    def close(self) -> None:
        return None

    def _write(self, name: str, values: Mapping[str, object]) -> None:
        replace_file(self._folder / f"{name}.json", json.dumps(values).encode(), 0o600)
        sync_folder(self._folder)

    def _read(self, name: str) -> dict[str, Any]:
        try:
            kept: dict[str, Any] = json.loads((self._folder / f"{name}.json").read_text())
        except FileNotFoundError:
            return {}
        return kept


class FolderStores:
    files: tuple[str, ...] = (EVENTS,)

    def runs(self, above: Path) -> list[Path]:
        return [run for run in folders_in(above) if (run / EVENTS).is_dir() and not (run / EVENTS).is_symlink()]

    def exists(self, run: Path) -> bool:
        return (run / EVENTS).is_dir()

    def open(self, run: Path, *, read_only: bool = False) -> FolderStore:
        return FolderStore(run, read_only=read_only)

    def open_async(self, run: Path) -> Store:
        return OnThread(self, run)

    def leading(self, run: Path, store: BlockingStore) -> AbstractContextManager[int]:
        return leading(run, store)

    def leader(self, run: Path) -> Leader | None:
        return leader(run)

"""The event store on SQLite: one file per run, write-ahead log, every commit on disk before it is acknowledged.

Every statement that writes an event also checks the writer's fence, and the token of the attempt it reports on.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn

from ganger.core.events import AttemptStarted, Event, Recorded, decode, encode, type_name
from ganger.errors import StoreError
from ganger.ports.store import BlockingStore, Command, Entry, Leader, Owner, Store
from ganger.stores.database import (
    BUSY_MS,
    OLDEST_SQLITE,
    file_of,
    forged,
    migrations,
    named_errors,
    number,
    open_to_read,
    open_to_write,
    require_own_schema,
    schema_version,
    sqlite_version,
    transaction,
)
from ganger.stores.lead_lock import folders_in, leader, leading
from ganger.stores.leases import CLOSING, RELEASED, REPORTS, Claim, Lease, lead_lost, require_free, stale

__all__ = ["OLDEST_SQLITE", "SqliteStore", "SqliteStores", "migrations", "sqlite_version"]

_LAST = "SELECT coalesce(max(seq), 0) FROM events"
_COUNTED = "SELECT count(*) || ' ' || coalesce(max(seq), 0) FROM events"
_WRITTEN_BY_OTHERS = "PRAGMA data_version"
_SELECT = "SELECT seq, at, type, data FROM events WHERE seq > ? ORDER BY seq"

_INSERT = """INSERT INTO events (seq, at, type, data)
    SELECT ?1, ?2, ?3, ?4 WHERE (SELECT fence FROM lead) = ?5"""
_INSERT_CLAIMED = """INSERT INTO events (seq, at, type, data)
    SELECT ?1, ?2, ?3, ?4 WHERE (SELECT fence FROM lead) = ?5
        AND EXISTS (SELECT 1 FROM claims WHERE task = ?6 AND token = ?7 AND open)"""
# Journals from before claims have none; only there a report without a token is accepted.
_INSERT_REPORT = """INSERT INTO events (seq, at, type, data)
    SELECT ?1, ?2, ?3, ?4 WHERE (SELECT fence FROM lead) = ?5
        AND (EXISTS (SELECT 1 FROM claims WHERE task = ?6 AND token = ?7 AND open AND attempt = ?8)
            OR ?7 = '' AND NOT EXISTS (SELECT 1 FROM claims WHERE task = ?6))"""

_CLAIM = """INSERT INTO claims (task, attempt, token, open)
    SELECT ?1, ?2, ?3, 1 WHERE (SELECT fence FROM lead) = ?4
        AND (?2 = 1 OR EXISTS (SELECT 1 FROM claims WHERE task = ?1))
    ON CONFLICT (task) DO UPDATE SET attempt = excluded.attempt, token = excluded.token, open = 1
        WHERE NOT open AND excluded.attempt = claims.attempt + 1"""
_CLOSE = "UPDATE claims SET open = 0 WHERE task = ? AND open"
_SELECT_CLAIM = "SELECT attempt, token, open FROM claims WHERE task = ?"
# For journals from before claims: a task's newest attempt, open unless a later event ended it.
_CLAIMS_OF_EVENTS = """INSERT OR REPLACE INTO claims (task, attempt, token, open)
    SELECT data ->> 'task', data ->> 'attempt', data ->> 'token', coalesce(ended < begun, 1)
    FROM (SELECT max(seq) FILTER (WHERE type = 'attempt_started') AS begun,
                 max(seq) FILTER (WHERE type != 'attempt_started') AS ended
          FROM events
          WHERE type IN ('attempt_started', 'task_settled', 'task_requeued', 'attempt_interrupted')
          GROUP BY data ->> 'task')
        JOIN events ON seq = begun"""

_SELECT_LEAD = "SELECT fence, pid, start_ticks, boot_id, host, expires_at, taken_at FROM lead"
_TAKE_LEAD = """UPDATE lead SET fence = fence + 1, pid = ?, start_ticks = ?, boot_id = ?, host = ?, expires_at = ?,
    taken_at = ? WHERE fence = ? AND pid = ? AND expires_at = ?"""
_RENEW = "UPDATE lead SET expires_at = ? WHERE fence = ? AND pid != 0"
_RELEASE = "UPDATE lead SET pid = 0 WHERE fence = ?"

_SEND = "INSERT INTO commands (at, kind, data) VALUES (?, ?, ?) RETURNING number"
_SELECT_COMMANDS = "SELECT number, at, kind, data FROM commands WHERE number > ? ORDER BY number"
_LAST_COMMAND = "SELECT coalesce(max(number), 0) FROM commands"
_SAVE_SNAPSHOT = """INSERT INTO snapshot (one, seq, written_at, text)
    SELECT 1, seq, at, ?2 FROM events WHERE seq = ?1 AND (SELECT fence FROM lead) = ?3
    ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, written_at = excluded.written_at, text = excluded.text
        WHERE excluded.seq >= snapshot.seq"""
_SELECT_SNAPSHOT = "SELECT seq, text FROM snapshot"


class _Seen:
    """The file as its lead knows it; it is examined again only after another process has written.

    `digest` covers the events after `since`, all of them this lead's; the earlier ones are only counted.
    """

    __slots__ = ("digest", "picture", "since", "version")

    def __init__(self, since: int = 0, version: int = 0, picture: tuple[int, bytes] = (0, b"")) -> None:
        self.since, self.version, self.picture = since, version, picture
        self.digest = hashlib.sha256()


def _row_bytes(seq: int, at: str, name: str, data: str) -> bytes:
    return f"{seq}\0{at}\0{name}\0{data}\n".encode()


class SqliteStore:
    """One run's events. The lead opens it and acquires the lead; others send commands, or open it read-only."""

    def __init__(self, path: Path, *, read_only: bool = False, busy_ms: int = BUSY_MS) -> None:
        self.path = path
        with named_errors(path):
            self._db = open_to_read(path, busy_ms) if read_only else open_to_write(path, busy_ms)
            self._writing = self._db.cursor()
            self._last = number(self._db, _LAST)
            self._events_only = schema_version(self._db) == 1
        self._file = file_of(path)
        self._fence = 0
        self._seen = _Seen()

    # --- the lead ---------------------------------------------------------------------------------------------------

    def take_lead(self, owner: Owner, *, now: float, lease_sec: float, holder_is_dead: Callable[[Owner], bool]) -> int:
        with named_errors(self.path):
            while True:
                seen = self._lease()
                require_free(seen, owner, now, holder_is_dead)
                if self._take_from(seen, owner, now, lease_sec):
                    return self._fence

    def _take_from(self, seen: Lease, owner: Owner, now: float, lease_sec: float) -> bool:
        """False when the lease has changed since it was read."""
        values = (owner.pid, owner.start_ticks, owner.boot_id, owner.host, now + lease_sec, now)
        with transaction(self._db):
            self._db.execute(_TAKE_LEAD, (*values, seen.fence, seen.owner.pid, seen.expires_at))
            if not self._db.changes():
                return False
            if seen.fence == 0:
                self._db.execute(_CLAIMS_OF_EVENTS)
            last = number(self._db, _LAST)
        self._fence, self._last = seen.fence + 1, last
        self._seen = _Seen(last, number(self._db, _WRITTEN_BY_OTHERS), picture=self._kept_picture())
        return True

    def renew(self, now: float, lease_sec: float) -> None:
        with named_errors(self.path):
            self._db.execute(_RENEW, (now + lease_sec, self._fence))
            if not self._db.changes():
                raise lead_lost(self._lease())

    def release(self) -> None:
        with named_errors(self.path):
            self._db.execute(_RELEASE, (self._fence,))
        self._fence = RELEASED

    def _lease(self) -> Lease:
        fence, pid, start_ticks, boot_id, host, expires_at, taken_at = self._rows(_SELECT_LEAD)[0]
        return Lease(fence, Owner(pid, start_ticks, boot_id, host), expires_at, taken_at)

    # --- events -----------------------------------------------------------------------------------------------------

    def append(self, batch: Sequence[Entry]) -> list[Recorded]:
        if not batch:
            return []
        self._require_same_file()
        recorded = [Recorded(seq, entry.at, entry.event) for seq, entry in enumerate(batch, self._last + 1)]
        ended: set[str] = set()
        with named_errors(self.path), transaction(self._db):
            self._require_nothing_forged()
            rows = [self._write(seq, entry, ended) for seq, entry in enumerate(batch, self._last + 1)]
            for task in ended:
                self._writing.execute(_CLOSE, (task,))
        self._seen.digest.update(b"".join(rows))
        self._last += len(recorded)
        return recorded

    def _require_nothing_forged(self) -> None:
        """Checks that other processes only left commands. It runs in the writing transaction, so no process can come in
        between; while no other process writes, it costs one read of a counter."""
        version = number(self._db, _WRITTEN_BY_OTHERS)
        if version == self._seen.version or not self._seen.version:
            return
        lease = self._lease()
        if lease.fence != self._fence:
            raise lead_lost(lease)
        if schema_version(self._db) != migrations()[-1][0]:
            raise forged(self.path, "its schema has another version")
        require_own_schema(self._db, self.path)
        since, digest = self._seen.since, hashlib.sha256()
        if self._rows(_COUNTED)[0][0] != f"{self._last} {self._last}":
            raise forged(self.path, "events were added or removed")
        for row in self._rows(_SELECT, since):
            digest.update(_row_bytes(*row))
        if digest.digest() != self._seen.digest.digest():
            raise forged(self.path, "events were changed")
        if self._kept_picture() != self._seen.picture:
            raise forged(self.path, "the snapshot of its state was changed")
        self._seen.version = version

    def _kept_picture(self) -> tuple[int, bytes]:
        found = self._rows(_SELECT_SNAPSHOT)
        return (found[0][0], hashlib.sha256(found[0][1].encode()).digest()) if found else (0, b"")

    def _write(self, seq: int, entry: Entry, ended: set[str]) -> bytes:
        """A claim that `ended` in this batch is valid for the rest of the batch, until the task is claimed again."""
        event, execute, changes = entry.event, self._writing.execute, self._db.changes
        kind = type(event)
        row = (seq, entry.at, type_name(event), encode(event), self._fence)
        if kind in REPORTS:
            execute(_INSERT_REPORT, (*row, event.task, entry.token, event.attempt))  # type: ignore[attr-defined]
        elif isinstance(event, AttemptStarted):
            if event.task in ended:
                ended.remove(event.task)
                execute(_CLOSE, (event.task,))
            execute(_CLAIM, (event.task, event.attempt, event.token, self._fence))
            if changes():
                execute(_INSERT, row)
        elif entry.token:
            execute(_INSERT_CLAIMED, (*row, getattr(event, "task", ""), entry.token))
        else:
            execute(_INSERT, row)
        if not changes():
            self._refuse(entry)
        if kind in CLOSING:
            ended.add(event.task)  # type: ignore[attr-defined]
        return _row_bytes(*row[:4])

    def _refuse(self, entry: Entry) -> NoReturn:
        lease = self._lease()
        if lease.fence != self._fence:
            raise lead_lost(lease)
        claims = [Claim(*row) for row in self._rows(_SELECT_CLAIM, getattr(entry.event, "task", ""))]
        raise stale(entry, claims[0] if claims else None)

    def _require_same_file(self) -> None:
        if file_of(self.path) != self._file:
            raise StoreError(
                f"{self.path}: the event store was removed or replaced during the run; the run stops here",
                hint="find out what removes it (a check such as git clean -x?), then start the run again",
            )

    def read(self, since: int = 0) -> Iterator[Recorded]:
        with named_errors(self.path):
            for seq, at, name, data in self._db.execute(_SELECT, (since,)):
                yield Recorded(seq, at, self._decoded(seq, name, data))

    def _decoded(self, seq: int, name: str, data: str) -> Event:
        try:
            return decode(name, data)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self.path}: event {seq} ({name}) cannot be read ({type(error).__name__}: {error})",
                hint="continue this run with the version of Ganger that wrote it",
            ) from error

    # --- commands and the snapshot ----------------------------------------------------------------------------------

    def send(self, at: str, kind: str, data: Mapping[str, object]) -> int:
        self._require_same_file()
        values = (at, kind, json.dumps(dict(data), ensure_ascii=False))
        with named_errors(self.path), transaction(self._db):
            return int(self._rows(_SEND, *values)[0][0])

    def commands(self, since: int) -> list[Command]:
        if self._events_only:
            return []
        with named_errors(self.path):
            rows = self._rows(_SELECT_COMMANDS, since)
        return [Command(place, at, kind, json.loads(data)) for place, at, kind, data in rows]

    def has_new(self, *, events: int | None = None, commands: int | None = None) -> bool:
        with named_errors(self.path):
            if events is not None and number(self._db, _LAST) > events:
                return True
            return commands is not None and not self._events_only and number(self._db, _LAST_COMMAND) > commands

    def save_snapshot(self, seq: int, text: str) -> None:
        self._require_same_file()
        with named_errors(self.path):
            self._db.execute(_SAVE_SNAPSHOT, (seq, text, self._fence))
            if self._db.changes():
                self._seen.picture = seq, hashlib.sha256(text.encode()).digest()
            elif self._lease().fence != self._fence:
                raise lead_lost(self._lease())

    def snapshot(self) -> tuple[int, str] | None:
        if self._events_only:
            return None
        with named_errors(self.path):
            rows = self._rows(_SELECT_SNAPSHOT)
        return (rows[0][0], rows[0][1]) if rows else None

    def _rows(self, sql: str, *values: str | int) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, values).fetchall()

    def exists(self) -> bool:
        return self.path.exists()

    def close(self) -> None:
        self._db.close()


class SqliteStores:
    """Runs whose events are in a file of their folder."""

    files: tuple[str, ...] = ("ganger.db",)

    def runs(self, above: Path) -> list[Path]:
        return [folder for folder in folders_in(above) if _is_file(folder / self.files[0])]

    def exists(self, run: Path) -> bool:
        try:
            return (run / self.files[0]).exists()
        except OSError:
            return False

    def open(self, run: Path, *, read_only: bool = False) -> SqliteStore:
        return SqliteStore(run / self.files[0], read_only=read_only)

    def open_async(self, run: Path) -> Store:
        # Imported here: commands that only read start faster without asyncio.
        from ganger.stores.on_thread import OnThread

        return OnThread(self, run)

    def leading(self, run: Path, store: BlockingStore) -> AbstractContextManager[int]:
        return leading(run, store)

    def leader(self, run: Path) -> Leader | None:
        return leader(run)


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False

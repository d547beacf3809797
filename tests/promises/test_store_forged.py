"""A store that somebody else than its lead has written to: commands are taken, anything else ends the run by name."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from ganger.core.events import StopRequested
from ganger.errors import LeadLost, StoreError
from ganger.ports.store import Entry, Owner
from ganger.stores.database import own_schema
from ganger.stores.sqlite import SqliteStore, migrations

AT = "2026-01-02T03:04:05.000000Z"
FIRST = "CREATE TRIGGER mine BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END"
FORGED = {
    "dropped trigger": "DROP TRIGGER events_are_final",
    "added trigger": FIRST,
    "changed trigger": "DROP TRIGGER events_stay; "
    "CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT 1; END",
    "added index": "CREATE INDEX mine ON events (type)",
    "added view": "CREATE VIEW mine AS SELECT * FROM events",
    "another number of the schema": "PRAGMA user_version = 7",
    "changed event of this lead": "DROP TRIGGER events_are_final; UPDATE events SET data = '{}' WHERE seq = 3; "
    "CREATE TRIGGER events_are_final BEFORE UPDATE ON events "
    "BEGIN SELECT RAISE(ABORT, 'events are never changed'); END",
    "deleted event": "DROP TRIGGER events_stay; DELETE FROM events WHERE seq = 2; "
    "CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END",
    "added event": "INSERT INTO events SELECT max(seq) + 1, at, type, data FROM events",
    "another picture of the state": "UPDATE snapshot SET text = 'mine'",
}
KEPT = {
    "a command": "INSERT INTO commands (at, kind, data) VALUES ('t', 'pause', '{}')",
    "nothing": "SELECT 1",
    "the same file packed anew": "VACUUM",
    "a checkpoint": "PRAGMA wal_checkpoint(TRUNCATE)",
}


def stop(word: str) -> list[Entry]:
    return [Entry(AT, StopRequested(word))]


def led(path: Path, before: Callable[[SqliteStore], object] = lambda _store: None) -> SqliteStore:
    """One event of an earlier lead, two of this one, and a picture of them."""
    first = SqliteStore(path)
    take(first, 1)
    first.append(stop("earlier"))
    before(first)
    first.close()
    store = SqliteStore(path)
    take(store, 2)
    store.append(stop("one"))
    store.append(stop("two"))
    store.save_snapshot(3, "as it was")
    return store


def take(store: SqliteStore, pid: int, now: float = 0) -> int:
    return store.take_lead(Owner(pid, 1, "b", "h"), now=now, lease_sec=10, holder_is_dead=lambda _owner: True)


def by_somebody(path: Path, sql: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()


@pytest.mark.parametrize("case", FORGED)
def test_what_others_forge_beside_a_lead_ends_its_next_append(tmp_path: Path, case: str) -> None:
    """T19 G09: nothing is written after it, and the file is named."""
    store = led(tmp_path / "ganger.db")
    by_somebody(tmp_path / "ganger.db", FORGED[case])
    with pytest.raises(StoreError, match="changed the event store") as problem:
        store.append(stop("three"))
    assert problem.value.code == "STORE_FORGED" and problem.value.hint
    rows = apsw.Connection(str(tmp_path / "ganger.db")).execute("SELECT data FROM events").fetchall()
    assert not any("three" in str(data) for (data,) in rows)


@pytest.mark.parametrize("case", KEPT)
def test_what_others_may_do_beside_a_lead_stops_nobody(tmp_path: Path, case: str) -> None:
    """T19 D05: commands are left by other processes, and a file may be packed anew."""
    store = led(tmp_path / "ganger.db")
    by_somebody(tmp_path / "ganger.db", KEPT[case])
    assert [one.seq for one in store.append(stop("three"))] == [4]
    assert [one.seq for one in store.append(stop("four"))] == [5]


def test_a_file_put_in_the_place_of_the_store_ends_the_run(tmp_path: Path) -> None:
    """T19: with the very same content; the lead writes into a file that nobody finds any more."""
    path = tmp_path / "ganger.db"
    store = led(path)
    shutil.copy(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    with pytest.raises(StoreError, match="removed or replaced"):
        store.append(stop("three"))


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("case", ["dropped trigger", "added trigger", "added view", "added index"])
def test_what_was_forged_between_leads_is_seen_by_whoever_opens_the_store(
    tmp_path: Path, case: str, read_only: bool
) -> None:
    """T19 G09: the schema is the one that this version makes of an empty file, word by word."""
    led(tmp_path / "ganger.db").close()
    by_somebody(tmp_path / "ganger.db", FORGED[case])
    with pytest.raises(StoreError) as problem:
        SqliteStore(tmp_path / "ganger.db", read_only=read_only)
    assert problem.value.code == "STORE_FORGED"


def test_stores_of_earlier_versions_are_read_and_led_on(tmp_path: Path) -> None:
    """T19: each by the schema that it had; once led, by today's."""
    for version, _ in migrations():
        path = tmp_path / f"{version}.db"
        db = apsw.Connection(str(path))
        for place, script in migrations():
            if place <= version:
                db.execute(f"{script}; PRAGMA user_version={place}")
        db.close()
        SqliteStore(path, read_only=True).close()
        store = SqliteStore(path)
        take(store, 1)
        assert store.append(stop("on"))[0].seq == 1
        store.close()
    assert len({own_schema(version) for version, _ in migrations()}) == len(migrations())


def test_whoever_lost_the_lead_is_told_so_and_not_of_a_forgery(tmp_path: Path) -> None:
    """W03: the next lead's events are none that somebody added."""
    store, later = led(tmp_path / "ganger.db"), SqliteStore(tmp_path / "ganger.db")
    take(later, 3, now=99)
    later.append(stop("later"))
    with pytest.raises(LeadLost):
        store.append(stop("three"))


def test_a_store_is_for_its_owner_alone_also_one_that_was_open_to_others(tmp_path: Path) -> None:
    """G05: the events and what SQLite puts beside them."""
    path = tmp_path / "ganger.db"
    store = led(path, before=lambda _store: path.chmod(0o644))
    files = ("ganger.db", "ganger.db-wal", "ganger.db-shm")
    assert {p.name: p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == dict.fromkeys(files, 0o600)
    store.close()


def test_the_look_costs_next_to_nothing_while_nobody_else_writes(tmp_path: Path) -> None:
    """Against the time of one commit that is safe on disk."""
    store = led(tmp_path / "ganger.db")
    begun = time.perf_counter()
    for _ in range(2000):
        store._require_nothing_forged()
    assert (time.perf_counter() - begun) / 2000 < 0.0005

"""What every event store promises, and what the one on SQLite promises besides."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from ganger.core.events import AttemptStarted, Recorded, StopRequested, TaskRequeued, WritesApplied
from ganger.errors import DiskFullError, GangerError, NotFoundError, StoreError
from ganger.ports.store import BlockingStore, Entry
from ganger.stores.sqlite import SqliteStore, migrations
from tests.promises.store_kinds import KINDS

AT = "2026-01-02T03:04:05.000000Z"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlockingStore]:
    made = KINDS[request.param]().open(tmp_path)
    yield made
    made.close()


def stops(*words: str) -> list[Entry]:
    return [Entry(AT, StopRequested(word)) for word in words]


def words_of(store: BlockingStore, since: int = 0) -> list[str]:
    return [r.event.why for r in store.read(since) if isinstance(r.event, StopRequested)]


def test_events_come_back_in_order_with_number_time_and_content(store: BlockingStore) -> None:
    """T19: numbers count from one without a gap."""
    given = [
        Entry(AT, AttemptStarted("a", 1, "t", "mine", "first", "log")),
        Entry(AT.replace("05", "06"), WritesApplied("a", 1), "t"),
        Entry(AT, TaskRequeued("ä/\n\t\U0001f600", "")),
    ]
    recorded = store.append(given[:2]) + store.append(given[2:])
    assert recorded == [Recorded(n, entry.at, entry.event) for n, entry in enumerate(given, 1)]
    assert list(store.read()) == recorded


def test_reading_since_a_number_gives_what_came_after_it(store: BlockingStore) -> None:
    """T19: for screens that follow a run."""
    store.append(stops("a", "b", "c"))
    assert words_of(store, since=1) == ["b", "c"] and words_of(store, since=3) == []


def test_an_empty_store_and_an_empty_batch_are_fine(store: BlockingStore) -> None:
    """T19: nothing in, nothing out."""
    assert store.append([]) == [] and list(store.read()) == []


def test_reading_can_stop_in_the_middle_and_go_on_while_events_are_added(store: BlockingStore) -> None:
    """T19: a reader that gives up leaves the store usable."""
    store.append(stops("a", "b"))
    assert next(iter(store.read())).seq == 1
    store.append(stops("c"))
    assert words_of(store) == ["a", "b", "c"]


# --- SQLite ---------------------------------------------------------------------------------------------------------


def test_sqlite_runs_with_a_write_ahead_log_and_full_synchronisation(tmp_path: Path) -> None:
    """T19: read back from the very connection that writes."""
    store = SqliteStore(tmp_path / "ganger.db")
    modes = [store._db.execute(f"PRAGMA {name}").fetchone() for name in ("journal_mode", "synchronous")]
    assert modes == [("wal",), (2,)]


def test_a_store_opened_again_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """T19 T20: numbers continue."""
    path = tmp_path / "ganger.db"
    first = SqliteStore(path)
    first.append(stops("a"))
    first.close()
    assert SqliteStore(path).append(stops("b"))[0].seq == 2


def test_a_reader_sees_what_is_committed_while_the_writer_goes_on(tmp_path: Path) -> None:
    """T19: screens are other processes."""
    writer = SqliteStore(tmp_path / "ganger.db")
    writer.append(stops("a"))
    reader = SqliteStore(tmp_path / "ganger.db", read_only=True)
    assert words_of(reader) == ["a"]
    writer.append(stops("b"))
    assert words_of(reader) == ["a", "b"]


def test_a_batch_is_all_or_nothing(tmp_path: Path) -> None:
    """T19: an event that cannot be stored takes its whole batch with it, and the store stays usable."""
    store = SqliteStore(tmp_path / "ganger.db")
    store.append(stops("a"))
    with pytest.raises(UnicodeEncodeError):
        store.append(stops("b", "half of a pair: \ud800"))
    assert words_of(store) == ["a"]
    assert store.append(stops("c"))[0].seq == 2


def test_a_second_writer_is_refused_where_the_data_is_written(tmp_path: Path) -> None:
    """T19 W03: an event number is given once."""
    one, other = (SqliteStore(tmp_path / "ganger.db") for _ in range(2))
    one.append(stops("a"))
    with pytest.raises(StoreError, match="another process may have written"):
        other.append(stops("b"))
    assert words_of(other) == ["a"]


@pytest.mark.parametrize("sql", ["UPDATE events SET at = 'never'", "DELETE FROM events"])
def test_events_cannot_be_changed_or_deleted(tmp_path: Path, sql: str) -> None:
    """T19: not by any program that opens the file."""
    store = SqliteStore(tmp_path / "ganger.db")
    store.append(stops("a"))
    with pytest.raises(apsw.ConstraintError, match="events are never"):
        store._db.execute(sql)
    assert words_of(store) == ["a"]


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "not a database": (lambda path: path.write_bytes(b"hello " * 300), "not a valid event store"),
    "a folder": (lambda path: path.mkdir(), "cannot be opened"),
    "a dangling link": (lambda path: path.symlink_to(path.parent / "no" / "where"), "cannot be opened"),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_store_is_named(tmp_path: Path, case: str, read_only: bool) -> None:
    """T19: the message names the file and the next step; no traceback, no repair behind the user's back."""
    path = tmp_path / "ganger.db"
    make, words = BROKEN[case]
    make(path)
    with pytest.raises(GangerError) as caught:
        SqliteStore(path, read_only=read_only)
    assert str(path) in caught.value.message and caught.value.hint
    assert words in caught.value.message or isinstance(caught.value, NotFoundError)


def test_a_damaged_store_is_named_while_reading(tmp_path: Path) -> None:
    """T19: a page overwritten in the middle."""
    path = tmp_path / "ganger.db"
    store = SqliteStore(path)
    for n in range(200):
        store.append(stops(f"{n} " + "x" * 200))
    store.close()
    data = bytearray(path.read_bytes())
    data[40960:57344] = os.urandom(16384)
    path.write_bytes(data)
    with pytest.raises(StoreError):
        list(SqliteStore(path, read_only=True).read())


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_of_a_newer_ganger_is_refused(tmp_path: Path, read_only: bool) -> None:
    """T19: by name and number, for writing and for reading."""
    store = SqliteStore(tmp_path / "ganger.db")
    store._db.execute(f"PRAGMA user_version={migrations()[-1][0] + 1}")
    store.close()
    with pytest.raises(StoreError, match="newer Ganger"):
        SqliteStore(tmp_path / "ganger.db", read_only=read_only)


@pytest.mark.parametrize(
    ("kind", "data"),
    [("dream_dreamt", "{}"), ("stop_requested", "{"), ("stop_requested", "{}"), ("task_settled", '{"status":"X"}')],
)
def test_an_event_this_version_cannot_read_is_named(tmp_path: Path, kind: str, data: str) -> None:
    """T19: unknown type, broken text, missing field, unknown word."""
    store = SqliteStore(tmp_path / "ganger.db")
    store._db.execute("INSERT INTO events VALUES (1, 't', ?, ?)", (kind, data))
    with pytest.raises(StoreError, match="event 1"):
        list(store.read())


def test_a_reader_of_a_run_that_has_not_begun_is_told_so(tmp_path: Path) -> None:
    """T19: missing, or created a moment ago."""
    (tmp_path / "empty.db").touch()
    for name in ("none.db", "empty.db"):
        with pytest.raises(NotFoundError):
            SqliteStore(tmp_path / name, read_only=True)


WRITER = """
import sys
from pathlib import Path
from ganger.core.events import StopRequested
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
n = 0
while True:
    n = store.append([Entry("t", StopRequested("x" * 300)), Entry("t", StopRequested("y"))])[-1].seq
    print(n, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 40, 400])
def test_a_writer_killed_at_any_moment_has_lost_nothing_it_acknowledged(tmp_path: Path, acknowledged: int) -> None:
    """T19: SIGKILL in mid-run; what was told stays, batches are whole, the next writer goes on."""
    path = tmp_path / "ganger.db"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(acknowledged)]
        writer.send_signal(signal.SIGKILL)
        told += [int(line) for line in writer.stdout.read().splitlines()]
    store = SqliteStore(path)
    kept = [r.seq for r in store.read()]
    assert kept == list(range(1, len(kept) + 1)) and len(kept) % 2 == 0 and len(kept) >= told[-1]
    assert store.append(stops("next"))[0].seq == len(kept) + 1


FILLER = """
import resource, sys
from pathlib import Path
from ganger.core.events import StopRequested
from ganger.errors import GangerError
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore
store = SqliteStore(Path(sys.argv[1]))
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))
count = 0
try:
    while count < 100_000:
        store.append([Entry("t", StopRequested("x" * 2000))])
        count += 1
except GangerError as error:
    print(count, type(error).__name__, bool(error.hint), sys.argv[1] in error.message)
"""


def test_a_store_that_cannot_grow_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    """T19: a file-size limit ends the run with a named error, and nothing acknowledged is lost."""
    path = tmp_path / "ganger.db"
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(path), "limit"], capture_output=True, text=True, check=True
    )
    count, *words = done.stdout.split()
    assert words == ["StoreError", "True", "True"] and resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 150_000
    assert len(list(SqliteStore(path).read())) == int(count)


@pytest.mark.needs("root", "unshare", "mount")
def test_a_full_disk_is_called_a_full_disk(tmp_path: Path) -> None:
    """T19: on a file system of one megabyte."""
    script = f'mount -t tmpfs -o size=1m none "$1" && exec "{sys.executable}" -c "$2" "$1/ganger.db" disk'
    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", str(tmp_path), FILLER],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        assert os.environ.get("CI") != "true", "this test must run where CI=true"
        pytest.skip(f"no private mount here: {done.stderr.strip()[:100]}")
    assert done.stdout.split()[1:] == [DiskFullError.__name__, "True", "True"]


NOBODY = """
import os, sys
from pathlib import Path
from ganger.errors import StoreError
from ganger.stores.sqlite import SqliteStore
if os.geteuid() == 0:
    os.setuid(65534)
try:
    SqliteStore(Path(sys.argv[1]))
except StoreError as error:
    print(error.message, error.hint)
"""


def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    """T19: the message says what to check."""
    tmp_path.chmod(0o500)
    done = subprocess.run([sys.executable, "-c", NOBODY, str(tmp_path / "ganger.db")], capture_output=True, text=True)
    tmp_path.chmod(0o700)
    assert "cannot be opened or written" in done.stdout and "permissions" in done.stdout, done.stderr

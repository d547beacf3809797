"""The event store on SQLite: one file per run, write-ahead log, every commit on disk before it is acknowledged.

`synchronous=FULL` is set and read back: anything weaker loses acknowledged commits in a power cut.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import apsw

from ganger.core.events import Event, Recorded, decode, encode, type_name
from ganger.errors import DiskFullError, NotFoundError, StoreError

# Versions 3.7.0 to 3.51.2 can corrupt a database when the write-ahead log is reset.
OLDEST_SQLITE = (3, 51, 3)
_INSERT = "INSERT INTO events (seq, at, type, data) VALUES (?, ?, ?, ?)"
_SELECT = "SELECT seq, at, type, data FROM events WHERE seq > ? ORDER BY seq"


class SqliteStore:
    """One run's events. The lead opens it for writing; screens open it read-only."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        _require_sound_sqlite()
        with _named_errors(path):
            self._db = _open(path, read_only=read_only)
            self._last = _number(self._db, "SELECT coalesce(max(seq), 0) FROM events")
        self._file = _file_of(path)

    def append(self, batch: Sequence[tuple[str, Event]]) -> list[Recorded]:
        recorded = [Recorded(self._last + n, at, event) for n, (at, event) in enumerate(batch, 1)]
        if _file_of(self.path) != self._file:
            raise StoreError(
                f"{self.path}: the event store was removed or replaced while the run went on; the run stops here",
                hint="find out what removes it (a check such as git clean -x?), then start the run again",
            )
        with _named_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(_INSERT, [(r.seq, r.at, type_name(r.event), encode(r.event)) for r in recorded])
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(apsw.Error):
                    self._db.execute("ROLLBACK")
                raise
        self._last += len(recorded)
        return recorded

    def read(self, since: int = 0) -> Iterator[Recorded]:
        with _named_errors(self.path):
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

    def last_seq(self) -> int:
        with _named_errors(self.path):
            return _number(self._db, "SELECT coalesce(max(seq), 0) FROM events")

    def close(self) -> None:
        self._db.close()


def _open(path: Path, *, read_only: bool) -> apsw.Connection:
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: cannot be opened, it is no file", hint="move it away, then run the command again")
    if read_only:
        if not path.exists():
            raise NotFoundError(f"{path}: no event store here", hint="start a run first: ganger run")
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        db.set_busy_timeout(5000)
        if _require_known_schema(db, path) == 0:
            raise NotFoundError(f"{path}: nothing has been recorded yet", hint="start a run first: ganger run")
        return db
    new = not path.exists()
    db = apsw.Connection(str(path))
    db.set_busy_timeout(5000)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    mode, sync = _value(db, "PRAGMA journal_mode"), _value(db, "PRAGMA synchronous")
    if (mode, sync) != ("wal", 2):
        raise StoreError(
            f"{path}: SQLite runs with journal_mode={mode}, synchronous={sync}; acknowledged events could be lost",
            hint="put the state directory on a local file system that supports write-ahead logging",
        )
    _migrate(db, path)
    if new:
        _sync_folder(path.parent)
    return db


def _value(db: apsw.Connection, sql: str) -> object:
    row = db.execute(sql).fetchone()
    assert row is not None
    return row[0]


def _number(db: apsw.Connection, sql: str) -> int:
    value = _value(db, sql)
    assert isinstance(value, int)
    return value


def migrations() -> list[tuple[int, str]]:
    """The numbered scripts that lead from an empty file to today's schema."""
    folder = resources.files("ganger.stores").joinpath("migrations")
    found = [(int(entry.name.removesuffix(".sql")), entry) for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return [(number, entry.read_text()) for number, entry in sorted(found, key=lambda pair: pair[0])]


def _migrate(db: apsw.Connection, path: Path) -> None:
    version = _require_known_schema(db, path)
    for number, script in migrations():
        if number > version:
            db.execute(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version={number}; COMMIT")


def _require_known_schema(db: apsw.Connection, path: Path) -> int:
    version, known = _number(db, "PRAGMA user_version"), migrations()[-1][0]
    if version > known:
        raise StoreError(
            f"{path}: written by a newer Ganger (schema {version}, this one knows {known})",
            hint="continue this run with the newer version",
        )
    return version


def _file_of(path: Path) -> tuple[int, int] | None:
    """Which file a path names: what is written into a removed one is lost with the process."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sqlite_version() -> tuple[int, ...]:
    """The version that is really linked."""
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


def _require_sound_sqlite() -> None:
    if sqlite_version() < OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a write-ahead log; 3.51.3 or newer is needed",
            hint="upgrade the apsw package",
        )


@contextlib.contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as sentences that name the file and the next step."""
    try:
        yield
    except apsw.FullError as error:
        raise DiskFullError(
            f"{path}: the disk is full; nothing recorded so far is lost",
            hint="free some space, then run the same command again",
        ) from error
    except apsw.ConstraintError as error:
        raise StoreError(
            f"{path}: the store refused an event ({error}); another process may have written to it",
            hint="let one process lead this run, then run the same command again",
        ) from error
    except apsw.BusyError as error:
        raise StoreError(f"{path}: another process holds the store ({error})", hint="wait for it to end") from error
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise StoreError(f"{path}: not a sound event store ({error})", hint="restore it from a backup") from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, OSError) as error:
        raise StoreError(
            f"{path}: cannot be opened or written ({error})", hint="check the folder and its permissions"
        ) from error
    except apsw.IOError as error:
        raise StoreError(
            f"{path}: reading or writing failed ({error}); the run stops here",
            hint="check the disk, then run the same command again",
        ) from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}", hint="look at the file with ganger doctor") from error

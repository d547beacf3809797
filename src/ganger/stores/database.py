"""A run's SQLite file: opens it with full durability, upgrades its schema, and turns its errors into sentences.

`synchronous=FULL` is set and read back: a weaker setting loses acknowledged commits in a power cut.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path

import apsw

from ganger.errors import DiskFullError, NotFoundError, StoreError
from ganger.local.atomic import sync_folder

# Versions 3.7.0 to 3.51.2 can corrupt a database when the write-ahead log is reset.
OLDEST_SQLITE = (3, 51, 3)
BUSY_MS = 5000
_PAUSE_MS = 10


def open_to_read(path: Path, busy_ms: int) -> apsw.Connection:
    """Opens the file read-only, whatever its schema version."""
    _require_sound_sqlite()
    _require_file(path)
    if not path.exists():
        raise NotFoundError(f"{path}: no event store here", hint="start a run first: ganger run")
    try:
        db = _opened(path.absolute().as_uri(), busy_ms)
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        shared = path.with_name(f"{path.name}-shm")
        if os.access(path.parent, os.W_OK) or (shared.exists() and not os.access(shared, os.R_OK)):
            raise
        db = _opened_where_nothing_can_be_written(path, busy_ms)
    if _require_known_schema(db, path) == 0:
        raise NotFoundError(f"{path}: nothing has been recorded yet", hint="start a run first: ganger run")
    require_own_schema(db, path)
    return db


def _opened(uri: str, busy_ms: int, *, alone: bool = False) -> apsw.Connection:
    """`alone`: the index of the write-ahead log is held in memory, and nothing is locked."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    db = apsw.Connection(uri, flags=flags, vfs="unix-none" if alone else None)
    try:
        db.set_busy_timeout(busy_ms)
        if alone:
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
        # SQLite opens the write-ahead log only now.
        schema_version(db)
    except BaseException:
        db.close()
        raise
    return db


def _opened_where_nothing_can_be_written(path: Path, busy_ms: int) -> apsw.Connection:
    """Opens a store on a read-only disk, where SQLite cannot make the files that readers share. No process writes
    there: a remaining log is read without them, and without a log the file itself holds everything."""
    log = path.with_name(f"{path.name}-wal")
    left = log.exists() and log.stat().st_size > 0
    return _opened(path.absolute().as_uri() + ("" if left else "?immutable=1"), busy_ms, alone=left)


def open_to_write(path: Path, busy_ms: int) -> apsw.Connection:
    """Opens the file for writing. Safe while a lead runs: the write-ahead log is shared, and only an older schema is
    changed."""
    _require_sound_sqlite()
    _require_file(path)
    new = not path.exists()
    _make_private(path)
    db = apsw.Connection(str(path))
    db.set_busy_timeout(busy_ms)
    _use_write_ahead_log(db, busy_ms)
    db.execute("PRAGMA synchronous=FULL")
    mode, sync = _value(db, "PRAGMA journal_mode"), _value(db, "PRAGMA synchronous")
    if (mode, sync) != ("wal", 2):
        raise StoreError(
            f"{path}: SQLite runs with journal_mode={mode}, synchronous={sync}; acknowledged events could be lost",
            hint="put the state directory on a local file system that supports write-ahead logging",
        )
    _migrate(db, path)
    require_own_schema(db, path)
    if new:
        sync_folder(path.parent)
    return db


def _make_private(path: Path) -> None:
    """Creates the file, still empty, with its mode; SQLite's files beside it get the same mode."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_mode & 0o077:
            os.fchmod(fd, 0o600)
    finally:
        os.close(fd)


def _use_write_ahead_log(db: apsw.Connection, busy_ms: int) -> None:
    """Switches to write-ahead logging, with retries: for this statement SQLite does not wait for other processes."""
    for left in range(busy_ms // _PAUSE_MS, -1, -1):
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except apsw.BusyError:
            if not left:
                raise
            time.sleep(_PAUSE_MS / 1000)


def _require_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: cannot be opened, it is not a file", hint="move it away, then run the command again")


def _value(db: apsw.Connection, sql: str) -> object:
    row = db.execute(sql).fetchone()
    assert row is not None
    return row[0]


def number(db: apsw.Connection, sql: str) -> int:
    value = _value(db, sql)
    assert isinstance(value, int)
    return value


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """The numbered scripts that lead from an empty file to the present schema."""
    folder = resources.files("ganger.stores").joinpath("migrations")
    found = [(int(entry.name.removesuffix(".sql")), entry) for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return tuple((place, entry.read_text()) for place, entry in sorted(found, key=lambda pair: pair[0]))


def schema_version(db: apsw.Connection) -> int:
    return number(db, "PRAGMA user_version")


def _migrate(db: apsw.Connection, path: Path) -> None:
    if _require_known_schema(db, path) == migrations()[-1][0]:
        return
    with transaction(db):
        # Read again under the lock: two processes may open a store at once.
        version = _require_known_schema(db, path)
        for place, script in migrations():
            if place > version:
                db.execute(f"{script}; PRAGMA user_version={place}")


Schema = frozenset[tuple[str, str, str, str]]
_SCHEMA = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema"


def schema_of(db: apsw.Connection) -> Schema:
    """Every table, index and trigger, as the statement that created it."""
    return frozenset(db.execute(_SCHEMA))


@cache
def own_schema(version: int) -> Schema:
    """The schema that the scripts up to this number create in an empty file."""
    db = apsw.Connection(":memory:")
    try:
        for place, script in migrations():
            if place <= version:
                db.execute(script)
        return schema_of(db)
    finally:
        db.close()


def require_own_schema(db: apsw.Connection, path: Path) -> None:
    """Compares the schema with Ganger's: an added or missing trigger could change what the store records."""
    found, own = schema_of(db), own_schema(schema_version(db))
    if found != own:
        names = sorted({f"{kind} {name}" for kind, name, _, _ in found ^ own})
        raise forged(path, f"its schema is not Ganger's ({', '.join(names[:5])})")


def forged(path: Path, what: str) -> StoreError:
    return StoreError(
        f"{path}: another program changed the event store: {what}; nothing more is written to it",
        hint="find out who can write there (ganger doctor); continue from a backup, or start over with another run_id",
        code="STORE_FORGED",
    )


def _require_known_schema(db: apsw.Connection, path: Path) -> int:
    version, known = schema_version(db), migrations()[-1][0]
    if version > known:
        raise StoreError(
            f"{path}: written by a newer Ganger (schema {version}, this one knows {known})",
            hint="continue this run with the newer version",
        )
    return version


@contextlib.contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """A transaction that locks the file for writing from its first statement on."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(apsw.Error):
            db.execute("ROLLBACK")
        raise


def file_of(path: Path) -> tuple[int, int] | None:
    """The identity of the file at a path: what is written into a removed file is lost with the process."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def sqlite_version() -> tuple[int, ...]:
    """Checks the version of the linked library."""
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


def _require_sound_sqlite() -> None:
    if sqlite_version() < OLDEST_SQLITE:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a write-ahead log; 3.51.3 or newer is needed",
            hint="upgrade the apsw package",
        )


@contextlib.contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into sentences that name the file and the next step."""
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
        raise StoreError(
            f"{path}: not a valid event store ({error}); Ganger has no other copy of it",
            hint=f"restore a backup of yours; or move {path.parent} out of {path.parent.parent} and run the same "
            "command again: its tasks start over, and merged or written changes are still there",
        ) from error
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, OSError) as error:
        if _is_read_only(path):
            raise StoreError(
                f"{path}: lies on a read-only file system, so nothing can be changed in this run; it can only be read",
                hint="mount it writable, then run the same command again",
            ) from error
        raise StoreError(
            f"{path}: cannot be opened or written ({error})", hint="check the folder and its permissions"
        ) from error
    except apsw.IOError as error:
        raise StoreError(
            f"{path}: reading or writing failed ({error}); the run stops here",
            hint="check the disk, then run the same command again",
        ) from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}", hint="check the file with ganger doctor") from error

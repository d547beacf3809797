"""A keeper's paths: its files in the run's folder, and the private folder of its socket."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from ganger.launchers.processes.cgroups import PREFIX

_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108


@dataclass(frozen=True, slots=True)
class House:
    """The files of the keeper of one run."""

    folder: Path

    @property
    def room(self) -> Path:
        return self.folder / "keeper"

    @property
    def lock(self) -> Path:
        """Held by the keeper as long as it lives."""
        return self.room / "lock"

    @property
    def guard_lock(self) -> Path:
        """Held by the guard as long as it lives: as long as something of a dead keeper may still run."""
        return self.room / "guard"

    @property
    def address(self) -> Path:
        return self.room / "address"

    @property
    def key(self) -> Path:
        """Readable with access to the run's folder; a process that only found the socket does not know it."""
        return self.room / "key"

    @property
    def ledger(self) -> Path:
        return self.room / "ledger.jsonl"

    @property
    def errors(self) -> Path:
        return self.room / "keeper.err"

    @property
    def cgroup(self) -> Path:
        return self.room / "cgroup"

    def is_gone(self, lock: os.stat_result) -> bool:
        """Whether the run's folder was deleted since its lock was this file. A read error does not count as deleted."""
        try:
            return not os.path.samestat(self.lock.stat(), lock)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False

    def owns(self, mark: str) -> bool:
        """Whether a process with this mark was started for this run."""
        return mark.startswith(f"{self.folder}/")

    def read(self, file: Path) -> str:
        try:
            return file.read_text(encoding="utf-8", errors="surrogateescape")
        except (FileNotFoundError, NotADirectoryError):
            return ""

    def write(self, file: Path, text: str) -> None:
        """Writes the whole file or nothing; readable by the owner only."""
        fresh = file.with_name(f"{file.name}.new")
        with open(fresh, "w", encoding="utf-8", errors="surrogateescape", opener=_private) as opened:
            opened.write(text)
        fresh.replace(file)


def make_socket_folder() -> Path:
    """A new folder that only this user can enter, with a path short enough for a socket."""
    name = f"{PREFIX}{os.urandom(8).hex()}"
    problem: OSError | None = None
    for place in (Path(f"/run/user/{os.geteuid()}"), *_TEMPORARY):
        try:
            (place / name).mkdir(mode=0o700)
        except OSError as found:
            problem = found
        else:
            return place / name
    raise problem or FileNotFoundError


def is_held(lock: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def hold(lock: str | Path) -> int | None:
    """Takes the lock for as long as this process lives; None when another process has it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)

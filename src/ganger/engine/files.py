"""Files of a run: atomic replacement, and the run's folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ganger.core.names import file_stem
from ganger.errors import DiskFullError, GangerError, RunLockedError


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where one run keeps everything; names as users know them."""

    path: Path

    @classmethod
    def of(cls, state_dir: Path, run_id: str) -> RunFolder:
        return cls(state_dir / file_stem(run_id))

    @property
    def database(self) -> Path:
        return self.path / "ganger.db"

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def report(self) -> Path:
        return self.path / "report.md"

    def make(self) -> None:
        """Creates the folders; says plainly when the place cannot be written."""
        with named_os_errors(self.path):
            for name in ("logs", "prompts", "backups"):
                (self.path / name).mkdir(parents=True, exist_ok=True, mode=0o700)


@contextlib.contextmanager
def named_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"{path}: the disk is full; what was recorded so far is safe",
                hint="free some space, then run the same command again",
            ) from error
        raise GangerError(
            f"{path}: cannot be written ({error.strerror})",
            hint="choose another place with state_dir in ganger.toml, or mend its permissions",
            code="NOT_WRITABLE",
        ) from error


def replace_file(path: Path, text: str) -> None:
    """Old or new content at every instant, also after a power cut: temporary file, fsync, rename, directory fsync."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with named_os_errors(path):
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _locked(fd: int) -> bool:
    """Somebody who only looks holds the lock for an instant, so a refusal counts only when it lasts."""
    for _ in range(20):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return True
    return False


def is_led(folder: RunFolder) -> bool:
    """Whether a living process holds the lead of this run."""
    try:
        fd = os.open(folder.path / "lead.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@contextlib.contextmanager
def leading(folder: RunFolder) -> Iterator[None]:
    """One lead per run: the lock ends with the process, however it ends."""
    path = folder.path / "lead.lock"
    with named_os_errors(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(fd):
            owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise RunLockedError(
                f"run {folder.path.name} is led by process {owner}", hint="watch it with ganger status, or end it first"
            )
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)

"""The keeper's ledger: what was started and how it ended, in the run's folder, one line a fact, never changed.

starting   before the program is started: from here on it may have run
started    its number and start time
ended      how it ended, or why it could not be started; on disk before anybody is told

A launch that is starting and never ended is lost: whoever finds that must see to it that its tree is gone. It may never
have run at all, which nobody can tell any more; so it counts as one that did.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.launchers.wire import Garbage, Message, exit_message, exit_of, line, message, number, part, text
from ganger.ports import Exit

LOST = Exit(None, None, timed_out=False, duration_sec=0.0, started=True, error="", lost=True)


def refusal(error: str) -> Exit:
    return Exit(None, None, timed_out=False, duration_sec=0.0, started=False, error=error)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a launch ended, where its output is, and which process it was."""

    exit: Exit
    log_path: Path
    pid: int | None = None
    start_ticks: int | None = None

    def now(self) -> Exit:
        """A log shorter than it was at the end lost its tail to a power cut: then the end is worth nothing."""
        if self.exit.log_bytes is None or self.exit.lost:
            return self.exit
        try:
            short = self.log_path.stat().st_size < self.exit.log_bytes
        except OSError:
            short = self.exit.log_bytes > 0
        return replace(self.exit, lost=True) if short else self.exit


@dataclass(frozen=True, slots=True)
class Begun:
    """A launch that may have run and has not ended."""

    log_path: Path
    tag: int
    pid: int | None = None
    start_ticks: int | None = None

    def ended(self, exit_: Exit) -> Ended:
        return Ended(exit_, self.log_path, self.pid, self.start_ticks)


@dataclass(frozen=True, slots=True)
class Account:
    """What a ledger says: the launches that ended, and those that never did."""

    ended: dict[str, Ended]
    open: dict[str, Begun]


class Ledger:
    """The file, open for appending. One keeper writes it."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._fresh = not path.exists()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # After a crash or a full disk the last line may have no end.
        self._torn = os.fstat(self._file).st_size > 0
        # Where there is no ledger nothing was ever started: that must hold after a power cut too.
        self.sync()

    def starting(self, key: str, log: Path, tag: int, at: float) -> None:
        self._append({"do": "starting", "key": key, "log": str(log), "tag": tag, "at": at})

    def started(self, key: str, pid: int, ticks: int, boot_id: str) -> None:
        self._append({"do": "started", "key": key, "pid": pid, "ticks": ticks, "boot": boot_id})

    def ended(self, key: str, exit_: Exit) -> None:
        self._append({"do": "ended", "key": key, "exit": exit_message(exit_)})

    def sync(self) -> None:
        os.fsync(self._file)
        if self._fresh:
            for folder in (self._folder, self._folder.parent):
                _sync_folder(folder)
            self._fresh = False

    def close(self) -> None:
        os.close(self._file)

    def _append(self, fact: Message) -> None:
        data = (b"\n" if self._torn else b"") + line(fact)
        self._torn = True
        written = os.write(self._file, data)
        while written < len(data):
            written += os.write(self._file, data[written:])
        self._torn = False


def read_ledger(path: Path) -> Account:
    """Lines that are torn or make no sense are passed over."""
    account = Account({}, {})
    with contextlib.suppress(FileNotFoundError):
        for each in path.read_bytes().split(b"\n"):
            with contextlib.suppress(Garbage):
                _enter(account, message(each))
    return account


def _enter(account: Account, fact: Message) -> None:
    key = text(fact, "key")
    match fact.get("do"):
        case "starting":
            account.open[key] = Begun(Path(text(fact, "log")), number(fact, "tag"))
        case "started" if key in account.open:
            ticks = number(fact, "ticks")
            account.open[key] = replace(account.open[key], pid=number(fact, "pid"), start_ticks=ticks)
        case "ended" if key in account.open:
            account.ended[key] = account.open[key].ended(exit_of(part(fact, "exit")))
            del account.open[key]


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

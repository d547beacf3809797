"""The keeper's ledger in the run's folder: what was started and how it ended, one line per fact, never changed.

starting   before the program is started: from here on it may have run
started    its process id and start time
ended      how it ended, or why it could not be started; on disk before it is reported

A launch with "starting" and no "ended" is lost: the next keeper makes sure that its tree is gone. It may never have
run, which can no longer be known, so it counts as one that ran.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.launchers.messages import Garbage, Message, exit_message, exit_of, line, message, number, part, text
from ganger.local.atomic import sync_folder
from ganger.ports.processes import Exit

LOST = Exit(None, None, timed_out=False, duration_sec=0.0, started=True, error="", lost=True)


def refusal(error: str) -> Exit:
    return Exit(None, None, timed_out=False, duration_sec=0.0, started=False, error=error)


@dataclass(frozen=True, slots=True)
class EndRecord:
    """How a launch ended, where its output is, and which process it was."""

    exit: Exit
    log_path: Path
    pid: int | None = None
    start_ticks: int | None = None

    def now(self) -> Exit:
        """Whether the log is shorter than recorded: a power cut took its tail, and the recorded end does not count."""
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

    def ended(self, exit_: Exit) -> EndRecord:
        return EndRecord(exit_, self.log_path, self.pid, self.start_ticks)


@dataclass(frozen=True, slots=True)
class Account:
    """The content of a ledger: the launches that ended, and those that did not."""

    ended: Mapping[str, EndRecord]
    open: Mapping[str, Begun]


class Ledger:
    """The file, open for appending. One keeper writes it."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._fresh = not path.exists()
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # After a crash or a full disk the last line may be incomplete.
        self._torn = os.fstat(self._file).st_size > 0
        # No ledger means that nothing was ever started: that must hold after a power cut too.
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
                sync_folder(folder)
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


class _Ends(Mapping[str, EndRecord]):
    """The launches that ended, parsed on demand: a run has thousands of them, and few are ever read."""

    def __init__(self, lines: dict[bytes, list[bytes]]) -> None:
        self._lines = lines

    def __getitem__(self, key: str) -> EndRecord:
        begun, ended = _understood(self._lines[_written(key)])
        if begun is None:
            raise KeyError(key)
        return begun.ended(ended or LOST)

    def __iter__(self) -> Iterator[str]:
        return (json.loads(b'"%s"' % key) for key in self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def read_ledger(path: Path) -> Account:
    """Reads a ledger and skips torn or invalid lines. Most lines are about ended launches and are only sorted."""
    begun: dict[bytes, list[bytes]] = {}
    over: dict[bytes, list[bytes]] = {}
    with contextlib.suppress(FileNotFoundError):
        for each in path.read_bytes().split(b"\n"):
            key = each.partition(_KEY)[2].partition(_KEY_ENDS)[0]
            if each.startswith(_STARTS):
                begun.setdefault(key, []).append(each)
            elif key in begun and each.endswith(_WHOLE_END):
                over[key] = [*begun.pop(key), each]
    understood = ((key, _understood(lines)[0]) for key, lines in begun.items())
    return Account(_Ends(over), {json.loads(b'"%s"' % key): found for key, found in understood if found is not None})


# As `line` writes them. A quote inside a text is escaped, so none of these can be part of a text.
_STARTS, _KEY, _KEY_ENDS, _WHOLE_END = b'{"do":"start', b'"key":"', b'","', b"}}"


def _written(key: str) -> bytes:
    return json.dumps(key)[1:-1].encode("ascii")


def _understood(lines: Iterable[bytes]) -> tuple[Begun | None, Exit | None]:
    """The facts in the lines of one launch."""
    begun: Begun | None = None
    ended: Exit | None = None
    for each in lines:
        with contextlib.suppress(Garbage):
            fact = message(each)
            match fact.get("do"):
                case "starting":
                    begun = Begun(Path(text(fact, "log")), number(fact, "tag"))
                case "started" if begun is not None:
                    begun = replace(begun, pid=number(fact, "pid"), start_ticks=number(fact, "ticks"))
                case "ended":
                    ended = exit_of(part(fact, "exit"))
    return begun, ended

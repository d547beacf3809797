"""What an attempt cost: a line of a program's output, or what the program wrote down in its own home."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from ganger.agents.streams import Lines, opened, read_json, text
from ganger.core.signs import Tokens

MARK = b"GANGER_USAGE "
_TAIL_BYTES = 256 * 1024
_HUGE = 1e15
_SHOWN = 40


def read_usage(log: Path) -> Tokens | None:
    """The last such line near the log's end; None if there is none or it cannot be read."""
    with opened(log) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _TAIL_BYTES))
        lines = file.read(_TAIL_BYTES).splitlines()
    found = next((line[len(MARK) :] for line in reversed(lines) if line.startswith(MARK)), None)
    return _usage(found) if found is not None else None


def _usage(text: bytes) -> Tokens | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    told = {name: data.get(name) for name in ("usd", "input_tokens", "output_tokens")}
    wrong = [f"{name} {str(value)[:_SHOWN]}" for name, value in told.items() if not _is_amount(name, value)]
    sound = {name: value for name, value in told.items() if value is not None and _is_amount(name, value)}
    given, made = (int(sound[n]) if n in sound else None for n in ("input_tokens", "output_tokens"))
    return Tokens(given, made, usd=float(sound["usd"]) if "usd" in sound else None, doubted=", ".join(wrong))


def _is_amount(name: str, value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= _HUGE:
        return False
    return name == "usd" or value == int(value)


_CHUNK = 1024 * 1024
_FIRST_LINES = 64 * 1024
# Limits of one look into a home: bytes read, files and folders opened, names looked at in one folder.
_MOST_BYTES, _MOST_OPENED, _MOST_NAMES = 64 * 1024 * 1024, 200, 2000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Later records belong to the session's next process: none starts and calls its model that fast.
_LATE_SEC = 1.0


@dataclass(frozen=True, slots=True)
class TranscriptSpan:
    """The time a process worked, in Unix time."""

    start: float
    end: float

    def __contains__(self, stamp: str) -> bool:
        at = moment(stamp)
        return at is not None and self.start <= at <= self.end


def span(log: Path) -> TranscriptSpan:
    """From the first dated line of a log to its last change; empty for a log without dates."""
    with opened(log) as file:
        for line in Lines().feed(file.read(_FIRST_LINES)):
            if (at := moment(text(read_json(line), "timestamp"))) is not None:
                return TranscriptSpan(at, log.stat().st_mtime + _LATE_SEC)
    return TranscriptSpan(1.0, 0.0)


def records(home: Path, pattern: str, during: TranscriptSpan) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The dated JSON lines of that time in the files of `home` that match."""
    for path, line in lines(home, pattern):
        found = read_json(line)
        if found is not None and text(found, "timestamp") in during:
            yield path, found


def lines(home: Path, pattern: str) -> Iterator[tuple[Path, bytes]]:
    """The lines of the files of `home` that match, the newest file last; if there are too many, the newest."""
    left, chosen = _MOST_BYTES, []
    for file in _newest(home, pattern):
        if left <= 0:
            break
        chosen.append((file, left))
        left -= file.size
    for file, most in reversed(chosen):
        for line in _lines(home, file, most):
            yield home.joinpath(*file.names), line


def moment(stamp: str) -> float | None:
    """An ISO time as a Unix time."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp()


def summed(calls: Collection[Tokens]) -> Tokens | None:
    """The total usage of several model calls; None without calls."""
    if not calls:
        return None
    return Tokens(
        input=sum(call.input or 0 for call in calls),
        output=sum(call.output or 0 for call in calls),
        cache_read=sum(call.cache_read for call in calls),
        cache_write=sum(call.cache_write for call in calls),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """A file or folder of a home by the names that lead to it; `key` is the same for all names of one file."""

    names: tuple[str, ...] = ()
    key: tuple[int, int] = (0, 0)
    changed: float = 0.0
    size: int = 0


def _newest(home: Path, pattern: str) -> list[_Found]:
    """The matching files, each once, newest first. No link is followed, neither to a file nor to a folder."""
    found = [_Found()]
    for name in pattern.split("/"):
        inside = {one.key: one for folder in found for one in _inside(home, folder, name)}
        found = sorted(inside.values(), key=lambda one: one.changed, reverse=True)[:_MOST_OPENED]
    return found


def _inside(home: Path, folder: _Found, pattern: str) -> Iterator[_Found]:
    with suppress(OSError):
        descriptor = _opened(home, folder.names, _FOLDER)
        try:
            with os.scandir(descriptor) as entries:
                for entry in islice(entries, _MOST_NAMES):
                    if fnmatchcase(entry.name, pattern) and not entry.is_symlink():
                        at = entry.stat(follow_symlinks=False)
                        names = (*folder.names, entry.name)
                        yield _Found(names, (at.st_dev, at.st_ino), at.st_mtime, at.st_size)
        finally:
            os.close(descriptor)


def _opened(home: Path, names: tuple[str, ...], flags: int) -> int:
    """Opens the path of these names, through folders only."""
    descriptor = os.open(home, flags if not names else _FOLDER)
    for number, name in enumerate(names, start=1):
        above = descriptor
        try:
            descriptor = os.open(name, flags if number == len(names) else _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return descriptor


def _lines(home: Path, found: _Found, most: int) -> Iterator[bytes]:
    """The last `most` bytes of a file, as lines."""
    try:
        descriptor = _opened(home, found.names, _FILE)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        at = os.fstat(descriptor)
        if not stat.S_ISREG(at.st_mode):
            return
        cut, left = Lines(), min(most, at.st_size)
        file.seek(at.st_size - left)
        while left > 0 and (data := file.read(min(_CHUNK, left))):
            left -= len(data)
            yield from cut.feed(data)
        yield from cut.end()

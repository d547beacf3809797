"""What a program wrote down in its own home while it worked: read where its output does not say what it used.

The home is the agent's to write: nothing in it is followed, waited for or believed beyond a few numbers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganger.agents.streams import Lines, read_json, text
from ganger.core.signs import Tokens

_CHUNK = 1024 * 1024
_LARGEST = 256 * 1024 * 1024
_FIRST_LINES = 64 * 1024
# What the next process of the same session writes is not this one's: no process starts and asks its model that fast.
_LATE_SEC = 1.0


@dataclass(frozen=True, slots=True)
class Span:
    """While a process worked, in Unix time."""

    start: float
    end: float

    def __contains__(self, stamp: str) -> bool:
        at = moment(stamp)
        return at is not None and self.start <= at <= self.end


def span(log: Path) -> Span:
    """From the first dated line of a log to its last change; of a log without a date, no time at all."""
    with open(log, "rb") as file:
        for line in Lines().feed(file.read(_FIRST_LINES)):
            if (at := moment(text(read_json(line), "timestamp"))) is not None:
                return Span(at, log.stat().st_mtime + _LATE_SEC)
    return Span(1.0, 0.0)


def records(home: Path, pattern: str, during: Span) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The dated JSON lines of that time in the files of `home` that match."""
    for path, line in lines(home, pattern):
        found = read_json(line)
        if found is not None and text(found, "timestamp") in during:
            yield path, found


def lines(home: Path, pattern: str) -> Iterator[tuple[Path, bytes]]:
    """Every line of the files of `home` that match."""
    for path in sorted(home.glob(pattern)):
        for line in _lines(path):
            yield path, line


def moment(stamp: str) -> float | None:
    """An ISO time as a Unix time."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at.replace(tzinfo=at.tzinfo or UTC).timestamp()


def summed(calls: Collection[Tokens]) -> Tokens | None:
    """What several calls of the model used together; None where there was none."""
    if not calls:
        return None
    return Tokens(
        input=sum(call.input or 0 for call in calls),
        output=sum(call.output or 0 for call in calls),
        cache_read=sum(call.cache_read for call in calls),
        cache_write=sum(call.cache_write for call in calls),
    )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        cut, left = Lines(), _LARGEST
        while left > 0 and (data := file.read(min(_CHUNK, left))):
            left -= len(data)
            yield from cut.feed(data)
        yield from cut.end()

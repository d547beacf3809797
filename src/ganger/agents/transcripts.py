"""What a program wrote down in its own home while it worked: read where its output does not say what it used.

The home is the agent's to write: nothing in it is followed, waited for or believed beyond a few numbers.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ganger.agents.streams import Lines, opened, read_json, text
from ganger.core.signs import Tokens

_CHUNK = 1024 * 1024
_LARGEST = 256 * 1024 * 1024
_FIRST_LINES = 64 * 1024
# What the next process of the same session writes is not this one's: no process starts and asks its model that fast.
_LATE_SEC = 1.0


def records(home: Path, pattern: str, log: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The JSON lines of the files of `home` that match and were written by the process that wrote `log`."""
    start, end = _began(log), log.stat().st_mtime + _LATE_SEC
    if start is None:
        return
    for path in sorted(home.glob(pattern)):
        for line in _lines(path):
            found = read_json(line)
            at = moment(text(found, "timestamp"))
            if found is not None and at is not None and start <= at <= end:
                yield path, found


def _began(log: Path) -> float | None:
    """The moment of its first dated line."""
    with opened(log) as file:
        for line in Lines().feed(file.read(_FIRST_LINES)):
            if (at := moment(text(read_json(line), "timestamp"))) is not None:
                return at
    return None


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
        lines, left = Lines(), _LARGEST
        while left > 0 and (data := file.read(min(_CHUNK, left))):
            left -= len(data)
            yield from lines.feed(data)
        yield from lines.end()

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

from ganger.agents.streams import Lines, read_json, text
from ganger.core.signs import Tokens

_CHUNK = 1024 * 1024
_LARGEST = 256 * 1024 * 1024
_FIRST_LINES = 64 * 1024


def records(home: Path, pattern: str, since: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Every JSON line of the files of `home` that match, if it is dated and not from before `since`."""
    start = moment(since)
    if start is None:
        return
    for path in sorted(home.glob(pattern)):
        for line in _lines(path):
            found = read_json(line)
            at = moment(text(found, "timestamp"))
            if found is not None and at is not None and at >= start:
                yield path, found


def began(log: Path) -> str:
    """The moment of a log's first dated line; empty where no line has a date."""
    lines = Lines()
    with open(log, "rb") as file:
        for line in lines.feed(file.read(_FIRST_LINES)):
            if (found := read_json(line)) is not None and moment(text(found, "timestamp")) is not None:
                return text(found, "timestamp")
    return ""


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

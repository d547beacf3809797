"""Reads logs: lines, the JSON in them, signals; the same for every agent with structured output."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ganger.core.agent_output.whole_lines import Lines as Lines
from ganger.core.signs import Heard, Sign
from ganger.ports.agents import Reader

_CHUNK = 1024 * 1024
_HUGE = 1e15
# Tries per line: each may read the whole line, and a line may have a million possible starts of an object.
_TRIES = 3
_LONGEST_WORDS = 64 * 1024


def opened(log: Path) -> BinaryIO:
    """Opens a log without waiting: the agent may have replaced it with something that is not a file."""
    descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(log))
    return os.fdopen(descriptor, "rb")


def hear(reader: Reader, log: Path) -> Heard:
    """Reads a whole log."""
    heard, lines = Heard(), Lines()
    with opened(log) as file:
        while data := file.read(_CHUNK):
            for line in lines.feed(data):
                heard.add(reader.line(line))
    for line in lines.end():
        heard.add(reader.line(line))
    heard.add(reader.end())
    return heard


def signs_of(reader: Reader, log: Path) -> Iterator[Sign]:
    """Every signal in a log, in order."""
    lines = Lines()
    with opened(log) as file:
        while data := file.read(_CHUNK):
            for line in lines.feed(data):
                yield from reader.line(line)
    for line in lines.end():
        yield from reader.line(line)
    yield from reader.end()


class LastHeard:
    """Caches the newest log that was read, so that several questions read it only once."""

    def __init__(self) -> None:
        self._key: tuple[str, int, int, int] | None = None
        self._heard = Heard()

    def get(self, reader: Reader, log: Path) -> Heard:
        found = log.stat()
        key = (str(log), found.st_ino, found.st_size, found.st_mtime_ns)
        if key != self._key:
            self._heard = hear(reader, log)
            self._key = key
        return self._heard


def read_json(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; text from another stream before it is skipped."""
    start = line.find(b"{")
    for _ in range(_TRIES):
        if start < 0:
            break
        try:
            data = json.loads(line[start:])
        except (ValueError, RecursionError):
            start = line.find(b'{"', start + 1)
            continue
        return data if isinstance(data, dict) else None
    return None


def plain(line: bytes) -> str:
    """A line that is not JSON, as text; of a very long one its beginning."""
    return line[:_LONGEST_WORDS].decode("utf-8", "replace").strip()


def part(data: object, *names: str) -> Mapping[str, Any]:
    """The object at a path of names; empty if there is none."""
    for name in names:
        data = data.get(name) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def text(data: object, *names: str) -> str:
    """The text at a path of names; empty if there is none."""
    *above, last = names
    value = part(data, *above).get(last)
    return value if isinstance(value, str) else ""


def number(data: object, *names: str) -> int | None:
    *above, last = names
    value = part(data, *above).get(last)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _HUGE else None


def amount(data: object, *names: str) -> float | None:
    *above, last = names
    value = part(data, *above).get(last)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _HUGE:
        return None
    return float(value)


def items(data: object, *names: str) -> Iterable[Mapping[str, Any]]:
    """The objects of the list at a path of names."""
    *above, last = names
    value = part(data, *above).get(last)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []

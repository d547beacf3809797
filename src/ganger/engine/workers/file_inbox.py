"""Folders that somebody else fills, looked into with care: what is new in them, one small file at a time.

Nothing in them is followed, and what looking costs is bounded by whoever looks. None of it belongs on the lead's loop.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ganger.contracts.parser import MOST_VALUES
from ganger.contracts.reading.strict_json import JsonFault, check_count, loads

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_NAMES = 2_000
# Opening one costs something, however little is in it.
_A_FILE_COSTS = 16 * 1024

Mark = tuple[int, int]
# How large a file of this name may be; None: it is nobody's business.
Limits = Callable[[str], int | None]


@dataclass(frozen=True, slots=True)
class Found:
    """A file as it was found, what finding it cost, and the JSON in it; None where there is none, or too much."""

    name: str
    mark: Mark
    cost: int
    digest: str
    value: object


class Allowance:
    """What looking into one folder may cost: so many bytes a second; after more at once it rests for as long."""

    def __init__(self, bytes_per_sec: int) -> None:
        self._pace = bytes_per_sec
        self._rests_until = 0.0

    def rests(self, now: float) -> bool:
        return now < self._rests_until

    def charge(self, now: float, cost: int) -> None:
        self._rests_until = max(now, self._rests_until) + cost / self._pace


def new_names(folder: Path, limit_of: Limits, seen: Mapping[str, Mark]) -> list[str]:
    """Of wanted files that are not known as they are, in order."""
    try:
        place = os.open(folder, FOLDER)
    except OSError:
        return []
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False))
        wanted = (name for name in names if limit_of(name) is not None)
        return [name for name in wanted if (mark := _mark(place, name)) is not None and seen.get(name) != mark]
    except OSError:
        return []
    finally:
        os.close(place)


def _mark(place: int, name: str) -> Mark | None:
    try:
        facts = os.stat(name, dir_fd=place, follow_symlinks=False)
    except OSError:
        return None
    return (facts.st_mtime_ns, facts.st_size) if stat.S_ISREG(facts.st_mode) else None


def read(folder: Path, name: str, limit: int) -> Found | None:
    """None where there is no regular file any more."""
    try:
        place = os.open(folder, FOLDER)
    except OSError:
        return None
    try:
        handle = os.open(name, _FILE, dir_fd=place)
    except OSError:
        return None
    finally:
        os.close(place)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return None
        data = os.read(handle, limit + 1) if 0 < facts.st_size <= limit else b""
    except OSError:
        return None
    finally:
        os.close(handle)
    value = _value(data) if 0 < len(data) <= limit else None
    mark = (facts.st_mtime_ns, facts.st_size)
    return Found(name, mark, _A_FILE_COSTS + len(data), hashlib.sha256(data).hexdigest(), value)


def _value(data: bytes) -> object:
    try:
        text = data.decode("utf-8")
        check_count(text, MOST_VALUES)
        return loads(text)
    except (UnicodeDecodeError, JsonFault):
        return None

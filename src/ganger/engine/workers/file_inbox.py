"""Folders that workers fill, read with care, one small file at a time; and the answers left there for them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ganger.contracts.parser import MOST_VALUES
from ganger.contracts.reading.strict_json import JsonFault, check_count, loads
from ganger.core.model.workers import Message

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_NAMES = 2_000
# Opening a file costs something, however small it is.
_A_FILE_COSTS = 16 * 1024

Mark = tuple[int, int]
# How large a file of this name may be; None: it is not read.
Limits = Callable[[str], int | None]


@dataclass(frozen=True, slots=True)
class InboxFile:
    """A file as it was found, the cost of finding it, and the JSON in it; None if there is none, or too much."""

    name: str
    mark: Mark
    cost: int
    digest: str
    value: object


class Allowance:
    """What reading one folder may cost: so many bytes a second; after more at once it rests for as long."""

    def __init__(self, bytes_per_sec: int) -> None:
        self._pace = bytes_per_sec
        self._rests_until = 0.0

    def rests(self, now: float) -> bool:
        return now < self._rests_until

    def charge(self, now: float, cost: int) -> None:
        self._rests_until = max(now, self._rests_until) + cost / self._pace


def new_names(folder: Path, limit_of: Limits, seen: Mapping[str, Mark]) -> list[str]:
    """Of wanted files that are new or changed, in order."""
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


def read(folder: Path, name: str, limit: int) -> InboxFile | None:
    """None if there is no regular file any more."""
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
    return InboxFile(name, mark, _A_FILE_COSTS + len(data), hashlib.sha256(data).hexdigest(), value)


def _value(data: bytes) -> object:
    try:
        text = data.decode("utf-8")
        check_count(text, MOST_VALUES)
        return loads(text)
    except (UnicodeDecodeError, JsonFault):
        return None


MESSAGES = "messages.json"
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# The desk itself is closed to others; in a sandbox its worker may be another user than the lead.
_MODE = 0o644


def told(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Messages as every transport shows them."""
    return [
        {"number": m.number, "kind": m.kind, "text": m.text, "at": m.at, "question": m.about or None} for m in messages
    ]


def leave_messages(desk: Path, messages: Sequence[Message]) -> bool:
    """All of them: a file is read whole, whenever its reader has time."""
    latest = messages[-1].number if messages else 0
    return _leave(desk, MESSAGES, {"messages": told(messages), "latest": latest})


def leave_refusal(desk: Path, kind: str, file: str, why: Mapping[str, object]) -> bool:
    """The newest of its kind."""
    return _leave(desk, _refusal(kind), {"file": file, **why})


def take_back_refusal(desk: Path, kind: str) -> None:
    """What came later was taken."""
    with contextlib.suppress(OSError):
        place = os.open(desk, FOLDER)
        try:
            os.unlink(_refusal(kind), dir_fd=place)
        finally:
            os.close(place)


def _refusal(kind: str) -> str:
    return f"refused-{kind}.json"


def _leave(desk: Path, name: str, value: Mapping[str, object]) -> bool:
    """Whole or not at all, by folder handles: its worker may replace a file with anything."""
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    fresh = f".{name}.new"
    try:
        place = os.open(desk, FOLDER)
    except OSError:
        return False
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=place)
        with open(os.open(fresh, _FRESH, 0o600, dir_fd=place), "wb") as file:
            os.fchmod(file.fileno(), _MODE)
            file.write(content)
        os.rename(fresh, name, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        return False
    finally:
        os.close(place)
    return True

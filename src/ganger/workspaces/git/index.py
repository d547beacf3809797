"""Git's index as Ganger reads it: the state of each file in a new workspace, so that changes are found by stat."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

LINK = 0o120000
SUBMODULE = 0o160000
_HEAD = struct.Struct(">4sII")
_ENTRY = struct.Struct(">10I")
_EXTENDED = 0x4000
_LOW = 0xFFFFFFFF


class IndexEntry(NamedTuple):
    """One tracked path. `stamp` is None when only its content can tell whether the file is still the same."""

    mode: int
    oid: str
    stamp: tuple[int, ...] | None


def stamp_of(entry: os.stat_result) -> tuple[int, ...]:
    """The values that change with a file. They include the change time, which no program can set back."""
    low = _LOW
    return entry.st_ctime_ns, entry.st_mtime_ns, entry.st_ino & low, entry.st_uid, entry.st_gid, entry.st_size & low


def git_mode(mode: int) -> int:
    """Git's mode for a file-system mode; 0 for what git cannot hold."""
    if stat.S_ISLNK(mode):
        return LINK
    if stat.S_ISREG(mode):
        return 0o100755 if mode & 0o100 else 0o100644
    return 0


def read_index(path: Path) -> dict[str, IndexEntry] | None:
    """The entries by path; None when there is no complete index."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            return None
        data, index_ns = path.read_bytes(), found.st_mtime_ns
    except OSError:
        return None
    width = _width(data)
    if width == 0:
        return None
    entries: dict[str, IndexEntry] = {}
    unpack, decode = _ENTRY.unpack_from, os.fsdecode
    for at, name_at, end in _spans(data, width):
        c_sec, c_ns, m_sec, m_ns, _, ino, mode, uid, gid, size = unpack(data, at)
        written = m_sec * 1_000_000_000 + m_ns
        # A file as new as the index may have changed again in the same clock tick.
        stamp = None if written >= index_ns else (c_sec * 1_000_000_000 + c_ns, written, ino, uid, gid, size)
        entries[decode(data[name_at:end])] = IndexEntry(mode, data[at + 40 : at + 40 + width].hex(), stamp)
    return entries


def restamp(path: Path, found: Mapping[str, os.stat_result]) -> None:
    """Writes new stamps for files whose content is known to be unchanged, after a copy or a change of owner."""
    data = bytearray(path.read_bytes())
    width = _width(bytes(data))
    if width == 0:
        return
    for at, name_at, end in _spans(bytes(data), width):
        entry = found.get(os.fsdecode(bytes(data[name_at:end])))
        if entry is None:
            continue
        mode = _ENTRY.unpack_from(data, at)[6]
        _, _, ino, uid, gid, size = stamp_of(entry)
        times = (*_moment(entry.st_ctime_ns), *_moment(entry.st_mtime_ns))
        _ENTRY.pack_into(data, at, *times, entry.st_dev & _LOW, ino, mode, uid, gid, size)
    body = bytes(data[:-width])
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(body + _digest(body, width))
    fresh.replace(path)


def _moment(nanoseconds: int) -> tuple[int, int]:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return seconds & _LOW, rest


def _digest(data: bytes, width: int) -> bytes:
    return (hashlib.sha1(data, usedforsecurity=False) if width == 20 else hashlib.sha256(data)).digest()


def _width(data: bytes) -> int:
    """The length of an object id in this index; 0 when it is damaged or in a format that Ganger does not write."""
    if len(data) < _HEAD.size or data[:4] != b"DIRC" or data[7] not in (2, 3):
        return 0
    return next((width for width in (20, 32) if _digest(data[:-width], width) == data[-width:]), 0)


def _spans(data: bytes, width: int) -> list[tuple[int, int, int]]:
    """The positions of each entry, of its name and of the name's end."""
    spans: list[tuple[int, int, int]] = []
    at = _HEAD.size
    for _ in range(_HEAD.unpack_from(data)[2]):
        flags_at = at + 40 + width
        name_at = flags_at + (4 if data[flags_at] & (_EXTENDED >> 8) else 2)
        end = data.index(b"\0", name_at)
        spans.append((at, name_at, end))
        at += ((end - at) // 8 + 1) * 8
    return spans

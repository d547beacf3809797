"""Where a raw log holds passed secrets: noted beside it, without the values, for readers that do not know them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

from ganger.core.masking import MASKED, Masker
from ganger.local.run_folder import open_log

SUFFIX = ".masks"
_CHUNK = 1 << 22

Stretches = Sequence[tuple[int, int]]


def note_masks(log: Path, masker: Masker) -> None:
    """Searches the whole log; an unreadable log or a full disk stops no work."""
    if not masker:
        return
    with contextlib.suppress(OSError):
        found = _stretches(log, masker)
        if found:
            fresh = log.with_name(f".{log.name}{SUFFIX}.{os.getpid()}")
            with open(fresh, "w", encoding="ascii", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                json.dump(found, file)
            fresh.rename(beside(log))


def _stretches(log: Path, masker: Masker) -> list[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    kept, at = b"", 0
    with open_log(log) as file:
        while data := file.read(_CHUNK):
            data = kept + data
            found.update((at + hit.start, at + hit.end) for hit in masker.hits(data))
            # A value that begins in one piece may end in the next.
            kept = data[-masker.longest :]
            at += len(data) - len(kept)
    return sorted(found)


def beside(log: Path) -> Path:
    return log.with_name(f"{log.name}{SUFFIX}")


def read_masks(log: Path) -> list[tuple[int, int]]:
    try:
        with open_log(beside(log)) as file:
            return [(int(start), int(end)) for start, end in json.load(file)]
    except (OSError, ValueError, TypeError):
        return []


def covered(data: bytes, offset: int, stretches: Stretches) -> bytes:
    """A piece of a log that begins at `offset`, without the noted values."""
    pieces: list[bytes] = []
    reached = 0
    for start, end in stretches:
        begin, stop = max(start - offset, 0), min(end - offset, len(data))
        if begin < stop and stop > reached:
            pieces += [data[reached:begin], MASKED.encode()] if begin >= reached else []
            reached = stop
    return b"".join([*pieces, data[reached:]])

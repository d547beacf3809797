"""Processes a dead lead left behind: found by the mark every launch carries, and ended before anything else starts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

# Every launched process inherits this variable; its value begins with the run's folder.
MARK = "GANGER_ATTEMPT_MARK"
_ROUNDS = 50
_PAUSE_SEC = 0.02


async def end_strays(folder: Path) -> int:
    """Ends every process that was started for this run, however it fled; the number it signalled.

    Only for the holder of the run's lead lock. Where /proc is missing nothing is found.
    """
    prefix = os.fsencode(f"{MARK}={folder}/")
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = {pid for pid in _pids() if pid != os.getpid() and _end_marked(pid, prefix)}
        if not found:
            break
        ended |= found
        await asyncio.sleep(_PAUSE_SEC)
    return len(ended)


def end_group(pid: int, start_ticks: int) -> None:
    """Kills the process group of an agent, if its leader is still the process that was recorded."""
    if process_start_ticks(pid) == start_ticks:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def process_start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


def _pids() -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError), os.scandir("/proc") as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdecimal())


def _end_marked(pid: int, prefix: bytes) -> bool:
    """A descriptor is taken before looking, so that the signal cannot reach a later process of that number."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _carries(pid, prefix):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)


def _carries(pid: int, prefix: bytes) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return b"\0" + prefix in b"\0" + environ

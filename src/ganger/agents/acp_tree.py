"""The end of an agent program and of everything it started: asked first, then told, then killed."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_GRACE_SEC = 2.0
_LOOK_SEC = 0.05
_PARENT, _SESSION, _START = 1, 3, 19


async def end_tree(process: Process, ask: Callable[[], None]) -> None:
    """Descendants are looked up before anything ends: afterwards nobody knows whose they were."""
    tree = _tree(process.pid)
    ask()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(TimeoutError):
            await exited(process, _GRACE_SEC)
        tree |= _tree(process.pid)
        for pid, start in tree.items():
            # By then a number may be another process's.
            if _started(pid) == start:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
    await exited(process)


async def exited(process: Process, within_sec: float | None = None) -> int:
    """Its code, also while something it left behind holds its output open; raises TimeoutError."""
    async with asyncio.timeout(within_sec):
        while process.returncode is None:
            await asyncio.sleep(_LOOK_SEC)
    return process.returncode


def _tree(root: int) -> dict[int, str]:
    """The process, all of its session and their descendants, each with the moment it was started."""
    starts: dict[int, str] = {}
    own: list[int] = []
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        pid, fields = int(place.name), _stat(place.name)
        if fields:
            starts[pid] = fields[_START]
            own += [pid] if int(fields[_SESSION]) == root else []
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    found: dict[int, str] = {}
    fresh = own
    while fresh:
        found |= {pid: starts[pid] for pid in fresh}
        fresh = [child for parent in fresh for child in children.get(parent, []) if child not in found]
    return found


def _started(pid: int) -> str:
    fields = _stat(str(pid))
    return fields[_START] if fields else ""


def _stat(pid: str) -> list[str]:
    """What the kernel tells of a process, from its state on; empty when it is gone."""
    try:
        told = Path("/proc", pid, "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    fields = told.rpartition(")")[2].split()
    return fields if len(fields) > _START else []

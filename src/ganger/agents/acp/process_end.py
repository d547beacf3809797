"""Stops an agent program and everything it started: first a request, then SIGTERM, then SIGKILL."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress

from ganger.agents.child_processes import started, tree_of

_GRACE_SEC = 2.0
_LOOK_SEC = 0.05


async def end_tree(process: Process, ask: Callable[[], None]) -> None:
    """Descendants are looked up before anything ends: afterwards their parents are unknown."""
    tree = tree_of(process.pid)
    ask()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(TimeoutError):
            await exited(process, _GRACE_SEC)
        tree |= tree_of(process.pid)
        for pid, start in tree.items():
            # By then the pid may belong to another process.
            if started(pid) == start:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
    await exited(process)


async def exited(process: Process, within_sec: float | None = None) -> int:
    """The exit code, even while a child it left behind holds its output open; raises TimeoutError."""
    async with asyncio.timeout(within_sec):
        while process.returncode is None:
            await asyncio.sleep(_LOOK_SEC)
    return process.returncode

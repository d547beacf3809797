"""A keeper that exists and does nothing: it was stopped (SIGSTOP), or it hangs."""

from __future__ import annotations

import contextlib
import os
import signal

from ganger.launchers.paths import House, is_held
from ganger.local.procfs import is_stopped, parent_of


def wake_keeper(house: House) -> None:
    """Continues the keeper and its guard if they are stopped; a running one is left alone."""
    keeper = _keeper(house)
    guard = parent_of(keeper) if keeper and is_held(house.guard_lock) else 0
    for pid in (keeper, guard):
        if pid and is_stopped(pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)


def kill_keeper(house: House) -> None:
    """Kills the keeper; its guard, continued if it was stopped, kills everything the keeper had started."""
    wake_keeper(house)
    if keeper := _keeper(house):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(keeper, signal.SIGKILL)


def _keeper(house: House) -> int:
    """The keeper's process id, which it writes into the lock file; 0 when no process holds the lock."""
    if not is_held(house.lock):
        return 0
    said = house.read(house.lock).strip()
    return int(said) if said.isdigit() else 0

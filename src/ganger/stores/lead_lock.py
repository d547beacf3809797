"""One lead per run: the lock of its process, the lease in the store, and who holds them.

The lock on lead.lock ends with its process; the lease in the store ends with time; the fence rejects a lead that
returns after both. The lock file also says who holds it, and under which fence once it leads.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ganger.errors import GangerError, RunLockedError, StoreError
from ganger.local.boot_clock import boot_seconds
from ganger.local.locks import locked
from ganger.local.procfs import boot_id, living_since, machine_name
from ganger.local.run_folder import named_os_errors
from ganger.ports.store import LEASE_SEC, BlockingStore, Leader, Owner

LOCK = "lead.lock"
_GONE_MS = 10_000


def this_process() -> Owner:
    return Owner(os.getpid(), living_since(os.getpid()) or 0, boot_id(), machine_name())


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who has the lock. `fence` is 0 while it has not taken the lead yet, or has given it back."""

    owner: Owner
    fence: int = 0


def _write_holder(fd: int, holder: _Holder) -> None:
    owner = holder.owner
    text = json.dumps([owner.pid, owner.start_ticks, owner.boot_id, owner.host, holder.fence])
    os.pwrite(fd, f"{text:<255}\n".encode(), 0)


def _read_holder(fd: int) -> _Holder | None:
    try:
        said = json.loads(os.pread(fd, 256, 0))
        if isinstance(said, int):
            # Ganger 0.1 wrote only its process number.
            return _Holder(Owner(said))
        pid, start_ticks, boot_id, host, fence = said
        return _Holder(Owner(int(pid), int(start_ticks), str(boot_id), str(host)), int(fence))
    except (OSError, TypeError, ValueError):
        return None


def leader(run: Path) -> Leader | None:
    """The living process that holds the lead of the run in this folder."""
    try:
        fd = os.open(run / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        holder, since = _read_holder(fd), os.fstat(fd).st_mtime
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Leader(holder.owner if holder is not None else None, since)
    finally:
        os.close(fd)
    return None


def folders_in(above: Path) -> list[Path]:
    try:
        with os.scandir(above) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


@contextlib.contextmanager
def leading(
    run: Path, store: BlockingStore, *, lease_sec: float = LEASE_SEC, now: Callable[[], float] = boot_seconds
) -> Iterator[int]:
    """One lead per run; yields its fence. The previous lead is dead by then: if its lease ran out, it is ended.

    The lease must be renewed with `store.renew(now(), lease_sec)` well before it ends.
    """
    path = run / LOCK
    with named_os_errors(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fence = _take(fd, run.name, store, lease_sec, now)
        try:
            yield fence
        finally:
            # What cannot be returned ends with this process.
            with contextlib.suppress(OSError, GangerError):
                _write_holder(fd, _Holder(this_process()))
                store.release()
    finally:
        os.close(fd)


def _take(fd: int, run: str, store: BlockingStore, lease_sec: float, now: Callable[[], float]) -> int:
    """The lock first, then the lease; in reverse only against a lead whose lease ran out."""
    me, alone = this_process(), locked(fd)
    late = [] if alone else [_late_holder(fd, me, run)]
    over: list[Owner] = []
    if alone:
        _write_holder(fd, _Holder(me))

    def holder_is_dead(holder: Owner) -> bool:
        local = (holder.host, holder.boot_id) == (me.host, me.boot_id)
        if not local or holder.pid == me.pid:
            return alone
        if living_since(holder.pid) != holder.start_ticks:
            return True
        _require_may_end(holder, run)
        over.append(holder)
        return False

    def take() -> int:
        return store.take_lead(me, now=now(), lease_sec=lease_sec, holder_is_dead=holder_is_dead)

    try:
        fence = take()
    except StoreError:
        # The living holder did not refuse: its lease is over, and its unfinished write holds the store.
        if not over:
            raise
        _end(over, run)
        fence = take()
    try:
        _end(late + over, run)
        if not alone and not locked(fd, tries=200):
            raise _refusal(run, "an unknown process")
    except GangerError:
        store.release()
        raise
    _write_holder(fd, _Holder(me, fence))
    return fence


def _late_holder(fd: int, me: Owner, run: str) -> Owner:
    """Who holds the lock, if it is a process of this machine that led: it can be ended once its lease is over."""
    holder = _read_holder(fd)
    if holder is None:
        raise _refusal(run, "a process that has not identified itself")
    owner = holder.owner
    local = (owner.host, owner.boot_id) == (me.host, me.boot_id)
    if not holder.fence or not local or owner.pid == me.pid or living_since(owner.pid) != owner.start_ticks:
        raise _refusal(run, _named(owner))
    _require_may_end(owner, run)
    return owner


def _named(owner: Owner) -> str:
    return f"process {owner.pid}" + (f" on {owner.host}" if owner.host else "")


def _refusal(run: str, who: str) -> RunLockedError:
    return RunLockedError(f"run {run} is led by {who}", hint="watch it with ganger status, or end it first")


def _require_may_end(owner: Owner, run: str) -> None:
    """The next lead must be able to end the last one: if that continued, it would still write files."""
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise _refusal(run, f"{_named(owner)}, which belongs to another user") from error


def _end(owners: list[Owner], run: str) -> None:
    """Returns once all of them are gone. A descriptor is opened before looking, so no later process is hit."""
    for owner in owners:
        try:
            descriptor = os.pidfd_open(owner.pid)
        except ProcessLookupError:
            continue
        try:
            if living_since(owner.pid) == owner.start_ticks:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                _await_end(descriptor, owner, run)
        except ProcessLookupError:
            continue
        finally:
            os.close(descriptor)


def _await_end(descriptor: int, owner: Owner, run: str) -> None:
    ends = select.poll()
    ends.register(descriptor, select.POLLIN)
    if not ends.poll(_GONE_MS):
        raise _refusal(run, f"{_named(owner)}, which was killed and has not ended")

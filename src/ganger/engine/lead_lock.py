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
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ganger.errors import GangerError, RunLockedError, StoreError
from ganger.local.procfs import boot_id, living_since, machine_name
from ganger.local.run_folder import RunFolder, named_os_errors
from ganger.ports.store import Owner, Store

LEASE_SEC = 15.0
RENEW_SEC = 4.0
_GONE_MS = 10_000


def boot_seconds() -> float:
    """Seconds since the machine started, including sleep: no one can set this clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


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


def _locked(fd: int, tries: int = 20) -> bool:
    """A process that only looks holds the lock for an instant, so a refusal counts only if it lasts."""
    for _ in range(tries):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return True
    return False


def is_led(folder: RunFolder) -> bool:
    """Whether a living process holds the lead of this run."""
    return _look(folder)[0]


def leader(folder: RunFolder) -> Owner | None:
    """The living process that holds the lead of this run, as far as it has identified itself."""
    led, holder = _look(folder)
    return holder.owner if led and holder is not None else None


def _look(folder: RunFolder) -> tuple[bool, _Holder | None]:
    try:
        fd = os.open(folder.path / "lead.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False, None
    try:
        holder = _read_holder(fd)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True, holder
    finally:
        os.close(fd)
    return False, None


@contextlib.contextmanager
def alone_in(state_dir: Path, run: str) -> Iterator[None]:
    """One run at a time changes a folder in place: otherwise one run would change what the other verifies."""
    path = state_dir / "direct.lock"
    with named_os_errors(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(fd):
            other = os.pread(fd, 256, 0).decode("utf-8", "replace").strip() or "another run"
            raise RunLockedError(
                f"run {other} works in this folder; in direct mode one run at a time may change it",
                hint="wait for it, or end it: ganger stop --run " + other,
            )
        with named_os_errors(path):
            os.ftruncate(fd, 0)
            os.pwrite(fd, run.encode()[:256], 0)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def leading(
    folder: RunFolder, store: Store, *, lease_sec: float = LEASE_SEC, now: Callable[[], float] = boot_seconds
) -> Iterator[int]:
    """One lead per run; yields its fence. The previous lead is dead by then: if its lease ran out, it is ended.

    The lease must be renewed with `store.renew(now(), lease_sec)` well before it ends.
    """
    path = folder.path / "lead.lock"
    with named_os_errors(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fence = _take(fd, folder.path.name, store, lease_sec, now)
        try:
            yield fence
        finally:
            # What cannot be returned ends with this process.
            with contextlib.suppress(OSError, GangerError):
                _write_holder(fd, _Holder(this_process()))
                store.release()
    finally:
        os.close(fd)


def _take(fd: int, run: str, store: Store, lease_sec: float, now: Callable[[], float]) -> int:
    """The lock first, then the lease; in reverse only against a lead whose lease ran out."""
    me, alone = this_process(), _locked(fd)
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
        if not alone and not _locked(fd, tries=200):
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

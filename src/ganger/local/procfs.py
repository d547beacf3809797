"""What /proc says about processes: which are alive, their start time, mark and tag, and their children."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

ATTEMPT_MARK = "GANGER_ATTEMPT_MARK"
_MARK = os.fsencode(f"\0{ATTEMPT_MARK}=")
_TAG = b"\nMax realtime timeout "
_ENDED = (b"Z", b"X")
_FIRST_PID_NAMESPACE = 0xEFFFFFFC


def pids() -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError), os.scandir("/proc") as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdecimal())


def start_ticks(pid: int) -> int | None:
    """Clock ticks after boot at which the process started: together with its id this identifies it for good."""
    fields = stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else None


def living_since(pid: int) -> int | None:
    """The same; None also for a process that has ended and waits for its parent to notice."""
    fields = stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 and fields[0] not in _ENDED else None


def is_there(pid: int) -> bool:
    return bool(stat_fields(pid))


def boot_id() -> str:
    """Another one after each start of the machine; empty where it cannot be read."""
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def pid_namespace() -> int:
    """Which numbers processes have here; 0 where it cannot be read."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return 0


def machine_name() -> str:
    """In a container also its process numbers, which mean nothing outside."""
    namespace, name = pid_namespace(), os.uname().nodename
    return name if namespace in (0, _FIRST_PID_NAMESPACE) else f"{name} (pid namespace {namespace})"


def has_ended(pid: int) -> bool:
    fields = stat_fields(pid)
    return not fields or fields[0] in _ENDED


def is_stopped(pid: int) -> bool:
    """Whether it is stopped by a signal or a debugger; it runs on when it is continued."""
    return stat_fields(pid)[:1] in ([b"T"], [b"t"])


def parent_of(pid: int) -> int:
    """The number in a field; 0 where there is none."""
    fields = stat_fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def group_lives(group: int) -> bool:
    """Whether a process of the group still runs; zombies do not count."""
    for pid in pids():
        fields = stat_fields(pid)
        if fields and int(fields[2]) == group and fields[0] not in _ENDED:
            return True
    return False


def children() -> set[int]:
    """The ids of this process's children: those it started and those it adopted."""
    # Orphans go to the first living thread, which is the main one; so do the children it starts.
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
            return set(map(int, file.read().split()))
    except OSError:
        return {other for other in pids() if stat_fields(other)[1:2] == [b"%d" % pid]}


def mark_of(pid: int) -> str | None:
    """The key of the launch a process belongs to, from its environment; None where that has none."""
    _, found, rest = (b"\0" + read(f"/proc/{pid}/environ")).partition(_MARK)
    return os.fsdecode(rest.partition(b"\0")[0]) if found else None


def tag_of(pid: int) -> int | None:
    """The value of its real-time limit. This otherwise unused limit is inherited by all descendants and survives what a
    mark does not: an emptied environment, and one overwritten by a process that renames itself."""
    _, found, rest = read(f"/proc/{pid}/limits").partition(_TAG)
    value = rest.split(None, 1)[0] if found else b""
    return int(value) if value.isdigit() else None


def kill_where(belongs: Callable[[int], bool]) -> set[int]:
    """SIGKILL to every process for which the test holds; returns those found alive. None found means all are gone."""
    return {pid for pid in pids() if pid != os.getpid() and belongs(pid) and _kill_if(pid, belongs)}


def _kill_if(pid: int, belongs: Callable[[int], bool]) -> bool:
    """Sends SIGKILL. The descriptor is taken before the last check, so the signal cannot reach a later process with
    this id."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not belongs(pid):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)


def stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; the name before them may hold spaces and brackets."""
    return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError:
        return b""

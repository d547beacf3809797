"""What a process tree is doing at this moment, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ganger.local.procfs import read, start_ticks, stat_fields
from ganger.ports.processes import Facts

_MOST, _MOST_THREADS = 2000, 64
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted after the name: state, and the four times.
_STATE, _TIMES = 0, slice(11, 15)
_STOPPED, _ENDED = frozenset((b"T", b"t")), frozenset((b"Z", b"X"))
_WAITING = frozenset((b"S", b"I"))


def tree_facts(pid: int, started: int | None) -> Facts | None:
    """The facts of this process and all its descendants; None when it is gone or nothing can be read."""
    if started is not None and start_ticks(pid) != started:
        return None
    ticks = 0
    lined_up: dict[int, float] = {}
    states: dict[int, bytes] = {}
    parents: dict[int, int] = {}
    for member, parent in _tree(pid):
        fields = stat_fields(member)
        if len(fields) < _TIMES.stop:
            continue
        states[member], parents[member] = fields[_STATE], parent
        ticks += sum(int(field) for field in fields[_TIMES])
        lined_up[member] = _lined_up_sec(member)
    if not states:
        return None
    return Facts(len(states), ticks / _TICKS, stopped=_is_stopped(states, parents), lined_up=lined_up)


def _is_stopped(states: Mapping[int, bytes], parents: Mapping[int, int]) -> bool:
    """Whether the tree is stopped. The sandbox and shells around a stopped program are not stopped: they sleep until it
    ends."""
    living = {pid: state for pid, state in states.items() if state not in _ENDED}
    waited_for = {parents[pid] for pid in living}
    ends = {state for pid, state in living.items() if pid not in waited_for}
    return bool(ends) and ends <= _STOPPED and set(living.values()) <= _STOPPED | _WAITING


def _tree(pid: int) -> Iterator[tuple[int, int]]:
    """Each process with its parent."""
    queue, seen = [(pid, 0)], {pid}
    for found, parent in queue:
        yield found, parent
        if len(queue) < _MOST:
            new = [child for child in _children(found) if child not in seen]
            seen.update(new)
            queue.extend((child, found) for child in new)


def _lined_up_sec(pid: int) -> float:
    """The waiting time of all its threads: the second field of their schedstat, where the kernel has one."""
    found = 0
    for thread in _threads(pid)[:_MOST_THREADS]:
        fields = read(f"/proc/{pid}/task/{thread}/schedstat").split()
        found += int(fields[1]) if len(fields) > 1 else 0
    return found / 1e9


def _threads(pid: int) -> list[str]:
    try:
        with os.scandir(f"/proc/{pid}/task") as entries:
            return [entry.name for entry in entries]
    except OSError:
        return []


def _children(pid: int) -> list[int]:
    """A process's children; every thread has a list of its own."""
    found: list[int] = []
    for thread in _threads(pid):
        found += [int(word) for word in read(f"/proc/{pid}/task/{thread}/children").split()]
    return found

"""What a process tree does at this moment, as /proc shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ganger.launchers.proc import start_ticks, stat_fields
from ganger.ports import Facts

_MOST = 2000
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted after the name: state, and the four times.
_STATE, _TIMES = 0, slice(11, 15)
_STOPPED, _ENDED = frozenset((b"T", b"t")), frozenset((b"Z", b"X"))
_WAITING = frozenset((b"S", b"I"))


def tree_facts(pid: int, started: int | None) -> Facts | None:
    """Of this process and everything below it; None when it is gone or nothing can be read."""
    if started is not None and start_ticks(pid) != started:
        return None
    ticks = 0
    states: dict[int, bytes] = {}
    parents: dict[int, int] = {}
    for member, parent in _tree(pid):
        fields = stat_fields(member)
        if len(fields) < _TIMES.stop:
            continue
        states[member], parents[member] = fields[_STATE], parent
        ticks += sum(int(field) for field in fields[_TIMES])
    if not states:
        return None
    return Facts(len(states), ticks / _TICKS, stopped=_is_stopped(states, parents))


def _is_stopped(states: Mapping[int, bytes], parents: Mapping[int, int]) -> bool:
    """Walls and shells around a stopped program are not stopped themselves: they sleep until it ends."""
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


def _children(pid: int) -> list[int]:
    """Every thread has children of its own."""
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (thread / "children").read_text().split()]
    except (OSError, ValueError):
        return found
    return found

"""What a process tree does at this moment, as /proc shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ganger.launchers.proc import start_ticks, stat_fields
from ganger.ports import Facts

_MOST = 2000
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted after the name: state, and the four times.
_STATE, _TIMES = 0, slice(11, 15)
_STOPPED = {b"T", b"t", b"Z"}


def tree_facts(pid: int, started: int | None) -> Facts | None:
    """Of this process and everything below it; None when it is gone or nothing can be read."""
    if started is not None and start_ticks(pid) != started:
        return None
    count, ticks = 0, 0
    states: set[bytes] = set()
    for member in _tree(pid):
        fields = stat_fields(member)
        if len(fields) < _TIMES.stop:
            continue
        count += 1
        states.add(fields[_STATE])
        ticks += sum(int(field) for field in fields[_TIMES])
    if not count:
        return None
    return Facts(count, ticks / _TICKS, stopped=states <= _STOPPED and states != {b"Z"})


def _tree(pid: int) -> Iterator[int]:
    queue, seen = [pid], {pid}
    for found in queue:
        yield found
        if len(queue) < _MOST:
            new = [child for child in _children(found) if child not in seen]
            seen.update(new)
            queue.extend(new)


def _children(pid: int) -> list[int]:
    """Every thread has children of its own."""
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (thread / "children").read_text().split()]
    except (OSError, ValueError):
        return found
    return found

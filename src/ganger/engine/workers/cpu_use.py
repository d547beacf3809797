"""Whether a process tree is at work: what it used of the processor between two looks, and what others had instead."""

from __future__ import annotations

from ganger.ports import Facts

# A tenth of one processor is work; less than that is a program that waits.
_WORKS_SHARE = 0.1


def is_at_work(before: Facts, now: Facts, between_sec: float) -> bool:
    """Where there is too much to do one gets next to nothing; to stand in line for it tells it from an idle one."""
    used = max(0.0, now.cpu_sec - before.cpu_sec)
    lined_up = sum(max(0.0, sec - before.lined_up.get(pid, 0.0)) for pid, sec in now.lined_up.items())
    return between_sec > 0 and used + lined_up >= _WORKS_SHARE * between_sec

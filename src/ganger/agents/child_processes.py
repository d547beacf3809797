"""The processes an agent program has started, from the kernel."""

from __future__ import annotations

from ganger.local.procfs import pids, stat_fields

_STATE, _PARENT, _SESSION, _START = 0, 1, 3, 19
_DEAD = b"ZX"


def tree_of(root: int) -> dict[int, str]:
    """The living processes below one, with itself and all of its session, each with its start time."""
    starts: dict[int, str] = {}
    own = [root]
    children: dict[int, list[int]] = {}
    for pid in pids():
        fields = _stat(pid)
        if fields and fields[_STATE] not in _DEAD:
            starts[pid] = fields[_START].decode()
            own += [pid] if int(fields[_SESSION]) == root else []
            children.setdefault(int(fields[_PARENT]), []).append(pid)
    found: dict[int, str] = {}
    fresh = own
    while fresh:
        found |= {pid: starts[pid] for pid in fresh if pid in starts}
        fresh = [child for parent in fresh for child in children.get(parent, []) if child not in found]
    return found


def below(root: int) -> set[int]:
    """The pids of the same, without itself."""
    return set(tree_of(root)) - {root}


def started(pid: int) -> str:
    """When a process was started; a reused pid has another start time."""
    fields = _stat(pid)
    return fields[_START].decode() if fields else ""


def _stat(pid: int) -> list[bytes]:
    """The kernel's fields of a process, from its state on; empty if it is gone."""
    fields = stat_fields(pid)
    return fields if len(fields) > _START else []

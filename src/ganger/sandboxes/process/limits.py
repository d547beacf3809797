"""The limits of one sandboxed process tree, as orders for the program inside."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

from ganger.sandboxes.settings import SandboxSettings

_MB = 1 << 20
# Before 5.14 the kernel counted a user's processes on the whole machine, in all namespaces together.
_COUNTS_PER_NAMESPACE = (5, 14)


def orders(settings: SandboxSettings, *, counted_apart: bool) -> Iterator[str]:
    """`counted_apart`: whether the kernel counts this tree's processes separately from the user's others."""
    yield f"limit={resource.RLIMIT_CORE}:0"
    yield f"limit={resource.RLIMIT_FSIZE}:{settings.file_mb * _MB}"
    if settings.memory_mb is not None:
        # Address space would be the wrong measure: many runtimes reserve far more of it than they use.
        yield f"limit={resource.RLIMIT_DATA}:{settings.memory_mb * _MB}"
    if counted_apart:
        yield f"limit={resource.RLIMIT_NPROC}:{settings.processes}"


def counts_namespaces_apart() -> bool:
    numbers = os.uname().release.split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdigit()) >= _COUNTS_PER_NAMESPACE

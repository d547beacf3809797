"""How a refused or failed write is reported: one path, one code, one sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ganger.errors import DiskFullError, GangerError, WriteRefused


def shown(path: str) -> str:
    """A path, shortened for a message."""
    return path if len(path) <= 200 else f"{path[:200]}…"


def refused(path: str, code: str, message: str) -> WriteRefused:
    return WriteRefused(shown(path), message, code=code)


def require_none(refusals: Sequence[WriteRefused]) -> None:
    """Raises the first of them and includes the others: the next try must know them all."""
    for first in refusals:
        first.also = tuple(refusals[1:])
        raise first


def failure_for(path: str, problem: OSError) -> GangerError:
    """The error shown for an operating-system error about one path."""
    reason = os.strerror(problem.errno) if problem.errno else str(problem)
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(
            f"the disk is full: {shown(path)!r} cannot be written",
            hint="Free some space on that file system, then run `ganger run` again; it continues where it stopped.",
        )
    if problem.errno == errno.ENAMETOOLONG:
        return refused(path, "PATH_TOO_LONG", "the file system cannot hold a name this long; use a shorter one")
    return refused(path, "WRITE_FAILED", f"{reason}; check the owner and the permissions of this place")


@contextmanager
def named_failures(path: str) -> Iterator[None]:
    """Inside, an operating-system error becomes an error that names the path."""
    try:
        yield
    except OSError as problem:
        raise failure_for(path, problem) from problem

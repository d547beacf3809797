"""Starts one program with its log, input, mark and session, and explains in a sentence why a start failed."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from ganger.errors import NOT_A_PROGRAM, NOT_EXECUTABLE, DiskFullError
from ganger.local.procfs import ATTEMPT_MARK
from ganger.ports.processes import Launch

FREE_SOME_SPACE = "Free some space, then run again."


def spawn(launch: Launch, log: int, tag: int | None = None) -> subprocess.Popen[bytes]:
    """Starts the program with both outputs going to `log`; raises OSError or ValueError, see `start_error`."""
    if not launch.argv:
        raise ValueError("no program is named")
    with contextlib.ExitStack() as opened:
        stdin = subprocess.DEVNULL
        if launch.stdin_path is not None:
            stdin = _open_regular(launch.stdin_path, os.O_RDONLY)
            opened.callback(os.close, stdin)
        if tag is not None:
            opened.enter_context(_tagged(tag))
        return subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env=_environment(launch, tag),
            stdin=stdin,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _environment(launch: Launch, tag: int | None) -> dict[str, str]:
    """The environment with the mark. A program that adds to another's log is a check and gets no mark: code under test
    must not learn who runs it. Its strays are found by their tag."""
    if launch.append and tag is not None and resource.getrlimit(resource.RLIMIT_RTTIME)[1] == resource.RLIM_INFINITY:
        return dict(launch.env)
    return {**launch.env, ATTEMPT_MARK: launch.key}


@contextlib.contextmanager
def _tagged(tag: int) -> Iterator[None]:
    """Processes started inside inherit the tag; see `tag_of`. As a limit it affects only real-time processes, and those
    only after many thousand years."""
    before = resource.getrlimit(resource.RLIMIT_RTTIME)
    if before[1] != resource.RLIM_INFINITY:
        yield
        return
    resource.setrlimit(resource.RLIMIT_RTTIME, (tag, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_RTTIME, before)


def open_log(launch: Launch) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | (0 if launch.append else os.O_TRUNC)
    try:
        return _open_regular(launch.log_path, flags)
    except OSError as problem:
        if not is_disk_full(problem):
            raise
        raise DiskFullError(
            f"the log {launch.log_path} cannot be opened: the disk is full", hint=FREE_SOME_SPACE
        ) from problem


def is_disk_full(problem: OSError) -> bool:
    return problem.errno in (errno.ENOSPC, errno.EDQUOT)


def _open_regular(path: Path, flags: int) -> int:
    # Without O_NONBLOCK a FIFO in the file's place would block the whole event loop.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    os.set_blocking(descriptor, True)
    return descriptor


def start_error(launch: Launch, problem: OSError | ValueError) -> str:
    program = launch.argv[0][:200] if launch.argv else ""
    if not isinstance(problem, OSError):
        return f"{program!r} cannot be started: its arguments, environment or paths are not usable ({problem})"
    where = os.fsdecode(problem.filename) if problem.filename is not None else ""
    if where in (str(launch.log_path), str(launch.stdin_path)):
        return f"{program!r} cannot be started: {where} cannot be opened ({problem.strerror})"
    if where == str(launch.cwd):
        return f"{program!r} cannot be started: its directory {where} cannot be entered ({problem.strerror})"
    match problem.errno:
        case errno.ENOENT:
            return f"the program {program!r} (or the interpreter it names) was not found; install it or correct PATH"
        case errno.EACCES:
            return f"the program {program!r} {NOT_EXECUTABLE}; set its mode with chmod +x"
        case errno.ENOEXEC:
            return f"{program!r} {NOT_A_PROGRAM}; does its first line lack a #! interpreter?"
        case errno.E2BIG:
            return f"{program!r} cannot be started: its arguments and environment are too long"
        case _:
            return f"{program!r} cannot be started: {problem.strerror}"

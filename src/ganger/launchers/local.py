"""The local launcher: starts programs in process groups of their own, sees them end, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ganger.errors import DiskFullError
from ganger.launchers.adoption import adopt_orphans, children, reap
from ganger.ports import Exit, Launch

__all__ = ["ATTEMPT_MARK", "Exit", "Launch", "LocalLauncher", "Running", "end_marked", "process_start_time"]

ATTEMPT_MARK = "GANGER_ATTEMPT_MARK"
DEFAULT_GRACE_SEC = 5.0
_GONE_WITHIN_SEC = 2.0
_SWEEPS = 20
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


class LocalLauncher:
    """Programs on this machine, in one event loop, without a thread or a pipe for each."""

    def __init__(self, *, grace_sec: float = DEFAULT_GRACE_SEC, sole: bool = False) -> None:
        """`sole`: nobody else in this process starts children, so every one that is not known here is an orphan."""
        self._sole = sole
        self._grace_sec = grace_sec
        self._running: set[Running] = set()
        adopt_orphans()

    def _has_strays(self) -> bool:
        """A living child this launcher did not start is an orphan it adopted; whose it is, its mark tells."""
        unknown = children() - {running.pid for running in self._running}
        ended = {pid for pid in unknown if _has_ended(pid)}
        if self._sole:
            reap(ended)
        return bool(unknown - ended)

    @property
    def running(self) -> frozenset[Running]:
        return frozenset(self._running)

    async def start(self, launch: Launch) -> Running:
        """Starts the program; one that cannot start is a `Running` that has already ended and says why."""
        try:
            process = _spawn(launch)
        except (OSError, ValueError) as problem:
            return Running(launch, _start_error(launch, problem), grace_sec=self._grace_sec)
        running = Running(launch, process, grace_sec=self._grace_sec, has_strays=self._has_strays)
        self._running.add(running)
        running.when_over(self._running.discard)
        return running

    async def stop_all(self, grace_sec: float = DEFAULT_GRACE_SEC) -> None:
        """Ends every tree this launcher started: SIGTERM, `grace_sec`, SIGKILL."""
        await asyncio.gather(*(running.stop(grace_sec) for running in self._running))

    def kill_all(self) -> None:
        """SIGKILL to every group, without waiting for anything."""
        for running in self._running:
            running.kill()


class Running:
    """One started program. It is reaped and its group ended whether or not somebody waits for it."""

    def __init__(
        self,
        launch: Launch,
        process: subprocess.Popen[bytes] | str,
        *,
        grace_sec: float,
        has_strays: Callable[[], bool] = bool,
    ) -> None:
        self._has_strays = has_strays
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._key = launch.key
        self._process = process if isinstance(process, subprocess.Popen) else None
        self._timed_out = False
        self._kill_at: float | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._life: asyncio.Future[Exit] = self._loop.create_future()
        self.pid: int | None = None
        self.start_time: int | None = None
        if isinstance(process, str):
            self._life.set_result(Exit(None, None, timed_out=False, duration_sec=0.0, started=False, error=process))
            return
        self.pid = process.pid
        self.start_time = process_start_time(process.pid)
        self._life = self._loop.create_task(self._live(process))
        if launch.timeout_sec is not None:
            self._timers.append(self._loop.call_later(launch.timeout_sec, self._expire, grace_sec))

    async def wait(self) -> Exit:
        """How it ended, once its group is gone too. Cancelling this leaves the program running."""
        return await asyncio.shield(self._life)

    async def stop(self, grace_sec: float = DEFAULT_GRACE_SEC) -> Exit:
        """Ends the tree: SIGTERM, `grace_sec`, SIGKILL. A second call with a shorter grace shortens it."""
        self._terminate(grace_sec)
        return await self.wait()

    def kill(self) -> None:
        self._signal_group(signal.SIGKILL)

    def when_over(self, tell: Callable[[Running], None]) -> None:
        self._life.add_done_callback(lambda _: tell(self))

    def _expire(self, grace_sec: float) -> None:
        if not self._ended.done():
            self._timed_out = self._kill_at is None
            self._terminate(grace_sec)

    def _terminate(self, grace_sec: float) -> None:
        if self._life.done():
            return
        kill_at = self._loop.time() + grace_sec
        if self._kill_at is None:
            self._signal_group(signal.SIGTERM)
            self._signal_group(signal.SIGCONT)
        if self._kill_at is None or kill_at < self._kill_at:
            self._kill_at = kill_at
            self._timers.append(self._loop.call_at(kill_at, self._signal_group, signal.SIGKILL))

    def _signal_group(self, number: signal.Signals) -> None:
        # Once the leader is reaped its number may belong to somebody else.
        if self._process is not None and self._process.returncode is None:
            _kill_group(self._process.pid, number)

    async def _live(self, process: subprocess.Popen[bytes]) -> Exit:
        try:
            await _see_end(process, self._ended)
            duration = self._loop.time() - self._began
            await self._grant_grace(process.pid)
            _kill_group(process.pid, signal.SIGKILL)
            process.wait()
            await _group_gone(process.pid)
            if self._kill_at is not None or self._has_strays():
                await end_marked(self._key)
        finally:
            for timer in self._timers:
                timer.cancel()
            if process.returncode is None:
                _kill_group(process.pid, signal.SIGKILL)
                process.wait()
        code = process.returncode
        exit_code, number = (code, None) if code >= 0 else (None, -code)
        return Exit(exit_code, number, self._timed_out, duration, started=True, error="")

    async def _grant_grace(self, group: int) -> None:
        """A leader that obeys SIGTERM at once does not take the grace from its children."""
        pause = 0.01
        while self._kill_at is not None and self._loop.time() < self._kill_at and _lives(group):
            await asyncio.sleep(min(pause, max(0.0, self._kill_at - self._loop.time())))
            pause = min(pause * 2, 0.25)


def _spawn(launch: Launch) -> subprocess.Popen[bytes]:
    if not launch.argv:
        raise ValueError("no program is named")
    with contextlib.ExitStack() as opened:
        log = _open_log(launch)
        opened.callback(os.close, log)
        stdin = subprocess.DEVNULL
        if launch.stdin_path is not None:
            stdin = _open_regular(launch.stdin_path, os.O_RDONLY)
            opened.callback(os.close, stdin)
        return subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env={**launch.env, ATTEMPT_MARK: launch.key},
            stdin=stdin,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _open_log(launch: Launch) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | (0 if launch.append else os.O_TRUNC)
    try:
        return _open_regular(launch.log_path, flags)
    except OSError as problem:
        if problem.errno not in _DISK_FULL:
            raise
        raise DiskFullError(
            f"the log {launch.log_path} cannot be opened: the disk is full", hint="Free some space, then run again."
        ) from problem


def _open_regular(path: Path, flags: int) -> int:
    # Without O_NONBLOCK a FIFO in the file's place would hold up the whole event loop.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    os.set_blocking(descriptor, True)
    return descriptor


def _start_error(launch: Launch, problem: OSError | ValueError) -> str:
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
            return f"the program {program!r} is not executable; set its mode with chmod +x"
        case errno.ENOEXEC:
            return f"{program!r} is no program this machine can run; does its first line lack a #! interpreter?"
        case errno.E2BIG:
            return f"{program!r} cannot be started: its arguments and environment are too long"
        case _:
            return f"{program!r} cannot be started: {problem.strerror}"


async def _see_end(process: subprocess.Popen[bytes], ended: asyncio.Future[None]) -> None:
    """Returns when the process has ended, which may have been long ago, without reaping it."""
    loop = asyncio.get_running_loop()
    descriptor = _pidfd(process.pid)
    if descriptor is None:
        threading.Thread(target=_watch, args=(process, loop, ended), daemon=True).start()
        await ended
        return
    loop.add_reader(descriptor, _settle, ended)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _watch(process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]) -> None:
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()
    # The loop is closed already when the launcher was abandoned; there is nobody left to tell.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, ended)


def _settle(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _kill_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _group_gone(group: int) -> None:
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + _GONE_WITHIN_SEC
    pause = 0.001
    while _exists(group) and loop.time() < give_up_at:
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return _lives(group)


def _lives(group: int) -> bool:
    """Whether a process of the group still runs; zombies do not count."""
    for pid in _pids():
        fields = _stat_fields(pid)
        if fields and int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
            return True
    return False


def _pids() -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError), os.scandir("/proc") as entries:
        yield from (int(entry.name) for entry in entries if entry.name.isdecimal())


def _stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; the name before them may hold spaces and brackets."""
    return _read_proc(pid, "stat").rpartition(b")")[2].split()


def _read_proc(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _has_ended(pid: int) -> bool:
    fields = _stat_fields(pid)
    return not fields or fields[0] in (b"Z", b"X")


def process_start_time(pid: int) -> int | None:
    """Clock ticks after boot at which the process started: with its number this names it for good."""
    fields = _stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else None


async def end_marked(key: str) -> int:
    """Kills every process that carries the mark of `key`, wherever it fled; returns how many it signalled.

    Processes that wiped their environment are not seen. Without /proc there is nothing to look at.
    """
    mark = b"\0" + os.fsencode(f"{ATTEMPT_MARK}={key}") + b"\0"
    ended: set[int] = set()
    for _ in range(_SWEEPS):
        found = {pid for pid in _pids() if pid != os.getpid() and _carries(pid, mark)}
        if not found:
            break
        ended.update(pid for pid in found if _kill_marked(pid, mark))
        await asyncio.sleep(0.01)
        reap(ended)
    return len(ended)


def _carries(pid: int, mark: bytes) -> bool:
    return mark in b"\0" + _read_proc(pid, "environ")


def _kill_marked(pid: int, mark: bytes) -> bool:
    descriptor = _pidfd(pid)
    if descriptor is None:
        return False
    try:
        if not _carries(pid, mark):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(descriptor)
    return True

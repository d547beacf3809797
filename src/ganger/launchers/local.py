"""The local launcher: starts programs in process groups of their own, sees them end, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable

from ganger.launchers.adoption import adopt_orphans, adopted, reap
from ganger.launchers.proc import ATTEMPT_MARK, children, group_lives, has_ended, kill_where, mark_of, start_ticks
from ganger.launchers.spawn import open_log, spawn, start_error
from ganger.ports import Exit, Launch

__all__ = ["ATTEMPT_MARK", "Exit", "Launch", "LocalLauncher", "Running", "end_marked", "start_ticks"]

DEFAULT_GRACE_SEC = 5.0
_GONE_WITHIN_SEC = 2.0
_SWEEPS = 20


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
        own = {running.pid for running in self._running if running.pid is not None}
        if self._sole:
            return bool(adopted(own))
        return any(not has_ended(pid) for pid in children() - own)

    @property
    def running(self) -> frozenset[Running]:
        return frozenset(self._running)

    async def start(self, launch: Launch) -> Running:
        """Starts the program; one that cannot start is a `Running` that has already ended and says why."""
        try:
            process = _spawn(launch)
        except (OSError, ValueError) as problem:
            return Running(launch, start_error(launch, problem), grace_sec=self._grace_sec)
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
        self.start_time = start_ticks(process.pid)
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
        while self._kill_at is not None and self._loop.time() < self._kill_at and group_lives(group):
            await asyncio.sleep(min(pause, max(0.0, self._kill_at - self._loop.time())))
            pause = min(pause * 2, 0.25)


def _spawn(launch: Launch) -> subprocess.Popen[bytes]:
    if not launch.argv:
        raise ValueError("no program is named")
    log = open_log(launch)
    try:
        return spawn(launch, log)
    finally:
        os.close(log)


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
    return group_lives(group)


async def end_marked(key: str) -> int:
    """Kills every process that carries the mark of `key`, wherever it fled; returns how many it signalled.

    Processes that wiped their environment are not seen. Without /proc there is nothing to look at.
    """
    ended: set[int] = set()
    for _ in range(_SWEEPS):
        found = kill_where(lambda pid: mark_of(pid) == key)
        if not found:
            break
        ended |= found
        await asyncio.sleep(0.01)
        for pid in ended:
            reap(pid)
    return len(ended)

"""Simulated processes: a keeper that outlives every lead, and the launcher through which one lead talks to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from ganger.ports.processes import Exit, Facts, Launch, Running
from sim.clock import SimClock
from sim.life import Life

_TALK_SEC = 0.002
_STOP_SEC = 0.5
_KILLED, _TERMINATED = 9, 15


@dataclass(frozen=True, slots=True)
class Ending:
    """What a program does if nobody interferes. A `duration_sec` beyond the launch's limit is cut there.

    `idle`: it does nothing at all meanwhile, as one that hangs.
    """

    duration_sec: float
    text: str = ""
    code: int | None = 0
    signal: int | None = None
    error: str = ""
    idle: bool = False


@dataclass(slots=True)
class Process:
    """One process, living or ended; `number` is its pid."""

    number: int
    launch: Launch
    started_at: float
    ending: Ending
    expires_at: float | None = None
    exit: Exit | None = None
    waiting: list[asyncio.Future[Exit]] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        return self.exit is None


Program = Callable[[Launch], Ending]
Watch = Callable[[Process], None]


class Keeper:
    """Every process of the run by its key. `watch_start` and `watch_end` see what really happens."""

    def __init__(self, clock: SimClock, program: Program, *, watch_start: Watch, watch_end: Watch) -> None:
        self.clock, self.program = clock, program
        self.processes: dict[str, Process] = {}
        self._watch_start, self._watch_end = watch_start, watch_end

    def start(self, launch: Launch) -> Process:
        known = self.processes.get(launch.key)
        if known is not None:
            return known
        process = Process(1000 + len(self.processes), launch, self.clock.elapsed, self.program(launch))
        self.processes[launch.key] = process
        self._watch_start(process)
        if process.ending.error:
            self._end(process, Exit(None, None, False, 0.0, False, process.ending.error))
            return process
        if not launch.append:
            _write(launch.log_path, "", append=False)
        if launch.timeout_sec is not None:
            process.expires_at = process.started_at + launch.timeout_sec
        self._let_run(process)
        return process

    def _let_run(self, process: Process) -> None:
        over_at = process.started_at + process.ending.duration_sec
        expires_at = process.expires_at
        late = expires_at is not None and over_at > expires_at
        due_at = expires_at if late and expires_at is not None else over_at
        self.clock.at(due_at, lambda: self._run_out(process, due_at, late=late))

    def extend(self, process: Process, sec: float) -> None:
        if process.expires_at is not None:
            process.expires_at = max(process.expires_at, self.clock.elapsed + sec)

    def _run_out(self, process: Process, due_at: float, *, late: bool) -> None:
        if not process.alive:
            return
        if late and process.expires_at is not None and process.expires_at > due_at:
            self._let_run(process)
            return
        ending, limit = process.ending, process.launch.output_limit_bytes
        over = limit is not None and len(ending.text) > limit
        text = ending.text[: max(limit or 0, 0)] if over else ending.text
        if late:
            text = text[: len(text) // 2]
        self._log(process, text)
        ended_by_keeper = over or late
        code, signal = (None, _TERMINATED) if ended_by_keeper else (ending.code, ending.signal)
        self._end(process, self._exit(process, code=code, signal=signal, timed_out=late, over_output=over))

    def _exit(
        self,
        process: Process,
        *,
        code: int | None,
        signal: int | None,
        timed_out: bool = False,
        over_output: bool = False,
    ) -> Exit:
        lasted = self.clock.elapsed - process.started_at
        size = _size(process.launch.log_path)
        return Exit(code, signal, timed_out, lasted, True, "", over_output=over_output, log_bytes=size)

    def end(self, process: Process, signal: int) -> None:
        """Somebody ended it: what it had printed so far is in the log."""
        if process.alive:
            self._log(process, process.ending.text[: len(process.ending.text) // 3])
            self._end(process, self._exit(process, code=None, signal=signal))

    def die(self) -> None:
        """The keeper is killed: all that runs is gone, and nobody saw how it ended."""
        for process in self.living():
            self._log(process, process.ending.text[: len(process.ending.text) // 3])
            lasted = self.clock.elapsed - process.started_at
            self._end(process, Exit(None, _KILLED, False, lasted, True, "", lost=True))

    def living(self) -> list[Process]:
        return [process for process in self.processes.values() if process.alive]

    def _log(self, process: Process, text: str) -> None:
        if text:
            _write(process.launch.log_path, text, append=True)

    def _end(self, process: Process, ended: Exit) -> None:
        process.exit = ended
        self._watch_end(process)
        waiting, process.waiting = process.waiting, []
        for answer in waiting:
            if not answer.done() and not answer.get_loop().is_closed():
                answer.set_result(ended)


def _write(path: Path, text: str, *, append: bool) -> None:
    with path.open("a" if append else "w", encoding="utf-8") as log:
        log.write(text)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class SimRunning:
    """A process as a lead holds it."""

    def __init__(self, process: Process, life: Life) -> None:
        self.process, self._life = process, life
        started = process.exit is None or process.exit.started
        self.pid: int | None = process.number if started else None
        self.start_time: int | None = int(process.started_at * 100) if started else None

    async def wait(self) -> Exit:
        self._life.point("wait")
        if self.process.exit is not None:
            return self.process.exit
        answer: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self.process.waiting.append(answer)
        return await answer


class SimLauncher:
    """One lead's way to the keeper; every message takes a moment in which either may die."""

    def __init__(self, keeper: Keeper, life: Life) -> None:
        self._keeper, self._life = keeper, life

    async def _talk(self, place: str) -> None:
        self._life.effect(place)
        await asyncio.sleep(_TALK_SEC)
        self._life.effect(place)

    async def start(self, launch: Launch) -> SimRunning:
        await self._talk("start.before")
        process = self._keeper.start(launch)
        await self._talk("start.after")
        return SimRunning(process, self._life)

    async def prepare(self) -> None:
        """A simulated keeper is always ready."""

    def knows_all(self) -> bool:
        """The simulated ledger never loses a line."""
        return True

    async def find(self, key: str) -> SimRunning | None:
        await self._talk("find")
        process = self._keeper.processes.get(key)
        return None if process is None else SimRunning(process, self._life)

    def facts(self, running: Running) -> Facts | None:
        assert isinstance(running, SimRunning)
        process = running.process
        if not process.alive:
            return None
        used = 0.0 if process.ending.idle else self._keeper.clock.elapsed - process.started_at
        return Facts(1, used)

    async def end(self, key: str) -> None:
        await self._talk("end")
        process = self._keeper.processes.get(key)
        if process is not None and process in self._keeper.living():
            self._keeper.end(process, _TERMINATED)

    async def extend(self, key: str, sec: float) -> bool:
        await self._talk("extend")
        process = self._keeper.processes.get(key)
        if process is None or not process.alive or sec <= 0:
            return False
        self._keeper.extend(process, sec)
        return True

    async def end_others(self, keep: Collection[str]) -> int:
        await self._talk("end_others")
        others = [process for process in self._keeper.living() if process.launch.key not in keep]
        for process in others:
            self._keeper.end(process, _KILLED)
        return len(others)

    async def stop_all(self, grace_sec: float) -> None:
        await self._talk("stop_all.before")
        living = self._keeper.living()
        if living:
            await asyncio.sleep(min(grace_sec, _STOP_SEC))
            self._life.effect("stop_all.during")
        for process in living:
            self._keeper.end(process, _TERMINATED)
        self._life.effect("stop_all.after")

    def kill_all(self) -> None:
        self._life.effect("kill_all")
        for process in self._keeper.living():
            self._keeper.end(process, _KILLED)

    async def close(self) -> None:
        self._life.effect("close")

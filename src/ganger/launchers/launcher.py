"""The launcher of a run: a keeper starts and holds its programs, which keep running when this process dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TypeVar

from ganger.errors import DiskFullError, KeeperError
from ganger.launchers.connect import KeeperConnection, KeeperOptions, LineLost, reach, tell_in_passing
from ganger.launchers.frozen import kill_keeper, wake_keeper
from ganger.launchers.ledger import LOST
from ganger.launchers.messages import Message, exit_of, launch_message, maybe, number, part, text
from ganger.launchers.paths import House, is_held
from ganger.launchers.processes.facts import tree_facts
from ganger.launchers.processes.spawn import FREE_SOME_SPACE
from ganger.local.procfs import kill_where, mark_of, start_ticks
from ganger.ports.processes import Exit, Facts, Launch, Running

_TRIES = 5
_BYE_WITHIN_SEC = 2.0
_KILLED_WITHIN_SEC = 2.0
# On top of the grace: a keeper on a busy machine may have hundreds of trees to stop.
_ANSWERED_SEC = 10.0
_SWEEP_PAUSE_SEC = 0.01
_LOOKED_AT_EVERY_SEC = 5.0

_End = asyncio.Future["Exit | KeeperError"]
_T = TypeVar("_T")


class KeptRunning:
    """A program that the keeper holds, or one that has ended."""

    def __init__(self, end: _End, pid: int | None, start_time: int | None) -> None:
        self.pid = pid
        self.start_time = start_time
        self._end = end

    async def wait(self) -> Exit:
        """Waits until the end is recorded and the tree is gone; returns how it ended. Cancelling leaves the program
        running."""
        end = await asyncio.shield(self._end)
        if isinstance(end, KeeperError):
            raise end
        return end


class KeptLauncher:
    """The programs of the run in `folder`; their keys start with that folder. Everything runs in one event loop."""

    def __init__(
        self,
        folder: Path,
        *,
        grace_sec: float,
        python: str = sys.executable,
        options: KeeperOptions | None = None,
    ) -> None:
        self._house = House(folder.absolute())
        self._grace_sec = grace_sec
        self._options = options or KeeperOptions(python=python)
        self._line: KeeperConnection | None = None
        self._reaching = asyncio.Lock()
        self._running: dict[str, KeptRunning] = {}
        self._ends: dict[str, _End] = {}
        self._asking_again: asyncio.Task[None] | None = None
        self._look: asyncio.TimerHandle | None = None
        self._closed = False
        self._stopped = False
        self._knows_all: bool | None = None

    def knows_all(self) -> bool:
        """Whether the keeper knows every end: it was alive when this launcher started, or there was none before. Any
        other keeper has read a ledger that may lack its last lines."""
        if self._knows_all is None:
            self._knows_all = is_held(self._house.lock) or not self._house.ledger.exists()
        return self._knows_all

    async def prepare(self) -> None:
        await self._reach()

    async def start(self, launch: Launch) -> KeptRunning:
        """A repeated request is safe, so a request whose answer was lost is made again."""
        message = {"do": "start", "launch": launch_message(launch), "grace": self._grace_sec}
        found = await self._ask(message, lambda answer: self._found(launch.key, answer))
        if isinstance(found, DiskFullError):
            raise found
        if found is None:
            raise KeeperError(f"the keeper has neither started nor refused {launch.key}", hint="Run again.")
        return found

    async def find(self, key: str) -> KeptRunning | None:
        if self._line is None and not self._house.ledger.exists():
            return None
        found = await self._ask({"do": "find", "key": key}, lambda answer: self._found(key, answer))
        return found if isinstance(found, KeptRunning) else None

    def facts(self, running: Running) -> Facts | None:
        return None if running.pid is None else tree_facts(running.pid, running.start_time)

    async def end(self, key: str) -> None:
        if key in self._running:
            await self._ask({"do": "end", "key": key}, bool)

    async def extend(self, key: str, sec: float) -> bool:
        if key not in self._running or not (await self._reach()).can("extend"):
            return False
        message = {"do": "extend", "key": key, "sec": sec}
        return await self._ask(message, lambda answer: answer.get("extended") is True)

    async def end_others(self, keep: Collection[str]) -> int:
        if self._line is None and not self._house.ledger.exists():
            return await self._end_unkept(frozenset(keep))
        return await self._ask({"do": "end_others", "keep": list(keep)}, lambda answer: number(answer, "count"))

    async def stop_all(self, grace_sec: float) -> None:
        """SIGTERM, `grace_sec`, SIGKILL; returns when every tree is gone. A keeper that does not answer is continued,
        then killed: its guard kills what it had started."""
        self._look_no_more()
        for see_to in (wake_keeper, kill_keeper, wake_keeper):
            if self._line is None and not is_held(self._house.lock):
                return
            see_to(self._house)
            try:
                await asyncio.wait_for(self._ask({"do": "stop", "grace": grace_sec}, bool), grace_sec + _ANSWERED_SEC)
                self._stopped = True
                return
            except (TimeoutError, KeeperError):
                continue
        self.kill_all()
        raise KeeperError(
            f"the keeper of {self._house.folder} neither answers nor exits; its programs were killed",
            hint=f"Kill the process that holds {self._house.lock} or {self._house.guard_lock}.",
        )

    def kill_all(self) -> None:
        """Kills all through the keeper, which then records these ends as nobody's fault; this process kills what
        remains."""
        wake_keeper(self._house)
        tell_in_passing(self._house, {"do": "kill"})
        until = time.monotonic() + _KILLED_WITHIN_SEC
        while (left := self._alive()) and is_held(self._house.lock) and time.monotonic() < until:
            time.sleep(_SWEEP_PAUSE_SEC)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _alive(self) -> list[int]:
        known = [(running.pid, running.start_time) for running in self._running.values()]
        return [pid for pid, began in known if pid is not None and start_ticks(pid) == began]

    async def close(self) -> None:
        """Disconnects. An idle keeper exits at once; one with programs stays."""
        self._closed = True
        self._look_no_more()
        if self._asking_again is not None:
            self._asking_again.cancel()
        if self._line is not None:
            line = self._line
            line.say({"do": "bye"})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(line.is_over), _BYE_WITHIN_SEC)
            line.hang_up()
            if self._stopped and not line.is_over.done():
                # It has ended everything and was stopped before it could exit; no later lead would continue it.
                kill_keeper(self._house)

    async def _ask(self, message: Message, read: Callable[[Message], _T]) -> _T:
        for _ in range(_TRIES):
            line = await self._reach()
            try:
                return await line.ask(message, read)
            except LineLost:
                continue
        raise KeeperError(
            f"{_TRIES} keepers of {self._house.folder} died one after the other",
            hint=f"See {self._house.errors}.",
        )

    async def _reach(self) -> KeeperConnection:
        async with self._reaching:
            self.knows_all()
            if self._look is None:
                self._look_again()
            if self._line is None or self._line.is_over.done():
                try:
                    self._line = await reach(self._house, self._options, self._hear, self._lose)
                except OSError as problem:
                    where = f"{self._house.folder}: its keeper cannot be reached or started ({problem.strerror})"
                    raise KeeperError(
                        where, hint="Fix the folder's permissions or the disk, then run again."
                    ) from problem
            return self._line

    def _look_again(self) -> None:
        """Looks for a stopped keeper from time to time: it reports no end, enforces no limit and answers no request."""

        def look() -> None:
            wake_keeper(self._house)
            self._look_again()

        if not self._closed:
            self._look = asyncio.get_running_loop().call_later(_LOOKED_AT_EVERY_SEC, look)

    def _look_no_more(self) -> None:
        if self._look is not None:
            self._look.cancel()

    def _found(self, key: str, answer: Message) -> KeptRunning | DiskFullError | None:
        """Called before any later message, so no end can be missed."""
        if "full" in answer:
            return DiskFullError(text(answer, "full"), hint=FREE_SOME_SPACE)
        if "pid" not in answer:
            return None
        if key not in self._running:
            self._ends[key] = asyncio.get_running_loop().create_future()
            self._running[key] = KeptRunning(self._ends[key], maybe(answer, "pid"), maybe(answer, "ticks"))
        running = self._running[key]
        if "ended" in answer:
            self._settle(key, exit_of(part(answer, "ended")))
        return running

    def _hear(self, message: Message) -> None:
        if "fatal" in message:
            problem = KeeperError(text(message, "fatal"), hint=FREE_SOME_SPACE)
            for key in list(self._ends):
                self._settle(key, problem)
        elif "key" in message:
            self._settle(text(message, "key"), exit_of(part(message, "ended")))

    def _settle(self, key: str, end: Exit | KeeperError) -> None:
        self._running.pop(key, None)
        found = self._ends.pop(key, None)
        if found is not None and not found.done():
            found.set_result(end)

    def _lose(self, line: KeeperConnection) -> None:
        if self._line is line:
            self._line = None
        if self._ends and not self._closed and self._asking_again is None:
            self._asking_again = asyncio.get_running_loop().create_task(self._ask_again())

    async def _ask_again(self) -> None:
        """Asks the next keeper about the last one's programs: it has killed those that were still running."""
        try:
            for key in list(self._ends):
                found = await self._ask({"do": "find", "key": key}, partial(self._found, key))
                if found is None:
                    self._settle(key, LOST)
        except KeeperError as problem:
            for key in list(self._ends):
                self._settle(key, problem)
        finally:
            self._asking_again = None

    async def _end_unkept(self, keep: frozenset[str]) -> int:
        """Kills strays by their mark, which works even where no keeper ever ran."""
        ended: set[int] = set()
        while found := kill_where(lambda pid: self._is_unkept(mark_of(pid), keep)):
            ended |= found
            await asyncio.sleep(_SWEEP_PAUSE_SEC)
        return len(ended)

    def _is_unkept(self, mark: str | None, keep: frozenset[str]) -> bool:
        return mark is not None and mark not in keep and self._house.owns(mark)

"""The gate before the launcher: once a run is being stopped or has failed, nothing more is started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection
from typing import TypeVar

from ganger.core.model.run_state import RunState
from ganger.ports.processes import Facts, Launch, Launcher, Running

_GRACE_SEC = 2.0
_LOOK_SEC = 0.2
T = TypeVar("T")


class Stopped(Exception):
    """The run is being stopped; the attempt that meets this counts for nothing."""


class StopGuard:
    """A launcher that refuses to start anything once it is shut."""

    def __init__(self, launcher: Launcher, state: RunState, whole: StopGuard | None = None) -> None:
        """`whole`: the gate of the run, of which this one is the part for one attempt."""
        self._launcher, self._state, self._whole = launcher, state, whole
        self._is_shut = False
        self._started: list[str] = []

    def of_attempt(self) -> StopGuard:
        """Remembers what is started through it, so that all of it can be ended."""
        return StopGuard(self._launcher, self._state, self)

    @property
    def _shut(self) -> bool:
        return self._is_shut or (self._whole is not None and self._whole._shut)

    def shut(self) -> None:
        self._is_shut = True

    def check(self) -> None:
        if self._shut or self._state.lead.stopping:
            raise Stopped

    async def unless_stopped(self, call: Awaitable[T]) -> T:
        """For work that may take long and is safe to interrupt: a stop waits a moment for it and no longer."""
        work, since = asyncio.ensure_future(call), 0.0
        try:
            while not work.done() and since < _GRACE_SEC:
                await asyncio.wait({work}, timeout=_LOOK_SEC)
                since += _LOOK_SEC if self._shut or self._state.lead.stopping else 0.0
            if work.done():
                return work.result()
            raise Stopped
        finally:
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def prepare(self) -> None:
        await self._launcher.prepare()

    async def start(self, launch: Launch) -> Running:
        """What was starting while the stop was carried out is ended too."""
        self.check()
        if self._whole is not None:
            self._started.append(launch.key)
        running = await self._launcher.start(launch)
        if self._shut or self._state.lead.stopping:
            await self._launcher.stop_all(_GRACE_SEC)
        return running

    async def find(self, key: str) -> Running | None:
        return await self._launcher.find(key)

    def knows_all(self) -> bool:
        return self._launcher.knows_all()

    def facts(self, running: Running) -> Facts | None:
        return self._launcher.facts(running)

    async def end(self, key: str) -> None:
        await self._launcher.end(key)

    async def end_started(self) -> None:
        for key in self._started:
            await self._launcher.end(key)

    async def extend(self, key: str, sec: float) -> bool:
        return await self._launcher.extend(key, sec)

    async def end_others(self, keep: Collection[str]) -> int:
        return await self._launcher.end_others(keep)

    async def close(self) -> None:
        await self._launcher.close()

    async def stop_all(self, grace_sec: float) -> None:
        await self._launcher.stop_all(grace_sec)

    def kill_all(self) -> None:
        self._launcher.kill_all()

"""Polls one repository's CI for all who wait for it: one list of runs per look, however many wait.

A run's jobs are requested when the run's own state has changed, and again while it is over and they are not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field

from ganger.core.model.ci import ABSENT, RunFact, is_sha
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.engine.stop_guard import StopGuard, Stopped
from ganger.errors import ForgeError, ForgeLimited, ForgeUnreachable
from ganger.ports.clock import Clock
from ganger.ports.forge import Forge

Spawn = Callable[[Coroutine[object, object, None]], asyncio.Task[None]]
_SLOWER = 1.5
_LOOK_SEC = 0.5


@dataclass(slots=True)
class _Watched:
    """What is known of one commit. `looks` counts the answered looks since the first follower began to wait,
    `followers` those who still follow it."""

    runs: dict[str, RunFact]
    looks: int = 0
    version: int = 0
    followers: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    trouble: ForgeError | None = None


@dataclass(frozen=True, slots=True)
class CiLook:
    """What CI says of a commit after that many looks. `trouble` is why CI could not be asked."""

    runs: tuple[RunFact, ...]
    looks: int
    version: int
    trouble: ForgeError | None = None


class CiPoller:
    def __init__(self, outlet: DeliveryTarget, forge: Forge, clock: Clock, gate: StopGuard, spawn: Spawn) -> None:
        self.forge, self._outlet, self._clock, self._gate, self._spawn = forge, outlet, clock, gate, spawn
        self._watched: dict[str, _Watched] = {}
        self._work: asyncio.Task[None] | None = None
        self._nudged = asyncio.Event()
        self._stopped = False

    def begin(self, sha: str, known: Iterable[RunFact] = ()) -> None:
        """Follows this commit for one more caller, until that caller calls `forget`. `known` is what an earlier lead
        saw."""
        self._of(sha, known).followers += 1
        self._nudged.set()

    async def look(self, sha: str, known: Iterable[RunFact], *, after: int, wait_sec: float) -> CiLook:
        """News of this commit since version `after`, or what is known once `wait_sec` is over."""
        watched = self._of(sha, known)
        if self._work is None:
            self._work = self._spawn(self._follow())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_sec):
                while watched.version <= after and not self._stopped:
                    watched.news.clear()
                    await watched.news.wait()
        if self._stopped:
            raise Stopped
        return CiLook(tuple(watched.runs.values()), watched.looks, watched.version, watched.trouble)

    def _of(self, sha: str, known: Iterable[RunFact]) -> _Watched:
        assert is_sha(sha)
        if sha not in self._watched:
            self._watched[sha] = _Watched({run.id: run for run in known if run.sha == sha})
        return self._watched[sha]

    def forget(self, sha: str) -> None:
        """Call it once the commit is judged or replaced. Two tasks can share one commit: the last one ends the
        polling."""
        watched = self._watched[sha]
        watched.followers -= 1
        if watched.followers < 1:
            del self._watched[sha]

    def nudge(self) -> None:
        """A hint that there is news; it triggers a look and is not taken as a fact."""
        self._nudged.set()

    def stop(self) -> None:
        self._stopped = True
        self.nudge()
        for watched in self._watched.values():
            watched.news.set()

    async def _follow(self) -> None:
        pause = self._outlet.poll_sec
        try:
            while self._watched and not self._stopped:
                self._nudged.clear()
                changed, at_least = await self._gate.unless_stopped(self._once())
                pause = self._outlet.poll_sec if changed else min(pause * _SLOWER, self._outlet.poll_most_sec)
                # A nudge shortens the wait, but a flood of them brings no more looks than the pace allows.
                at_least = max(at_least, self._outlet.poll_sec)
                await self._rest(at_least)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause - at_least):
                        await self._nudged.wait()
        except Stopped:
            # `stop` informs those who wait here.
            pass
        finally:
            self._work = None

    async def _rest(self, sec: float) -> None:
        until = self._clock.monotonic() + sec
        while not self._stopped and (left := until - self._clock.monotonic()) > 0:
            await asyncio.sleep(min(left, _LOOK_SEC))

    async def _once(self) -> tuple[bool, float]:
        """Whether anything changed, and how long to wait before the next request."""
        before = dict(self._watched)
        try:
            rows = await self.forge.runs(sorted(before))
            changed = False
            for sha, watched in before.items():
                mine = [row for row in rows if row.sha == sha]
                changed = await self._take(watched, mine, alone=len(before) == 1) or changed
        except ForgeLimited as limited:
            # It will answer later, so this is no trouble, but no look was answered yet.
            self._tell(before, None, answered=False)
            return False, max(0.0, limited.until - self._clock.now())
        except ForgeUnreachable as unreachable:
            self._tell(before, unreachable)
            return False, 0.0
        except ForgeError as refused:
            self._tell(before, refused, wake=True)
            return False, self._outlet.poll_most_sec
        self._tell(before, None)
        return changed, 0.0

    async def _take(self, watched: _Watched, rows: list[RunFact], *, alone: bool) -> bool:
        changed = False
        for row in rows:
            known = watched.runs.get(row.id)
            if known is not None and known.asked == row.state:
                continue
            run = await self.forge.jobs(row)
            if known is None or (run.jobs, run.state) != (known.jobs, known.state):
                changed = True
            watched.runs[row.id] = run
        if alone:
            # The list was of this commit alone, so a run that is missing in it may have been deleted.
            for name in watched.runs.keys() - {row.id for row in rows}:
                if (await self.forge.jobs(watched.runs[name])).reason == ABSENT:
                    del watched.runs[name]
                    changed = True
        if changed:
            watched.version += 1
        return changed

    def _tell(
        self,
        watched: dict[str, _Watched],
        trouble: ForgeError | None,
        *,
        answered: bool | None = None,
        wake: bool = False,
    ) -> None:
        told = trouble is None if answered is None else answered
        for one in watched.values():
            first = not one.looks and told
            one.looks += told
            one.trouble = trouble
            if first or wake:
                one.version += 1
            one.news.set()

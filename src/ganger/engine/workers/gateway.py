"""Everything by which workers reach the lead and by which it monitors them: opened and closed with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator

from ganger.contracts.worker import Next
from ganger.core import events as ev
from ganger.engine.resources.live_attempts import LiveAttempt, LiveAttempts
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.stop_guard import StopGuard
from ganger.engine.workers.claims import Claim, ClaimQueue
from ganger.engine.workers.file_protocol import DeskFiles
from ganger.engine.workers.monitor import WorkerMonitor
from ganger.engine.workers.protocol import WorkerProtocol, gone
from ganger.ports.endpoint import Reply
from ganger.ports.processes import Exit

_TURNS, _TURN_SEC = 10, 0.01


class WorkerGateway:
    def __init__(self, tools: RunResources, gate: StopGuard, claim: Claim) -> None:
        self.posts: LiveAttempts = tools.posts
        self.vigil = WorkerMonitor(tools, gate, self.posts, tools.health)
        self._tools = tools
        self._desk: WorkerProtocol | None = None
        self._pulling: ClaimQueue | None = None
        self._files: DeskFiles | None = None
        self._claim = claim

    async def open(self) -> None:
        """Only if there is a way to reach it; a lead without one still monitors."""
        endpoint, badges = self._tools.endpoint, self._tools.badges
        if endpoint is None or badges is None:
            return
        self._pulling = ClaimQueue(self._tools, badges, self.posts, self._tools.health, self._claim)
        self._desk = WorkerProtocol(self._tools, badges, self.posts, self._tools.health, self._next)
        self._files = DeskFiles(self._tools, self._desk, badges, self.posts)
        self.posts.take_rest = self._take_rest
        await endpoint.open(self._desk.handle)

    async def _take_rest(self, post: LiveAttempt, ended: Exit) -> None:
        """H07: what a worker said right before its end counts like what it said before."""
        assert self._desk is not None and self._files is not None
        if ended.code != 0:
            # A killed worker's request may still be in the socket: its reader gets some turns to read it.
            for _ in range(_TURNS):
                await asyncio.sleep(_TURN_SEC)
        await self._files.take_all(post)
        await self._desk.close(post)

    async def _next(self, said: Next) -> Reply:
        assert self._pulling is not None
        return await self._pulling.ask(said)

    def duties(self) -> Iterator[Coroutine[object, object, None]]:
        yield self.vigil.run()
        if self._pulling is not None and self._files is not None:
            yield self._pulling.run()
            yield self._files.run()

    async def act_on(self, event: ev.Event) -> None:
        """A person wants a worker ended, or gives it more time; that is recorded already."""
        if isinstance(event, ev.WorkerEnding):
            await self.vigil.carry_out(event)
        elif isinstance(event, ev.LimitExtended):
            await self.vigil.prolong(event)

    def send_away(self) -> None:
        """The run is being stopped: sessions that are not Ganger's own are not waited for."""
        for post in self.posts:
            post.finish(gone())
        if self._pulling is not None:
            self._pulling.send_away()

    async def close(self) -> None:
        if self._pulling is not None:
            self._pulling.send_away()
        if self._tools.endpoint is not None:
            await self._tools.endpoint.close()

"""Sessions that someone else opened and that ask for work: which wait, which gets what, and what they are told."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ganger.contracts.worker import Next
from ganger.core import events as ev
from ganger.core.model.task_state import TaskState
from ganger.core.names import desk_folder
from ganger.core.scheduling.health import HealthPolicy
from ganger.core.scheduling.windows import offer
from ganger.core.vocabulary import TaskStatus, WorkerVerdict
from ganger.engine.resources.live_attempts import LiveAttempts
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.resources.worker_tokens import WorkerTokens
from ganger.engine.workers.briefs import sections
from ganger.engine.workers.protocol import gone
from ganger.ports.endpoint import Reply

_MOST_WAITING = 1_000
_READY_WITHIN_SEC = 60.0
_ASK_AGAIN_SEC = 5.0

Claim = Callable[[str, Next], Awaitable[bool]]


@dataclass(slots=True, eq=False)
class Waiter:
    """A session that asked. `claimed`: the task it got was free before. `gone`: it no longer listens."""

    said: Next
    got: asyncio.Future[str]
    claimed: bool = False
    gone: bool = False


class ClaimQueue:
    """First come, first served. A claim is recorded before its session learns of it."""

    def __init__(
        self, tools: RunResources, badges: WorkerTokens, posts: LiveAttempts, health: HealthPolicy, claim: Claim
    ) -> None:
        self._tools, self._badges, self._posts, self._health = tools, badges, posts, health
        self._journal, self._state = tools.journal, tools.journal.state
        self._claim = claim
        self._waiting: dict[Waiter, None] = {}
        self._serving = asyncio.Lock()
        self._telling: Counter[str] = Counter()
        self._told: set[str] = set()
        self._giving_back: set[asyncio.Task[None]] = set()
        self._over = False

    async def run(self) -> None:
        """Serves the waiting sessions, each time something has changed."""
        while True:
            await self._journal.changed()
            if self._waiting:
                await self._serve()

    async def ask(self, said: Next) -> Reply:
        held = self._held_by(said.worker)
        if held:
            reply = await self._handed(held, said.worker)
            return self._again(reply, held, said)
        if self._state.finished or self._state.lead.stopping or self._state.lead.draining:
            return self._nothing()
        if len(self._waiting) >= _MOST_WAITING:
            return Reply(503, {"ok": False, "code": "LEAD_BUSY", "message": "too many wait already", "hint": "later"})
        waiter = Waiter(said, asyncio.get_running_loop().create_future())
        try:
            task = await self._wait(waiter)
            return await self._handed(task, said.worker) if task else self._nothing()
        finally:
            waiter.gone = True
            self._give_back_untold(waiter)

    async def _wait(self, waiter: Waiter) -> str:
        """The task it got; empty if none became free in time."""
        self._waiting[waiter] = None
        try:
            # A claim that is being recorded is recorded, even if its session leaves meanwhile.
            await asyncio.shield(asyncio.ensure_future(self._serve()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(waiter.said.wait_sec):
                    await asyncio.shield(waiter.got)
        finally:
            self._waiting.pop(waiter, None)
        return waiter.got.result() if waiter.got.done() else ""

    def _give_back_untold(self, waiter: Waiter) -> None:
        """A task that its session never learned of is free again at once, and nothing is charged."""
        if not (waiter.claimed and waiter.gone) or self._over:
            return
        name = waiter.got.result()
        task = self._state.tasks[name]
        telling = self._telling[name] or task.attempt.token in self._told
        if self._is_held(task, waiter.said.worker) and not telling:
            giving = asyncio.ensure_future(self._give_back(name, task.attempt.token, task.attempts))
            self._giving_back.add(giving)
            giving.add_done_callback(self._giving_back.discard)

    async def _give_back(self, name: str, token: str, attempt: int) -> None:
        if self._journal.is_open(name, token):
            why = "the session disconnected before it received the task"
            await self._journal.report(name, token, ev.WorkerEnding(name, attempt, WorkerVerdict.UNTOLD, why))
            post = self._posts.get(name)
            if post is not None and post.fence == token:
                post.finish(gone())

    async def _serve(self) -> None:
        """One look per kind of request, not one per waiter."""
        async with self._serving:
            hopeless: set[frozenset[str] | None] = set()
            for waiter in list(self._waiting):
                roles = None if waiter.said.roles is None else frozenset(waiter.said.roles)
                if waiter not in self._waiting or waiter.got.done() or roles in hopeless:
                    continue
                await self._journal.idle()
                if self._state.finished or self._state.lead.stopping or self._state.lead.draining:
                    self._settle(waiter, "")
                    continue
                held = self._held_by(waiter.said.worker)
                task = held or offer(self._state, self._tools.clock.now(), roles)
                if task is None:
                    hopeless.add(roles)
                elif held or await self._claim(task, waiter.said):
                    self._settle(waiter, task)
                    waiter.claimed = not held
                    self._give_back_untold(waiter)

    def _settle(self, waiter: Waiter, task: str) -> None:
        self._waiting.pop(waiter, None)
        if not waiter.got.done():
            waiter.got.set_result(task)

    def send_away(self) -> None:
        """The lead ends: waiting sessions ask the next one."""
        self._over = True
        for waiter in list(self._waiting):
            self._settle(waiter, "")

    def _held_by(self, worker: str) -> str:
        """W03: one worker has one task at a time."""
        for name in self._state.index.pulled:
            now = self._state.tasks[name].worker
            if now is not None and now.name == worker and not now.report and not now.verdict:
                return name
        return ""

    async def _handed(self, name: str, worker: str) -> Reply:
        """Waits until its workspace and prompt are ready."""
        self._telling[name] += 1
        try:
            return await self._told_when_ready(name, worker)
        finally:
            self._telling[name] -= 1

    async def _told_when_ready(self, name: str, worker: str) -> Reply:
        deadline = self._tools.clock.monotonic() + _READY_WITHIN_SEC
        while self._is_held(self._state.tasks[name], worker):
            post, left = self._posts.get(name), deadline - self._tools.clock.monotonic()
            if post is not None and post.ready is not None and post.ready.done():
                self._told.add(post.fence)
                return self._brief(name, str(post.folder), post.ready.result(), post.time_limit_sec)
            if left <= 0:
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, 0.2)):
                    await self._journal.changed()
        return self._nothing("the task could not be prepared; ganger why says more")

    def _again(self, reply: Reply, name: str, said: Next) -> Reply:
        """A session that gets a task it already holds must know: it may be another session of the same name."""
        worker = self._state.tasks[name].worker
        if worker is None or not reply.body.get("task") or (said.id and worker.claim == said.id):
            return reply
        return Reply(reply.status, {**reply.body, "again": True, "since": worker.since})

    def _is_held(self, task: TaskState, worker: str) -> bool:
        return task.status is TaskStatus.RUNNING and task.worker is not None and task.worker.name == worker

    def _brief(self, name: str, workspace: str, prompt: str, time_limit_sec: float | None) -> Reply:
        task, tools = self._state.tasks[name], self._tools
        endpoint = tools.endpoint
        return Reply(
            200,
            {
                "ok": True,
                "task": {
                    "id": name,
                    "attempt": task.attempts,
                    "role": self._state.specs[name].role,
                    "prompt": prompt,
                    "workspace": workspace,
                    "timeout_sec": time_limit_sec,
                    "sections": sections(tools, name),
                },
                "run_id": self._state.run_id,
                "token": self._badges.worker(task.attempt.token),
                "report": str(endpoint.socket) if endpoint is not None else "",
                "url": endpoint.url if endpoint is not None else "",
                "desk": str(tools.folder.path / desk_folder(name, task.attempts)),
                "heartbeat_sec": self._health.heartbeat_sec,
                "lease_sec": self._health.lease_sec,
                "worker": task.worker.name if task.worker is not None else "",
            },
        )

    def _nothing(self, why: str = "") -> Reply:
        state = self._state
        over = state.finished
        if not why:
            why = (
                "the run is over" if over else "the run is ending" if state.lead.stopping or state.lead.draining else ""
            )
        why = why or ("the run is paused" if state.lead.paused else "no task can start at this moment")
        return Reply(200, {"ok": True, "task": None, "over": over, "why": why, "retry_sec": _ASK_AGAIN_SEC})

"""Hosts that do not answer or refuse the token: tasks that need one wait here, and one call at a time checks it.

What is known of them is recorded, so a new lead and every screen know it too. A lead that dies at any point does no
harm: a host that has recovered answers the next lead's first try.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ganger.core import events as ev
from ganger.core.failures.retries import backoff_sec
from ganger.core.state.hosts import AWAY, DENIED, after_answer, asking, is_away, is_patience_over, not_waited_for, told
from ganger.core.vocabulary import BlockReason
from ganger.engine.attempt_outcome import Waits
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.stop_guard import StopGuard, Stopped
from ganger.errors import ForgeDenied, GangerError, HostError

Spawn = Callable[[Coroutine[object, object, None]], asyncio.Task[None]]
Probe = Callable[[], Awaitable[object]]
_LOOK_SEC = 0.2
# Trouble that returns within this time is the same trouble.
_QUIET_SEC = 60.0


@dataclass(frozen=True, slots=True)
class HostPatience:
    """How long a task waits: after `ask_sec` a person is asked, after `most_sec` the task is parked until the host is
    back."""

    task: str
    check: Callable[[], None]
    branch: str
    ask_sec: float
    most_sec: float


class HostWatch:
    """Shared by all repositories of a run."""

    def __init__(self, tools: RunResources, gate: StopGuard, spawn: Spawn) -> None:
        self._tools, self._gate, self._spawn = tools, gate, spawn
        self._journal, self._clock, self._state = tools.journal, tools.clock, tools.journal.state
        self._probes: dict[tuple[str, str], tuple[Probe, float]] = {}
        self._at_work: set[tuple[str, str]] = set()
        self._tries: dict[str, int] = {}
        self._last: dict[str, float] = {}
        self._stopped = False
        # What follows from the state is computed and recorded in one step: two at once would record it twice.
        self._telling = asyncio.Lock()

    async def recover(self, outlets: Iterable[DeliveryTarget]) -> None:
        """Settings may have changed since an earlier lead met trouble, and the tasks that waited may be finished."""
        used = [host for outlet in outlets for host in outlet.hosts]
        await self._tell(lambda: not_waited_for(self._state, used))

    def stop(self) -> None:
        self._stopped = True

    async def while_answered(
        self, outlet: DeliveryTarget, of: HostPatience, work: Callable[[], Awaitable[None]]
    ) -> None:
        """Does the work again from its ledger each time its host is back. Raises Waits at the time limit."""
        began: float | None = None
        while True:
            began = await self._until_back(outlet, of, began)
            tried = self._clock.monotonic()
            try:
                return await work()
            except HostError as trouble:
                if not trouble.host or trouble.way not in ("git", "api"):
                    raise
                if self._clock.monotonic() - tried > _QUIET_SEC:
                    began = None
                await self._met(outlet, of, trouble)

    async def _met(self, outlet: DeliveryTarget, of: HostPatience, trouble: HostError) -> None:
        """A task met this trouble; another task may have reported it already."""
        self._know(outlet, of.branch)
        async with self._telling:
            known = self._state.hosts.get(trouble.host)
            if known is None or trouble.way not in known.ways:
                await self._note(trouble)
        if isinstance(trouble, ForgeDenied):
            await self._ask(trouble.host, trouble.hint)

    def _know(self, outlet: DeliveryTarget, branch: str) -> None:
        """How to check whether each host of this outlet is back."""
        remote, forge, most = outlet.remote, outlet.forge, max(outlet.poll_most_sec, _LOOK_SEC)
        if remote.host:
            self._probes.setdefault((remote.host, "git"), (lambda: remote.head(branch), most))
        if outlet.fork is not None and outlet.fork.host:
            self._probes.setdefault((outlet.fork.host, "git"), (partial(outlet.fork.head, branch), most))
        if forge is not None and forge.host:
            self._probes.setdefault((forge.host, "api"), (forge.knock, most))

    def _pause_of(self, host: str, way: str) -> float:
        """Longer with each failed try, even where the host seemed to be back in between."""
        now = self._clock.monotonic()
        quiet = now - self._last.get(host, now) > 2 * _QUIET_SEC
        self._tries[host] = 0 if quiet else self._tries.get(host, -1) + 1
        self._last[host] = now
        known = self._probes.get((host, way))
        return min(backoff_sec(host, self._tries[host]), known[1] if known is not None else _QUIET_SEC)

    async def _note(self, trouble: HostError) -> None:
        host, kind = trouble.host, DENIED if isinstance(trouble, ForgeDenied) else AWAY
        known = self._state.hosts.get(host)
        tries = known.tries + 1 if known is not None else 1
        why = trouble.why or trouble.message[:160]
        next_at = round(self._clock.now() + self._pause_of(host, trouble.way), 3)
        await self._journal.record(ev.HostAway(host, trouble.way, kind, why, next_at, tries))

    async def _ask(self, host: str, hint: str = "") -> None:
        await self._tell(lambda: asking(self._state, host, hint))

    async def _tell(self, found: Callable[[], Sequence[ev.Event]]) -> None:
        async with self._telling:
            await self._journal.idle()
            if events := found():
                await self._journal.record(*events)

    # --- waiting ----------------------------------------------------------------------------------------------------

    async def _until_back(self, outlet: DeliveryTarget, of: HostPatience, began: float | None) -> float | None:
        """Since when it waits for trouble that is ongoing or ended only recently; None where there is none."""
        self._know(outlet, of.branch)
        while host := is_away(self._state, outlet.hosts):
            began = self._clock.monotonic() if began is None else began
            await self._look_after(host)
            trouble = self._state.hosts.get(host)
            if trouble is None:
                continue
            if of.task not in trouble.waiting:
                await self._journal.record(ev.HostAwaited(host, of.task))
                continue
            if is_patience_over(trouble, self._clock.now(), of.ask_sec):
                await self._ask(host)
            most = of.ask_sec if trouble.kind == DENIED else of.most_sec
            if self._clock.monotonic() - began >= most:
                await self._ask(host)
                raise Waits(BlockReason.EXTERNAL, f"{told(host, trouble)}; it continues when that is over")
            of.check()
            await asyncio.sleep(_LOOK_SEC)
        return began

    async def _look_after(self, host: str) -> None:
        """Checks whether it is back, by every kind of call that failed."""
        for way in self._state.hosts[host].ways:
            key = (host, way)
            if key not in self._probes:
                # An earlier lead used this kind of call, and none does now.
                await self._back(host, way)
            elif key not in self._at_work and not self._stopped:
                self._at_work.add(key)
                self._spawn(self._probe(*key))

    async def _probe(self, host: str, way: str) -> None:
        """Waits until this kind of call succeeds."""
        try:
            while not self._over():
                known = self._state.hosts.get(host)
                if known is None or way not in known.ways:
                    return
                if self._clock.now() < known.next_at:
                    await asyncio.sleep(_LOOK_SEC)
                    continue
                await self._try(host, way)
        except Stopped:
            # Each task that waits learns of it at its own gate.
            pass
        finally:
            self._at_work.discard((host, way))

    async def _try(self, host: str, way: str) -> None:
        try:
            await self._gate.unless_stopped(self._probes[host, way][0]())
        except HostError as trouble:
            if trouble.host == host:
                async with self._telling:
                    await self._note(trouble)
                if isinstance(trouble, ForgeDenied):
                    await self._ask(host, trouble.hint)
                return
        except GangerError:
            # Any answer at all shows that the host answers.
            pass
        if not self._over():
            await self._back(host, way)

    async def _back(self, host: str, way: str) -> None:
        await self._tell(lambda: after_answer(self._state, host, way))

    def _over(self) -> bool:
        return self._stopped or self._state.lead.stopping or self._state.finished

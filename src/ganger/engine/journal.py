"""The journal: every event is made durable, then applied, then shown. Events of one tick share a commit."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Generator, Sequence
from dataclasses import replace

from ganger.core.events import (
    AttemptCheckpointed,
    AttemptInterrupted,
    Event,
    LeadStarted,
    QuestionAsked,
    Reconciled,
    RunStarted,
    TaskRequeued,
    TaskSettled,
)
from ganger.core.masking import NOTHING, Masker
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.state.snapshot import decode_state, encode_state
from ganger.core.times import stamp
from ganger.core.vocabulary import TaskStatus
from ganger.ports.clock import Clock
from ganger.ports.store import Entry, Listener, Store

_MENTIONED_WITHIN_SEC = 0.05
# A snapshot costs time in proportion to the tasks, so it waits until enough events make it worthwhile.
_SNAPSHOT_EVERY_EVENTS = 5000
_SNAPSHOT_EVENTS_PER_TASK = 0.5


_OPERATORS = (RunStarted, LeadStarted, Reconciled)
# After these an attempt can report no more.
_CLOSING = (TaskSettled, TaskRequeued, AttemptInterrupted, AttemptCheckpointed)


class _Commit:
    """Await it to know that the events are durable. Cancelling one wait does not cancel the commit for the others."""

    def __init__(self, work: asyncio.Task[None]) -> None:
        self._work = work

    def __await__(self) -> Generator[object, None, None]:
        return asyncio.shield(self._work).__await__()


class Journal:
    """Single-threaded: `record` may be called from any coroutine of the lead's loop."""

    def __init__(self, store: Store, state: RunState, clock: Clock, masker: Masker = NOTHING) -> None:
        """`masker` removes from every event what was passed to agents and checks: no record holds it."""
        self.store, self.state, self.clock, self.masker = store, state, clock, masker
        self.listeners: list[Listener] = []
        self.error: BaseException | None = None
        self._queue: list[Entry] = []
        self._snapshot_seq = 0
        self._questions = 0
        self._later: asyncio.TimerHandle | None = None
        self._tick: asyncio.Task[None] | None = None
        # One commit at a time; what is recorded meanwhile goes into the next one.
        self._committing = asyncio.Lock()
        self._in_flight: list[Entry] = []
        self._changed = asyncio.Event()

    def record(self, *events: Event) -> Awaitable[None]:
        """Queues events for this tick's commit. Await the answer before relying on them."""
        return self.report("", "", *events)

    def report(self, task: str, token: str, *events: Event) -> Awaitable[None]:
        """Queues what an attempt reports; what it reports about its own task counts only while its token is current."""
        self._enqueue(task, token, events)
        return _Commit(self._begin_tick())

    def mention(self, task: str, token: str, *events: Event) -> None:
        """Like `report`, for events that nothing depends on: written with the next commit, a moment later at most."""
        self._enqueue(task, token, events)
        if self._tick is None and self._later is None:
            self._later = asyncio.get_running_loop().call_later(_MENTIONED_WITHIN_SEC, self._begin_tick)

    def _enqueue(self, task: str, token: str, events: Sequence[Event]) -> None:
        at = stamp(self.clock.now())
        for given in events:
            # What a run consists of is the operator's own text, and can be long.
            event = given if isinstance(given, _OPERATORS) else self.masker.event(given)
            if isinstance(event, QuestionAsked):
                self._queue.append(Entry(at, replace(event, question=self._next_question())))
            else:
                own = token if token and getattr(event, "task", "") == task else ""
                self._queue.append(Entry(at, event, own))

    def is_open(self, task: str, token: str) -> bool:
        """Whether the attempt with this token is current, also after everything that is not applied yet."""
        known = self.state.tasks.get(task)
        if known is None or known.attempt.token != token or known.status is not TaskStatus.RUNNING:
            return False
        pending = (*self._in_flight, *self._queue)
        return not any(isinstance(e.event, _CLOSING) and e.event.task == task for e in pending)

    def _begin_tick(self) -> asyncio.Task[None]:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._tick is None:
            self._tick = asyncio.get_running_loop().create_task(self._commit())
            self._tick.add_done_callback(self._committed)
        return self._tick

    def _next_question(self) -> str:
        """Named here, because several attempts may ask in the same tick."""
        self._questions = max(self._questions, self.state.inbox.asked) + 1
        return f"q-{self._questions}"

    async def _commit(self) -> None:
        async with self._committing:
            self._in_flight, self._queue, self._tick = self._queue, [], None
            try:
                await self._append(self._in_flight)
            except BaseException as problem:
                # Known before the next commit begins: nothing may be recorded after what was lost.
                self.error = self.error or problem
                raise
            finally:
                self._in_flight = []

    async def _append(self, batch: Sequence[Entry]) -> None:
        if self.error is not None:
            raise self.error
        recorded = await self.store.append(batch)
        for entry in recorded:
            apply(self.state, entry)
        for entry in recorded:
            for listener in self.listeners:
                listener(entry)

    def _committed(self, tick: asyncio.Task[None]) -> None:
        problem = asyncio.CancelledError() if tick.cancelled() else tick.exception()
        self.error = self.error or problem
        self._changed.set()

    async def changed(self) -> None:
        """Returns after the next commit; raises if one has failed: nothing is reliable then."""
        if self.error is None:
            self._changed.clear()
            await self._changed.wait()
        if self.error is not None:
            raise self.error

    def wake(self) -> None:
        """Makes `changed` return although nothing was recorded."""
        self._changed.set()

    async def settle(self) -> None:
        """Waits for what was recorded without being awaited."""
        if self._tick is not None or self._queue:
            await _Commit(self._begin_tick())
        elif self._committing.locked():
            async with self._committing:
                if self.error is not None:
                    raise self.error

    @property
    def is_idle(self) -> bool:
        """Whether everything recorded is applied: only then may the state be used for a decision."""
        return self._tick is None and not self._committing.locked()

    async def idle(self) -> None:
        while not self.is_idle:
            await self.settle()

    async def replay(self) -> int:
        """Brings the state up to the store's end, starting at the newest snapshot; returns how many events it read."""
        if self.state.log.last_seq == 0 and (kept := await self.store.snapshot()) is not None:
            known = decode_state(kept[1])
            if known is not None and known.log.last_seq == kept[0]:
                self.state, self._snapshot_seq = known, kept[0]
                # The state lives as long as this process; collecting garbage in it would cost time again and again.
                gc.freeze()
        count = 0
        async for entry in self.store.read(self.state.log.last_seq):
            apply(self.state, entry)
            count += 1
        return count

    async def save_snapshot(self, *, ending: bool = False) -> None:
        """Makes the next start cheap, if enough has happened since the last; an ended run always has a snapshot."""
        per_task = int(_SNAPSHOT_EVENTS_PER_TASK * len(self.state.tasks))
        worth = per_task // 10 if ending else max(_SNAPSHOT_EVERY_EVENTS, per_task)
        since = self.state.log.last_seq - self._snapshot_seq
        if self.error is None and since > 0 and (since >= worth or (ending and not self._snapshot_seq)):
            seq, text = self.state.log.last_seq, encode_state(self.state)
            await self.store.save_snapshot(seq, text)
            self._snapshot_seq = seq

"""The journal: durable before applied, one commit per tick, and no failure goes unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from checker.memory_store import MemoryStores
from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.engine.journal import Journal
from ganger.errors import StoreError
from ganger.ports.store import Entry
from ganger.stores.on_thread import OnThread


class Ticks:
    def now(self) -> float:
        return 1_700_000_000.0

    def monotonic(self) -> float:
        return 0.0


class Counting(OnThread):
    """Counts commits, and can be told to fail from one of them on."""

    def __init__(self, fails_at: int = 10**9) -> None:
        super().__init__(MemoryStores(), Path("run"))
        self.commits, self.fails_at = 0, fails_at

    async def append(self, batch: Sequence[Entry]) -> list[ev.Recorded]:
        self.commits += 1
        if self.commits >= self.fails_at:
            raise StoreError("the disk is gone", hint="find it")
        return await super().append(batch)

    async def events(self, since: int = 0) -> list[ev.Recorded]:
        return [recorded async for recorded in self.read(since)]


BEGIN = ev.RunStarted("r", "d", Policy(), (TaskSpec("a"),))


def played(play: Callable[[Journal], Awaitable[None]], store: Counting | None = None) -> Journal:
    async def run() -> Journal:
        kept = store or Counting()
        journal = Journal(kept, RunState(), Ticks())
        await asyncio.wait_for(play(journal), 10)
        await kept.close()
        return journal

    return asyncio.run(run())


def test_events_of_one_tick_share_a_commit_in_the_order_they_were_recorded() -> None:
    """T19: group commit."""
    store = Counting()

    async def play(journal: Journal) -> None:
        journal.record(BEGIN)
        await asyncio.gather(*(journal.record(ev.StopRequested(str(n))) for n in range(5)))
        assert store.commits == 1
        await journal.record(ev.StopRequested("next"))
        assert store.commits == 2
        found = await store.events(1)
        assert [r.event.why for r in found if isinstance(r.event, ev.StopRequested)] == [*"01234", "next"]

    played(play, store)


def test_an_awaited_event_is_stored_applied_and_shown() -> None:
    """T19: in that order."""
    shown: list[int] = []

    async def play(journal: Journal) -> None:
        journal.listeners.append(lambda entry: shown.append(len(journal.state.specs)))
        await journal.record(BEGIN)
        assert [r.event async for r in journal.store.read()] == [BEGIN] and shown == [1]

    played(play)


def test_whoever_is_shown_an_event_sees_the_state_after_its_whole_commit() -> None:
    """T19: what shares a transaction is never seen in half."""
    seen: list[int] = []

    async def play(journal: Journal) -> None:
        journal.listeners.append(lambda entry: seen.append(journal.state.log.last_seq))
        await journal.record(BEGIN, ev.LeadStarted(1, policy=Policy()), ev.StopRequested("x"))

    played(play)
    assert seen == [3, 3, 3]


def test_a_store_that_fails_fails_everybody_who_waits_and_whoever_comes_later() -> None:
    """T19: nothing is applied that is not recorded."""

    async def play(journal: Journal) -> None:
        answers = await asyncio.gather(*(journal.record(BEGIN) for _ in range(2)), return_exceptions=True)
        assert all(isinstance(answer, StoreError) for answer in answers)
        for wait in (journal.changed(), journal.record(BEGIN)):
            with pytest.raises(StoreError, match="the disk is gone"):
                await wait
        assert journal.state.specs == {}

    played(play, Counting(fails_at=1))


def test_a_failure_nobody_waits_for_reaches_the_loop() -> None:
    """T19: `changed` raises what an unawaited record met."""

    async def play(journal: Journal) -> None:
        journal.record(BEGIN)
        with pytest.raises(StoreError):
            await journal.changed()

    played(play, Counting(fails_at=1))


def test_a_listener_that_breaks_ends_the_run_instead_of_hanging_it() -> None:
    """T19: as when the reader of a pipe goes away."""

    def breaks(_: ev.Recorded) -> None:
        raise BrokenPipeError

    async def play(journal: Journal) -> None:
        journal.listeners.append(breaks)
        with pytest.raises(BrokenPipeError):
            await journal.record(BEGIN)
        with pytest.raises(BrokenPipeError):
            await journal.changed()

    played(play)


def test_who_stops_waiting_takes_the_commit_from_nobody() -> None:
    """T23: a cancelled attempt leaves the others' events alone."""

    async def play(journal: Journal) -> None:
        async def wait() -> None:
            await journal.record(BEGIN)

        leaver, stayer = (asyncio.get_running_loop().create_task(wait()) for _ in range(2))
        await asyncio.sleep(0)
        leaver.cancel()
        await stayer
        assert journal.state.specs

    played(play)


def test_changed_returns_after_the_next_commit_or_a_wake() -> None:
    """T19: the lead sleeps until something happened."""

    async def play(journal: Journal) -> None:
        waiting = asyncio.get_running_loop().create_task(journal.changed())
        await asyncio.sleep(0)
        assert not waiting.done()
        await journal.record(BEGIN)
        await waiting
        waiting = asyncio.get_running_loop().create_task(journal.changed())
        await asyncio.sleep(0)
        journal.wake()
        await waiting

    played(play)


def test_replay_brings_a_new_state_to_the_stores_end() -> None:
    """T20: and a second replay has nothing to do."""

    async def play(journal: Journal) -> None:
        await journal.record(BEGIN, ev.LeadStarted(1, policy=Policy()), ev.StopRequested("x"))
        again = Journal(journal.store, RunState(), Ticks())
        assert await again.replay() == 3 and again.state == journal.state and await again.replay() == 0

    played(play)


class Slow(Counting):
    """Each commit takes until it is allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = asyncio.Event()

    async def append(self, batch: Sequence[Entry]) -> list[ev.Recorded]:
        await self.allowed.wait()
        return await super().append(batch)


def test_what_is_recorded_during_a_commit_shares_the_next_one() -> None:
    """T19: the order is kept, and the state is used for a decision only when both are applied."""
    store = Slow()

    async def play(journal: Journal) -> None:
        journal.record(BEGIN)
        await asyncio.sleep(0)
        for word in "ab":
            journal.record(ev.StopRequested(word))
            await asyncio.sleep(0)
        idle = asyncio.get_running_loop().create_task(journal.idle())
        await asyncio.sleep(0)
        assert journal.state.log.last_seq == 0 and not idle.done()
        store.allowed.set()
        await idle
        assert journal.state.log.last_seq == 3 and store.commits == 2

    played(play, store)


def test_an_attempt_whose_end_is_being_written_is_not_open() -> None:
    """T19: nothing it reports meanwhile would be accepted."""
    store = Slow()

    async def play(journal: Journal) -> None:
        store.allowed.set()
        await journal.record(BEGIN, ev.AttemptStarted("a", 1, "t", "agent", "", "log"))
        assert journal.is_open("a", "t")
        store.allowed.clear()
        ended = journal.report("a", "t", ev.TaskRequeued("a", ""))
        for _ in range(2):
            assert not journal.is_open("a", "t")
            await asyncio.sleep(0)
        store.allowed.set()
        await ended

    played(play, store)


class FailsLate(Counting):
    """The second commit fails, and a third one waits behind it."""

    async def append(self, batch: Sequence[Entry]) -> list[ev.Recorded]:
        self.commits += 1
        await asyncio.sleep(0.01)
        if self.commits == 2:
            raise StoreError("the disk is gone", hint="find it")
        return await OnThread.append(self, batch)


def test_nothing_is_recorded_after_a_commit_that_failed() -> None:
    """T19: also what waited for its turn when it failed."""
    store = FailsLate()

    async def play(journal: Journal) -> None:
        await journal.record(BEGIN)
        lost = journal.record(ev.StopRequested("lost"))
        await asyncio.sleep(0)
        answers = await asyncio.gather(lost, journal.record(ev.StopRequested("after")), return_exceptions=True)
        assert all(isinstance(answer, StoreError) for answer in answers)
        assert [r.event for r in await store.events()] == [BEGIN]

    played(play, store)

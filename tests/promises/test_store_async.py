"""What every store promises to the engine: order, completeness, a free event loop, waiting, and who leads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from checker.memory_store import Memory, MemoryStore, MemoryStores
from ganger.core.events import Recorded, StopRequested
from ganger.errors import LeadLost, RunLockedError
from ganger.ports.store import Entry, RunStores, Store
from ganger.stores.lead_lock import this_process
from ganger.stores.on_thread import OnThread
from ganger.stores.sqlite import SqliteStore, SqliteStores
from tests.patience import stretched
from tests.promises.store_kinds import KINDS

AT = "2026-01-02T03:04:05.000000Z"
Play = Callable[[Store], Coroutine[Any, Any, None]]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> RunStores:
    return KINDS[request.param]()


def stops(*words: str) -> list[Entry]:
    return [Entry(AT, StopRequested(word)) for word in words]


async def words_of(store: Store, since: int = 0) -> list[str]:
    return [r.event.why async for r in store.read(since) if isinstance(r.event, StopRequested)]


def played(store: Store, play: Play) -> None:
    async def run() -> None:
        try:
            await asyncio.wait_for(play(store), stretched(20))
        finally:
            await store.release()
            await store.close()

    asyncio.run(run())


# --- appends --------------------------------------------------------------------------------------------------------


def test_appends_are_carried_out_in_the_order_in_which_they_were_called(kind: RunStores, tmp_path: Path) -> None:
    """T19: also when no one waits in between."""

    async def play(store: Store) -> None:
        answers = await asyncio.gather(*(store.append(stops(f"{n}", "x")) for n in range(20)))
        assert [answer[0].seq for answer in answers] == list(range(1, 41, 2))
        assert await words_of(store) == [word for n in range(20) for word in (f"{n}", "x")]

    played(kind.open_async(tmp_path), play)


async def cancelled_after(steps: int, work: Awaitable[object]) -> None:
    task = asyncio.ensure_future(work)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_cancelled_append_is_neither_lost_nor_doubled(kind: RunStores, tmp_path: Path, steps: int) -> None:
    """T19: and the next one comes after it."""

    async def play(store: Store) -> None:
        first = asyncio.ensure_future(store.append(stops("first")))
        await cancelled_after(steps, store.append(stops("cancelled")))
        assert [r.seq for r in await store.append(stops("next"))] == [3]
        await first
        assert await words_of(store) == ["first", "cancelled", "next"]

    played(kind.open_async(tmp_path), play)


class Shy(OnThread):
    """Planted: what is cancelled while it waits for its turn is dropped."""

    def _in_turn(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        def done_unless_cancelled() -> Any:
            return None if answer.cancelled() else work()

        answer = super()._in_turn(done_unless_cancelled)
        return answer


def test_a_store_that_drops_what_is_cancelled_is_caught(tmp_path: Path) -> None:
    """T19: the planted bug."""
    with pytest.raises(AssertionError):
        test_a_cancelled_append_is_neither_lost_nor_doubled(Shies(), tmp_path, 1)


class Slow(MemoryStore):
    def append(self, batch: Any) -> list[Recorded]:
        time.sleep(0.05)
        return super().append(batch)


class Shies(MemoryStores):
    """Its stores take a moment for an append, so that another one has to wait."""

    def open(self, run: Path, *, read_only: bool = False) -> MemoryStore:
        return Slow(self.kept.setdefault(run, Memory()))

    def open_async(self, run: Path) -> OnThread:
        return Shy(self, run)


def test_the_loop_goes_on_while_the_disk_keeps_an_append_waiting(tmp_path: Path) -> None:
    """T19: another process holds SQLite's lock."""

    async def play(store: Store) -> None:
        await store.append(stops("a"))
        other = SqliteStore(tmp_path / "ganger.db")
        other._db.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(store.append(stops("b")))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not waiting.done()
        other._db.execute("ROLLBACK")
        other.close()
        await waiting

    played(SqliteStores().open_async(tmp_path), play)


def test_many_events_are_read_in_order(tmp_path: Path) -> None:
    """T19: also where they do not fit into one call of the thread."""

    async def play(store: Store) -> None:
        await store.append(stops(*(str(n) for n in range(2500))))
        assert await words_of(store) == [str(n) for n in range(2500)]
        assert await words_of(store, since=2499) == ["2499"]

    played(SqliteStores().open_async(tmp_path), play)


# --- waiting --------------------------------------------------------------------------------------------------------


def test_a_wait_ends_with_what_another_process_records(kind: RunStores, tmp_path: Path) -> None:
    """T19: a command, an event; and at once if it is there already."""

    async def play(store: Store) -> None:
        await store.append(stops("a"))
        other = kind.open(tmp_path)
        for number, wait in ((1, {"commands": 0}), (2, {"events": 1})):
            waiting = asyncio.ensure_future(store.wait(**wait))
            await asyncio.sleep(0.01)
            assert not waiting.done()
            other.send(AT, "pause", {}) if number == 1 else other.append(stops("b"))
            await waiting
        await store.wait(commands=0, events=9)
        assert [command.kind for command in await store.commands(0)] == ["pause"]
        other.close()

    played(kind.open_async(tmp_path), play)


def test_a_wait_that_is_cancelled_leaves_the_store_usable(kind: RunStores, tmp_path: Path) -> None:
    """T19: the lead ends while it waits for commands."""

    async def play(store: Store) -> None:
        for steps in (1, 5):
            await cancelled_after(steps, store.wait(commands=0))
        assert len(await store.append(stops("a"))) == 1

    played(kind.open_async(tmp_path), play)


# --- which runs there are, and who leads them -----------------------------------------------------------------------


def test_a_run_is_there_from_its_first_opening_on_and_is_found(kind: RunStores, tmp_path: Path) -> None:
    """T19: folders without events are no runs."""
    (tmp_path / "other").mkdir()
    run = tmp_path / "r1"
    run.mkdir()
    assert not kind.exists(run) and kind.runs(tmp_path) == [] and kind.leader(run) is None

    async def play(store: Store) -> None:
        await store.append(stops("a"))
        assert kind.exists(run) and kind.runs(tmp_path) == [run] and await store.exists()
        reader = kind.open(run, read_only=True)
        assert [recorded.seq for recorded in reader.read()] == [1]
        reader.close()

    played(kind.open_async(run), play)


def test_the_leader_of_a_run_is_known_while_it_leads(kind: RunStores, tmp_path: Path) -> None:
    """W03: who, and since when; another one is refused, and may lead afterwards."""

    async def play(store: Store) -> None:
        assert await store.take_lead() == 1
        found = kind.leader(tmp_path)
        assert found is not None and found.owner == this_process() and abs(time.time() - found.since) < stretched(5)
        other = kind.open_async(tmp_path)
        with pytest.raises(RunLockedError):
            await other.take_lead()
        await store.renew()
        await store.release()
        assert kind.leader(tmp_path) is None and await other.take_lead() == 2
        with pytest.raises(LeadLost):
            await store.append(stops("late"))
        await other.release()
        await other.close()

    played(kind.open_async(tmp_path), play)


def test_a_store_without_the_lead_can_be_given_back_and_closed(kind: RunStores, tmp_path: Path) -> None:
    """T19: also one that was never used; nothing is created by that."""

    async def play(store: Store) -> None:
        await store.release()

    played(kind.open_async(tmp_path / "run"), play)
    assert not (tmp_path / "run").exists()


def test_a_lead_that_is_cancelled_while_it_is_taken_is_given_back(kind: RunStores, tmp_path: Path) -> None:
    """T19: Ctrl-C while a run begins."""

    async def play(store: Store) -> None:
        await cancelled_after(1, store.take_lead())
        await store.release()
        assert kind.leader(tmp_path) is None

    played(kind.open_async(tmp_path), play)

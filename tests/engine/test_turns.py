"""Turns on one folder: writers alone, readers together, first come first served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, strategies as st

from ganger.engine.resources.folder_lock import FolderLock


async def _rest(rounds: int = 5) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


class Watch:
    """Who is inside, and whether that was ever wrong."""

    def __init__(self) -> None:
        self.turns = FolderLock()
        self.inside: list[tuple[str, bool]] = []
        self.entered: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    def visit(self, name: str, *, alone: bool) -> asyncio.Task[None]:
        self.gates[name] = asyncio.Event()
        return asyncio.get_running_loop().create_task(self._visit(name, alone))

    def cancel(self, name: str, visit: asyncio.Task[None]) -> None:
        visit.cancel()
        self.inside = [entry for entry in self.inside if entry[0] != name]

    async def _visit(self, name: str, alone: bool) -> None:
        async with self.turns.take(alone=alone):
            self.entered.append(name)
            self.inside.append((name, alone))
            assert len(self.inside) == 1 or not any(writer for _, writer in self.inside)
            await self.gates[name].wait()
            self.inside.remove((name, alone))


def played(play: Callable[[Watch], Awaitable[None]]) -> Watch:
    async def run() -> Watch:
        watch = Watch()
        await asyncio.wait_for(play(watch), 10)
        return watch

    return asyncio.run(run())


def test_readers_share_and_a_writer_is_alone() -> None:
    """T17: checking an unchanged folder may be done side by side, changing it may not."""

    async def play(watch: Watch) -> None:
        tasks = [watch.visit("r1", alone=False), watch.visit("r2", alone=False), watch.visit("w", alone=True)]
        await _rest()
        assert watch.entered == ["r1", "r2"]
        watch.gates["r1"].set()
        await _rest()
        assert watch.entered == ["r1", "r2"]
        watch.gates["r2"].set()
        await _rest()
        assert watch.entered == ["r1", "r2", "w"]
        watch.gates["w"].set()
        await asyncio.gather(*tasks)

    played(play)


def test_a_waiting_writer_is_not_overtaken_by_later_readers() -> None:
    """T17: a stream of verifications cannot starve a change."""

    async def play(watch: Watch) -> None:
        tasks = [watch.visit("r1", alone=False), watch.visit("w", alone=True), watch.visit("r2", alone=False)]
        await _rest()
        for name in ("r1", "w", "r2"):
            watch.gates[name].set()
        await asyncio.gather(*tasks)

    assert played(play).entered == ["r1", "w", "r2"]


@pytest.mark.parametrize("moment", ["waiting", "admitted", "inside"])
def test_whoever_gives_up_does_not_keep_the_turn(moment: str) -> None:
    """T17 T23: cancelled while waiting, at the very moment of admission, or inside."""

    async def play(watch: Watch) -> None:
        holder, leaver = watch.visit("first", alone=True), watch.visit("leaver", alone=True)
        after = watch.visit("after", alone=False)
        await _rest()
        if moment != "waiting":
            watch.gates["first"].set()
            await _rest(1 if moment == "admitted" else 5)
        watch.cancel("leaver", leaver)
        watch.gates["first"].set()
        watch.gates["after"].set()
        await asyncio.gather(holder, after)
        assert leaver.cancelled() or leaver.cancelling()

    assert played(play).entered[-1] == "after"


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12), st.randoms(use_true_random=False))
def test_everybody_gets_a_turn_whatever_the_mix_and_whoever_leaves(
    visitors: list[tuple[bool, bool]], chance: object
) -> None:
    """T17: never a writer beside anybody, never a turn lost."""

    async def play(watch: Watch) -> None:
        tasks = {f"v{n}": watch.visit(f"v{n}", alone=alone) for n, (alone, _) in enumerate(visitors)}
        await asyncio.sleep(0)
        staying = [name for name, (_, leaves) in zip(tasks, visitors, strict=True) if not leaves]
        for name in set(tasks) - set(staying):
            watch.cancel(name, tasks[name])
        for gate in watch.gates.values():
            gate.set()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        assert set(staying) <= set(watch.entered)
        async with watch.turns.take(alone=True):
            pass

    played(play)

"""The merge queue never sleeps while a change waits."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ganger.core.model.run_state import Indexes, RunState
from ganger.core.vocabulary import MergeMode
from ganger.engine.merging.merge_queue import In, MergeQueue, Outcome, Waiting


class AtOnce(MergeQueue):
    """Merges everything at once and ends its turn with a commit others wait for too."""

    commit: asyncio.Event

    async def _merge(self, items: Sequence[Waiting]) -> None:
        for item in items:
            self._answer(item, In())
        await self.commit.wait()


def change(task: str) -> Waiting:
    return Waiting(task, 1, "token", "base", "commit", "check")


async def two_in_one_commit() -> list[Outcome]:
    state = RunState(merging=MergeMode.QUEUE, index=Indexes(rank={"first": 0, "second": 1}))
    parts = {"merge_batch": 16, "repositories": {"": None}, "checks": None, "folder": SimpleNamespace(path=Path())}
    tools: Any = SimpleNamespace(journal=SimpleNamespace(state=state), **parts)
    gate: Any = SimpleNamespace(check=lambda: None)
    queue = AtOnce(tools, "", gate, asyncio.get_running_loop().create_task, itertools.count(1), None)
    queue.commit = asyncio.Event()

    async def second() -> Outcome:
        await queue.commit.wait()
        return await queue.land(change("second"))

    first = asyncio.create_task(queue.land(change("first")))
    await asyncio.wait_for(first, 5)
    later = asyncio.create_task(second())
    await asyncio.sleep(0)
    queue.commit.set()
    return [first.result(), await asyncio.wait_for(later, 5)]


def test_a_change_that_comes_in_the_commit_that_ends_the_queues_turn_is_merged() -> None:
    """G03: one commit wakes the queue, which finds nothing more to do, and the attempt that brings the next change."""
    assert asyncio.run(two_in_one_commit()) == [In(), In()]

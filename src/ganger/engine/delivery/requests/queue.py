"""The queue of one repository's change requests: brought up to date, tested and merged one after the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from ganger.core.delivery.request_merges import next_in_line
from ganger.core.model.run_state import RunState
from ganger.engine.stop_guard import StopGuard
from ganger.ports.forge import MergeRules

_LOOK_SEC = 0.2


class RequestLine:
    """`rules` are the forge's own, once fetched. Every request that waits here is ready. A lead that dies here does no
    harm: the next lead's line starts empty, and the ledger shows which requests were already brought up to date."""

    def __init__(self, state: RunState, gate: StopGuard) -> None:
        self.state, self._gate = state, gate
        self.rules: MergeRules | None = None
        self.holder = ""
        self._waiting: set[str] = set()
        self._left = asyncio.Event()

    @contextlib.asynccontextmanager
    async def turn(self, task: str, waits: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """`waits` is called once when others go first."""
        self._waiting.add(task)
        try:
            # Requests that become ready at the same moment all join before one of them is chosen.
            await asyncio.sleep(0)
            if not self._is_next(task):
                await waits()
            while not self._is_next(task):
                self._gate.check()
                self._left.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._left.wait(), _LOOK_SEC)
            self.holder = task
            yield
        finally:
            self._waiting.discard(task)
            self.holder = "" if self.holder == task else self.holder
            self._left.set()

    def _is_next(self, task: str) -> bool:
        return not self.holder and next_in_line(self.state, self._waiting) == task

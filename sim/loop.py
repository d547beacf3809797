"""An event loop that never waits: when nothing is ready, time moves to the next thing that happens."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import Context
from itertools import count
from typing import Any, cast

from sim.borrowed import Hands
from sim.clock import SimClock
from sim.life import Life

_MOST_STEPS_AT_ONCE = 500_000
_MOST_CLOSES = 50


class Stuck(Exception):
    """Nothing can ever happen again, or time stands still although the loop is busy."""


class SimLoop:
    """Deterministic: ready callbacks in order, timers by (moment, order of their making).

    It has what asyncio asks of a loop; sockets, signals and children have no place here.
    """

    def __init__(self, clock: SimClock, life: Life, hands: Hands) -> None:
        self.clock, self.life, self._hands = clock, life, hands
        self._self = cast(asyncio.AbstractEventLoop, self)
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._closed = False
        self._main: asyncio.Future[Any] | None = None
        self._steps_at_once = 0

    # --- what asyncio asks of a loop ------------------------------------------------------------------------------

    def time(self) -> float:
        return self.clock.elapsed

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return asyncio._get_running_loop() is self._self

    def is_closed(self) -> bool:
        return self._closed

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self._self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self._self, context)
        heapq.heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        return None

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self._self)

    def create_task(self, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
        if self._closed:
            coro.close()
            raise RuntimeError("the loop is closed")
        kwargs.pop("eager_start", None)
        return asyncio.Task(coro, loop=self._self, **kwargs)

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Work given to a thread is done by this one, a step later."""
        answer = self.create_future()

        def work() -> None:
            try:
                value = func(*args)
            except Exception as problem:  # noqa: BLE001
                if not answer.cancelled():
                    answer.set_exception(problem)
            else:
                if not answer.cancelled():
                    answer.set_result(value)

        self.call_soon(work)
        return answer

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        return None

    async def shutdown_asyncgens(self) -> None:
        return None

    async def shutdown_default_executor(self) -> None:
        return None

    # --- running --------------------------------------------------------------------------------------------------

    def run_until_complete(self, future: Any) -> Any:
        self._main = task = asyncio.ensure_future(future, loop=self._self)
        self.run_on(task)
        return task.result()

    def run_on(self, task: asyncio.Future[Any]) -> None:
        """Runs until the task is done; whatever kills or freezes the lead comes out here."""
        with self._running():
            while not task.done():
                self._step()

    def run_aside(self, most_steps: int) -> None:
        """Lets a lead that was stopped do what is due now, beside the one that leads; time does not move for it."""
        with self._running(), contextlib.suppress(BaseException):
            for _ in range(most_steps):
                self._collect_due()
                if not self._ready:
                    return
                self._step()

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        asyncio._set_running_loop(self._self)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def _step(self) -> None:
        if not self._ready:
            self._wait()
        if self._ready[0].cancelled():
            self._ready.popleft()
            return
        self._steps_at_once += 1
        if self._steps_at_once > _MOST_STEPS_AT_ONCE:
            raise Stuck(f"{_MOST_STEPS_AT_ONCE} steps at {self.time():.1f} s and time does not move")
        self.life.point("step")
        self._ready.popleft()._run()

    def _wait(self) -> None:
        """Moves time to the next timer or happening; both may make callbacks ready."""
        while not self._ready:
            timers = self._timers
            while timers and timers[0][2].cancelled():
                heapq.heappop(timers)
            happening = self.clock.next_happening()
            moments = [moment for moment in (timers[0][0] if timers else None, happening) if moment is not None]
            if not moments:
                raise Stuck(f"nothing is scheduled at {self.time():.1f} s and the lead still waits")
            moment = min(moments)
            if moment > self.clock.elapsed:
                self._steps_at_once = 0
            self.clock.advance(moment)
            self._collect_due()

    def _collect_due(self) -> None:
        while self._timers and self._timers[0][0] <= self.clock.elapsed:
            self._ready.append(heapq.heappop(self._timers)[2])

    def bury(self) -> None:
        """Ends every coroutine of a dead lead; its effects are refused by the ports, so nothing is done by that."""
        self.life.dead = True
        for task in asyncio.all_tasks(self._self):
            _bury(task)
        self.close()

    def close(self) -> None:
        self._closed = True
        self._ready.clear()
        self._timers.clear()


def _bury(task: asyncio.Task[Any]) -> None:
    """A handler that answers the end of its coroutine by waiting again is ended again."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    coroutine: Any = task.get_coro()
    for _ in range(_MOST_CLOSES):
        with contextlib.suppress(BaseException):
            coroutine.close()
            return

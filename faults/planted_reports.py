"""Bugs of reporting and of handing out tasks, put into leads and workers; `faults.workers` must catch each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ganger.core import events as ev
from ganger.core.model.task_state import TaskState
from ganger.engine.workers.claims import ClaimQueue, Waiter
from ganger.engine.workers.protocol import WorkerProtocol
from ganger.worker.spool import Spool


@dataclass(frozen=True, slots=True)
class Bug:
    """`lead` and `worker` plant it there; `rule` is how the complaint begins. `calls`: where leads are killed."""

    what: str
    rule: str
    lead: Callable[[], None] | None = None
    worker: Callable[[], None] | None = None
    calls: tuple[str, ...] = ()
    reports: int = 20


def _acknowledged_first() -> None:
    def record(self: WorkerProtocol, name: str, fence: str, *events: ev.Event) -> Awaitable[None]:
        self._journal.mention(name, fence, *events)
        return asyncio.sleep(0)

    WorkerProtocol._record = record  # type: ignore[method-assign]


def _counted_twice() -> None:
    """What was recorded before is not remembered."""
    real = WorkerProtocol._once

    async def once(self: WorkerProtocol, verb: str, fence: str, said: Any) -> Any:
        known = self._state.tasks.get(self._by_fence.get(fence, ""))
        worker = known.worker if known is not None else None
        if worker is not None and said.id in worker.seen:
            object.__setattr__(worker, "seen", ())
        return await real(self, verb, fence, said)

    WorkerProtocol._once = once  # type: ignore[method-assign]


def _spool_emptied_first() -> None:
    real = Spool.deliver

    def deliver(self: Spool, send: Any, until: float, *, last: str = "") -> Any:
        def early(verb: str, token: str, body: dict[str, Any]) -> Any:
            for name in self.names():
                if (kept := self.take(name)) is not None and kept[2].get("id") == body.get("id"):
                    self._remove(name)
            return send(verb, token, body)

        return real(self, early, until, last=last)

    Spool.deliver = deliver  # type: ignore[method-assign]


def _two_winners() -> None:
    """Everybody who waits is given the task that the first of them won."""
    real = ClaimQueue._settle

    def settle(self: ClaimQueue, waiter: Waiter, task: str) -> None:
        real(self, waiter, task)
        if task and self._waiting:
            real(self, next(iter(self._waiting)), task)

    def is_held(self: ClaimQueue, task: TaskState, worker: str) -> bool:
        return task.worker is not None

    ClaimQueue._settle = settle  # type: ignore[method-assign]
    ClaimQueue._is_held = is_held  # type: ignore[method-assign]


BUGS = {
    "early-ack": Bug(
        "a report is acknowledged before it is durable", "lost", _acknowledged_first, calls=("pwrite64",), reports=40
    ),
    "no-memory": Bug("a report that comes again counts again", "twice", _counted_twice, calls=("sendto",)),
    "early-unlink": Bug("a request leaves the spool before it is acknowledged", "lost", worker=_spool_emptied_first),
    "two-winners": Bug("one task is given to two sessions", "winners", _two_winners, reports=1),
}


def plant_in_workers(name: str) -> None:
    bug = BUGS[name]
    if bug.worker is not None:
        bug.worker()


def planter(name: str) -> Callable[[], None] | None:
    """What to call in a lead before it runs."""
    return BUGS[name].lead if name else None

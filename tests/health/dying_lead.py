"""A lead that dies while it decides about a worker. Run as `dying_lead.py MOMENT` in a project's folder.

before   the verdict is not recorded yet
between  it is recorded, and the worker lives
after    the worker was ended, and its end is not recorded
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from ganger.core import events as ev
from ganger.core.vocabulary import WorkerVerdict
from ganger.engine.resources.live_attempts import LiveAttempt
from ganger.engine.workers.monitor import WorkerMonitor


async def die(*_given: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def swap(name: str, deed: Any) -> None:
    setattr(WorkerMonitor, name, deed)


def _before() -> None:
    swap("end", die)


def _between() -> None:
    swap("_end_tree", die)


def _after() -> None:
    end_tree = WorkerMonitor._end_tree

    async def ended(self: WorkerMonitor, post: LiveAttempt) -> None:
        await end_tree(self, post)
        await die()

    swap("_end_tree", ended)


def _without_intent() -> None:
    """A planted mistake: the worker is ended first, and why is recorded only then."""

    async def end(self: WorkerMonitor, post: LiveAttempt, verdict: WorkerVerdict, why: str) -> None:
        await self._end_tree(post)
        await die()
        await self._tools.journal.report(post.task, post.fence, ev.WorkerEnding(post.task, post.attempt, verdict, why))

    swap("end", end)


MOMENTS: dict[str, Callable[[], None]] = {
    "before": _before,
    "between": _between,
    "after": _after,
    "without_intent": _without_intent,
}

if __name__ == "__main__":
    from ganger.__main__ import main

    MOMENTS[sys.argv[1]]()
    sys.argv[1:] = ["run"]
    sys.exit(main())

"""A lead that does nothing but record attempts and keep their progress log, until somebody kills it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import TaskStatus
from ganger.engine.journal import Journal
from ganger.engine.output.progress import ProgressLog
from ganger.local.run_folder import RunFolder
from ganger.ports.store import Store
from ganger.stores.sqlite import SqliteStores

TASKS = ("a", "b", "c")


class Ticks:
    def now(self) -> float:
        return 1_700_000_000.0

    def monotonic(self) -> float:
        return 0.0


async def opened(store: Store) -> Journal:
    journal = Journal(store, RunState(), Ticks())
    await journal.replay()
    return journal


async def step(journal: Journal, name: str) -> None:
    """The next thing that happens to a task; several tasks share a commit."""
    task = journal.state.tasks[name]
    if task.status is TaskStatus.PENDING:
        number = task.attempts + 1
        await journal.record(ev.AttemptStarted(name, number, f"{name}.{number}", "agent", "why not", "log"))
        return
    number = task.attempts
    text = f"it said\n<!-- 1 -->\n{'x' * (number % 50)}"
    beat = ev.WorkerBeat(name, number, f"r{number}", "testing", float(number % 100))
    failed = ev.AttemptFailed(name, number, "crash", "crash:x", text, "none")
    await journal.report(name, task.attempt.token, beat, failed, ev.TaskRequeued(name, "again"))


async def work(folder: RunFolder) -> None:
    store = SqliteStores().open_async(folder.path)
    await store.take_lead()
    journal = await opened(store)
    if not journal.state.log.last_seq:
        await journal.record(ev.RunStarted("r", "d", Policy(), tuple(TaskSpec(name) for name in TASKS)))
    log = ProgressLog(folder, journal)
    await log.catch_up()
    journal.listeners.append(log.on_event)
    await journal.record(ev.LeadStarted(1, policy=Policy()))
    while True:
        await asyncio.gather(*(step(journal, name) for name in TASKS))


if __name__ == "__main__":
    asyncio.run(work(RunFolder(Path(sys.argv[1]))))

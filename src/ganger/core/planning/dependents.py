"""The tasks behind a task that ended other than DONE."""

from __future__ import annotations

from collections.abc import Iterable

from ganger.core import events as ev
from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import BlockReason, TaskStatus


def behind_failed(state: RunState, task: str) -> list[str]:
    """Pending tasks that cannot run because `task` ended other than DONE, nearest first."""
    found: dict[str, None] = {}
    queue = [task]
    for current in queue:
        for dependent in state.index.dependents.get(current, ()):
            if dependent not in found and state.tasks[dependent].status is TaskStatus.PENDING:
                found[dependent] = None
                queue.append(dependent)
    return list(found)


def blocked_behind(state: RunState, tasks: Iterable[str]) -> list[ev.TaskSettled]:
    """Events for the tasks that cannot run because one of these ended other than DONE; each is named once."""
    blocked: dict[str, ev.TaskSettled] = {}
    for task in tasks:
        why = f"dependency {task} did not end DONE"
        for name in behind_failed(state, task):
            blocked.setdefault(name, ev.TaskSettled(name, TaskStatus.BLOCKED, why, BlockReason.DEPENDENCY_FAILED))
    return list(blocked.values())

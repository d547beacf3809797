"""Which function applies an event to the state: found from the event's class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ganger.core.events.event import Event, TaskEvent
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState

RunReducer = Callable[[RunState, Any, str], None]
TaskReducer = Callable[[RunState, str, TaskState, Any, str], TaskState]
RUN_REDUCERS: dict[type[Event], RunReducer] = {}
TASK_REDUCERS: dict[type[Event], TaskReducer] = {}
_Reducer = TypeVar("_Reducer", bound=Callable[..., Any])


def applies(*kinds: type[Event]) -> Callable[[_Reducer], _Reducer]:
    """The function below moves the state by these events: one task's, or the whole run's."""

    def register(reducer: _Reducer) -> _Reducer:
        for kind in kinds:
            table: dict[type[Event], Any] = TASK_REDUCERS if issubclass(kind, TaskEvent) else RUN_REDUCERS
            if kind in table:
                raise TypeError(f"two functions apply {kind.__name__}")
            table[kind] = reducer
        return reducer

    return register


def applied_in(module: str) -> frozenset[type[Event]]:
    """The events that this module's functions apply."""
    both = {**RUN_REDUCERS, **TASK_REDUCERS}
    return frozenset(kind for kind, reducer in both.items() if reducer.__module__ == module)

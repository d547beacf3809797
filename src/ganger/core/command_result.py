"""What a command does to a run, how it is refused, and how its arguments are read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.model.run_state import RunState

_LONGEST_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Effect:
    """What a command does. A refused command does nothing and says why."""

    outcome: str
    events: tuple[ev.Event, ...] = ()


class Refusal(Exception):
    """Why a command cannot be done, and what can be done instead."""


def task_named(state: RunState, data: Mapping[str, object]) -> str:
    name = data.get("task")
    if not isinstance(name, str) or not name:
        raise Refusal("it names no task")
    if name not in state.tasks:
        raise Refusal(f"there is no task {name}; ganger tasks lists them")
    return name


def text_of(data: Mapping[str, object], key: str) -> str:
    text = data.get(key, "")
    if not isinstance(text, str):
        raise Refusal(f"the {key} is not text")
    if len(text) > _LONGEST_TEXT:
        raise Refusal(f"the {key} has {len(text)} characters, at most {_LONGEST_TEXT} go into a prompt")
    return text.strip()


def number_of(value: object) -> float:
    """A number, or the number a text holds; NaN for everything else."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

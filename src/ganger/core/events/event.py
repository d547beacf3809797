"""What every event says about itself: its sentence, the statuses it fits, and who is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ganger.core.vocabulary import TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
B, F, E = TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.ESCALATED

EVENT_TYPES: dict[str, type[Event]] = {}
TYPE_NAMES: dict[type[Event], str] = {}


class Event:
    """`shown`: printed while a run is in the foreground. `told_in_notices`: hooks and notices use its sentence."""

    __slots__ = ()
    shown: ClassVar[bool] = False
    told_in_notices: ClassVar[bool] = False

    def __init_subclass__(cls, *, kind: bool = False) -> None:
        """A dataclass with slots is made twice; the second class, which comes without `kind`, is the one that stays."""
        if not kind:
            name = _snake(cls.__name__)
            EVENT_TYPES[name] = cls
            TYPE_NAMES[cls] = name

    def sentence(self) -> str:
        """In plain words; empty for those that need no reader while a run is active."""
        return ""


class RunEvent(Event, kind=True):
    """About the run as a whole, or about something that several tasks share."""

    __slots__ = ()


class TaskEvent(Event, kind=True):
    """About one task. `fits`: the statuses in which it may happen, and the one that follows (None: as it says)."""

    __slots__ = ()
    fits: ClassVar[Mapping[TaskStatus, TaskStatus | None]] = {R: R}
    task: str


class AttemptEvent(TaskEvent, kind=True):
    """Reports on the current attempt, and is written only with that attempt's token."""

    __slots__ = ()
    attempt: int


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")

"""Which events hooks and notifications report, and in which words.

An event is selected by the name of its type, or by a group:
question   a person is asked, or reminded
finish     the lead has nothing more to do, or has reached a limit
failure    a task is abandoned or waits for a person; the run is aborted
"""

from __future__ import annotations

from collections.abc import Collection

from ganger.core.events import EVENT_TYPES, Event, QuestionAsked, QuestionRaised, RunFinished, TaskSettled, type_name
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus

GROUPS = ("question", "finish", "failure")
_GIVEN_UP = (TaskStatus.FAILED, TaskStatus.ESCALATED, TaskStatus.BLOCKED)
_LONGEST = 2000


def is_known(name: str) -> bool:
    return name in GROUPS or name in EVENT_TYPES


def is_wanted(event: Event, names: Collection[str]) -> bool:
    return type_name(event) in names or any(_belongs(event, group) for group in GROUPS if group in names)


def _belongs(event: Event, group: str) -> bool:
    if group == "question":
        return isinstance(event, QuestionAsked | QuestionRaised)
    if group == "finish":
        return isinstance(event, RunFinished)
    if isinstance(event, TaskSettled):
        # A task blocked by a failed one is part of that failure, not another one.
        return event.final and event.status in _GIVEN_UP and event.block_reason is not BlockReason.DEPENDENCY_FAILED
    return isinstance(event, RunFinished) and event.run_status is RunStatus.ABORTED


def task_of(event: Event) -> str:
    return str(getattr(event, "task", ""))


def kind_of(event: Event) -> str:
    """What a question is about; for other events the event's own name."""
    return event.kind if isinstance(event, QuestionAsked) else type_name(event)


def sentence(event: Event) -> str:
    """One line for a person, without control characters."""
    text = _text(event)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:_LONGEST]


def _text(event: Event) -> str:
    if isinstance(event, QuestionAsked):
        return f"{event.question} {event.kind}: {event.text}"
    if isinstance(event, QuestionRaised):
        return f"{event.question} is still open after {event.times} reminders; see ganger inbox"
    if isinstance(event, RunFinished):
        counts = ", ".join(f"{number} {status}" for status, number in event.counts.items() if number)
        return "; ".join(filter(None, [f"run {event.run_status}", counts, event.abort_reason or event.why]))
    if isinstance(event, TaskSettled):
        return f"{event.status}: {event.detail}"
    if event.told_in_notices and (said := event.sentence()):
        return said
    words = (getattr(event, name, "") for name in ("text", "why", "detail", "message", "summary", "name", "note"))
    return f"{type_name(event).replace('_', ' ')}: {next((str(word) for word in words if word), '')}".removesuffix(": ")

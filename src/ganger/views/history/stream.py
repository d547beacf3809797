"""Events as lines: JSON for programs, words for people."""

from __future__ import annotations

from ganger.core.events import Event, Recorded, fields_of, type_name


def event_line(recorded: Recorded) -> dict[str, object]:
    """The envelope and the event's own fields, flat."""
    event = recorded.event
    return {
        "schema": "ganger.event/1",
        "seq": recorded.seq,
        "at": recorded.at,
        "type": type_name(event),
        **fields_of(event),
    }


def event_words(event: Event) -> str:
    """What happened, in one sentence or by the event's name; a line about a task always names it."""
    said, task = event.sentence(), getattr(event, "task", "")
    if said and (not task or task in said):
        return said
    words = said or type_name(event).replace("_", " ")
    return f"{task}: {words}" if task else words

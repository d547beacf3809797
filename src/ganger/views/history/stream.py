"""Events as JSON lines for programs."""

from __future__ import annotations

from ganger.core.events import Recorded, fields_of, type_name


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

"""A notice: one event of a run, prepared for sending."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ganger.core.events import Recorded, fields_of, type_name
from ganger.core.events.notable import kind_of, sentence, task_of


@dataclass(frozen=True, slots=True)
class Notice:
    """`document` is the event as `ganger events --json` shows it, with its run."""

    run_id: str
    seq: int
    event: str
    kind: str
    task: str
    text: str
    document: Mapping[str, object] = field(default_factory=dict, compare=False)

    @property
    def title(self) -> str:
        return f"Ganger {self.run_id}" + (f": {self.task}" if self.task else "")

    @property
    def json(self) -> bytes:
        return json.dumps(self.document, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


class NotDelivered(Exception):
    """Why a notice was not delivered, in a few words."""


class Way(Protocol):
    """One channel for notices; used from one thread."""

    @property
    def name(self) -> str: ...

    def deliver(self, notice: Notice) -> None:
        """Sends a notice; raises NotDelivered. Returns within its own time limit."""

    def hurry(self) -> None:
        """Called from another thread: ends a send in progress."""


def notice_of(run_id: str, recorded: Recorded) -> Notice:
    event = recorded.event
    envelope = {"schema": "ganger.event/1", "seq": recorded.seq, "at": recorded.at, "type": type_name(event)}
    text = sentence(event)
    document = {**envelope, **fields_of(event), "run_id": run_id, "sentence": text}
    return Notice(run_id, recorded.seq, type_name(event), kind_of(event), task_of(event), text, document)

"""Steps of a ledger as moments to die at: the instant before an event is durable, and the instant after.

`before/pushed/red:2` is before the second `pushed` of task `red` that this lead records: what it tells has happened
already, and nobody knows. `before/pushed/*:2` is before the second of any task. `answered/before/pushed/red:1` is in
a lead that came after a person's answer.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from faults.strace import Point
from ganger.core import events as ev
from ganger.core.events import delivery, removals, requests, reverts
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore

WHEN = ("before", "after")
ANSWERED = "answered/"
_TOLD_IN = (delivery.__name__, removals.__name__, requests.__name__, reverts.__name__)
_LEDGER = tuple(kind for kind in ev.EVENT_TYPES.values() if kind.__module__ in _TOLD_IN)
_AROUND = (ev.Merged, ev.AttemptFailed, ev.TaskRequeued, ev.TaskSettled, ev.QuestionAsked, ev.QuestionAnswered)


def is_step(point: Point) -> bool:
    return point.call.partition("/")[0] in WHEN


def is_later(point: Point) -> bool:
    return point.call.startswith(ANSWERED)


def later(point: Point) -> Point:
    """The same in a lead that came after the answer."""
    return replace(point, call=f"{ANSWERED}{point.call}")


def without_phase(point: Point) -> Point:
    return replace(point, call=point.call.removeprefix(ANSWERED))


def kind_of(point: Point) -> str:
    """`before/pushed` of `answered/before/pushed/red:1`; empty where it is no step."""
    step = without_phase(point)
    return step.call.rpartition("/")[0] if is_step(step) else ""


def steps_of(events: Sequence[ev.Recorded]) -> list[Point]:
    """Every step of a run's ledgers, both sides of it."""
    counts: Counter[str] = Counter()
    found = []
    for recorded in events:
        name = _name(recorded.event)
        counts[name] += 1
        if isinstance(recorded.event, (*_LEDGER, *_AROUND)):
            found += [Point(f"{when}/{name}", counts[name]) for when in WHEN]
    return found


def _name(event: ev.Event) -> str:
    return f"{ev.type_name(event)}/{getattr(event, 'task', '')}"


def arrange(point: Point, before: Callable[[], None] | None) -> Callable[[], None]:
    """What to call in a lead before it runs, so that it dies there."""
    return partial(_arrange, point, before)


def _arrange(point: Point, before: Callable[[], None] | None) -> None:
    if before is not None:
        before()
    when, _, wanted = point.call.partition("/")
    counts: Counter[str] = Counter()
    append = SqliteStore.append

    def struck(store: SqliteStore, batch: Sequence[Entry]) -> list[ev.Recorded]:
        names = [name for entry in batch for name in (_name(entry.event), f"{ev.type_name(entry.event)}/*")]
        counts.update(names)
        here = wanted in names and counts[wanted] >= point.ordinal
        if here and when == "before":
            _die()
        done = append(store, batch)
        if here:
            _die()
        return done

    setattr(SqliteStore, "append", struck)  # noqa: B010


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()

"""Everything that can happen to a run, as values; and their form in the store.

An event says what was decided or what came out. It never holds a secret, a file's content or an agent's raw output.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from ganger.core.records import Policy, TaskSpec, VerifyStep
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus


@dataclass(frozen=True, slots=True)
class RunStarted:
    run_id: str
    manifest_digest: str
    policy: Policy
    tasks: tuple[TaskSpec, ...]
    version: str = ""


@dataclass(frozen=True, slots=True)
class LeadStarted:
    """A process took the lead: the first time, and each time the run is continued."""

    pid: int
    policy: Policy
    only: tuple[str, ...] | None = None
    max_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class WindowOpened:
    index: int
    size: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WindowClosed:
    index: int
    done: int
    failed: int
    blocked: int
    failure_rate: float
    next_size: int


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """The claim: recorded before anything is launched. `token` fences every later report."""

    task: str
    attempt: int
    token: str
    agent: str
    why: str
    log: str


@dataclass(frozen=True, slots=True)
class AttemptLaunched:
    task: str
    attempt: int
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class AttemptExited:
    task: str
    attempt: int
    exit_code: int | None
    signal: int | None
    timed_out: bool
    duration_sec: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class ResultAccepted:
    task: str
    attempt: int
    status: str
    summary: str
    repaired: bool = False
    writes: int = 0


@dataclass(frozen=True, slots=True)
class ResultRefused:
    task: str
    attempt: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class WritesIntended:
    """Recorded after the backup is whole and before the first file changes."""

    task: str
    attempt: int
    backup: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WritesApplied:
    task: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WritesRolledBack:
    task: str
    attempt: int
    why: str
    log: str


@dataclass(frozen=True, slots=True)
class VerifyStarted:
    task: str
    attempt: int
    log: str


@dataclass(frozen=True, slots=True)
class VerifyFinished:
    task: str
    attempt: int
    passed: bool
    log: str
    duration_sec: float
    steps: tuple[VerifyStep, ...]


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """Why an attempt did not count, and which counter pays for it; `reminder` goes into the next prompt."""

    task: str
    attempt: int
    failure_class: str
    signature: str
    detail: str
    counter: str
    reminder: str = ""


@dataclass(frozen=True, slots=True)
class AttemptInterrupted:
    """The attempt ended because Ganger did; no counter pays."""

    task: str
    attempt: int
    why: str


@dataclass(frozen=True, slots=True)
class TaskSettled:
    task: str
    status: TaskStatus
    detail: str
    block_reason: BlockReason | None = None
    final: bool = True


@dataclass(frozen=True, slots=True)
class TaskRequeued:
    """Back to PENDING."""

    task: str
    why: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    why: str


@dataclass(frozen=True, slots=True)
class RunFinished:
    """This lead has nothing more to do. `run_status` stays RUNNING when only a limit or a signal ended it."""

    run_status: RunStatus
    abort_reason: str | None
    counts: dict[str, int]
    why: str = ""


Event = (
    RunStarted
    | LeadStarted
    | WindowOpened
    | WindowClosed
    | AttemptStarted
    | AttemptLaunched
    | AttemptExited
    | ResultAccepted
    | ResultRefused
    | WritesIntended
    | WritesApplied
    | WritesRolledBack
    | VerifyStarted
    | VerifyFinished
    | AttemptFailed
    | AttemptInterrupted
    | TaskSettled
    | TaskRequeued
    | StopRequested
    | RunFinished
)

AttemptEvent = (
    AttemptLaunched
    | AttemptExited
    | ResultAccepted
    | ResultRefused
    | WritesIntended
    | WritesApplied
    | WritesRolledBack
    | VerifyStarted
    | VerifyFinished
    | AttemptFailed
    | AttemptInterrupted
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its place in the run. `at` is ISO 8601 in UTC."""

    seq: int
    at: str
    event: Event


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


EVENT_TYPES: Mapping[str, type[Event]] = {_snake(cls.__name__): cls for cls in typing.get_args(Event)}
_TYPE_NAMES: Mapping[type[Event], str] = {cls: name for name, cls in EVENT_TYPES.items()}


def type_name(event: Event) -> str:
    return _TYPE_NAMES[type(event)]


def _fields(value: Any) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_fields)


def encode(event: Event) -> str:
    return _ENCODER.encode(_fields(event))


def decode(name: str, text: str) -> Event:
    """The event a row holds; fields a newer version added are ignored, missing ones take their default."""
    kind: Any = EVENT_TYPES[name]
    return typing.cast(Event, _builder(kind)(json.loads(text)))


def fields_of(event: Event) -> dict[str, object]:
    """An event's fields as plain JSON values."""
    data = json.loads(encode(event))
    assert isinstance(data, dict)
    return data


Build = Callable[[Any], object]


@cache
def _builder(kind: Any) -> Build:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        inner = _builder(next(arg for arg in args if arg is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        item = _builder(args[0])
        return lambda value: tuple(item(entry) for entry in value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        makers = {f.name: _builder(hints[f.name]) for f in dataclasses.fields(kind)}
        return lambda value: kind(**{name: make(value[name]) for name, make in makers.items() if name in value})
    return lambda value: value

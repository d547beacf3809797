"""The worker protocol 1: the requests of a worker to the lead of a run, on every carrier.

Every request has a verb and its own body. `id` names a request, so that one that arrives twice counts once;
`task_id` is optional, and must be the task of the sender's token.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from ganger.contracts.model import Contract, Given, ListOf

PROTOCOL = "1"
LONGEST_WAIT_SEC = 60

Short = Annotated[str, Field(max_length=200)]
Sentence = Annotated[str, Field(max_length=2_000)]
Text = Annotated[str, Field(max_length=20_000)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Names = Annotated[ListOf[Sentence], Field(max_length=200)]
Wait = Annotated[float, Field(ge=0, le=LONGEST_WAIT_SEC, allow_inf_nan=False)]


class Said(Contract):
    """What every request may carry."""

    id: Annotated[str, Field(max_length=100)] = ""
    task_id: Given[str] = None


class Next(Said):
    """Asks for a task. One worker holds one task at a time; a worker that asks again gets the task it holds."""

    worker: Name
    wait_sec: Wait = 0
    roles: Given[ListOf[Name]] = None
    session: Short = ""


class TierResult(Contract):
    tier: Annotated[int, Field(ge=1, le=9)]
    name: Short = ""
    success: bool
    retry: Annotated[int, Field(ge=0, le=1000)] = 0


class Heartbeat(Said):
    """The worker is alive."""

    step: Short = ""
    percent: Given[Percent] = None
    note: Sentence = ""
    context_pct: Given[Percent] = None


class Progress(Heartbeat):
    """The worker's progress; kept permanently."""

    tiers: Annotated[ListOf[TierResult], Field(max_length=20)] = ()
    tasks_completed: Given[Annotated[int, Field(ge=0)]] = None
    tasks_total: Given[Annotated[int, Field(ge=0)]] = None


class Milestone(Said):
    """The worker has reached a milestone."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    note: Sentence = ""


class Escalate(Said):
    """Asks for a person's decision. The worker may continue, wait for the answer in its messages, or end with exit code
    4.

    With `default` and `deadline_sec`, the default applies if there is no answer within that time.
    """

    category: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_]*$")]
    message: Annotated[str, Field(min_length=1, max_length=4_000)]
    context: Given[Text | dict[str, Any]] = None
    options: Annotated[ListOf[Short], Field(max_length=20)] = ()
    default: Sentence = ""
    deadline_sec: Given[Annotated[float, Field(gt=0, le=30 * 86_400, allow_inf_nan=False)]] = None


class Checkpoint(Said):
    """The state of the work, for a new worker that continues it. `leave`: this worker ends now, with exit code 2."""

    summary: Text = ""
    done: Names = ()
    remaining: Names = ()
    last_action: Sentence = ""
    next_action: Sentence = ""
    files: Names = ()
    blockers: Names = ()
    decisions: Names = ()
    commits: Names = ()
    percent: Given[Percent] = None
    context_pct: Given[Percent] = None
    leave: bool = False


class Report(Said):
    """The worker's answer: a task result 2.0, judged like a printed one."""

    result: dict[str, Any]


class Done(Said):
    """The worker's last request, after its report is acknowledged."""


class Brief(Said):
    """Asks for one part of the briefing; without a name, for the list of parts."""

    section: Short = ""


class Messages(Said):
    """Asks for the messages after the one with that number."""

    since: Annotated[int, Field(ge=0)] = 0
    wait_sec: Wait = 0


VERBS: Mapping[str, type[Said]] = MappingProxyType(
    {
        "next": Next,
        "heartbeat": Heartbeat,
        "progress": Progress,
        "milestone": Milestone,
        "escalate": Escalate,
        "checkpoint": Checkpoint,
        "report": Report,
        "done": Done,
        "brief": Brief,
        "messages": Messages,
    }
)
# Requests that are durable before they are acknowledged, so that they may be sent again until then.
KEPT = frozenset({"progress", "milestone", "escalate", "checkpoint", "report", "done"})

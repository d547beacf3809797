"""The counters of a task as one table: each is a field of `Counters`, and its limit a field of `CounterLimits`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ganger.core.model.fast_replace import replace


def _counter(limit: str = "", *, charged: bool = False, person_resets: bool = False, shown: str = "") -> Any:
    """`limit`: the setting that limits it. `charged`: a failure may be charged to it. `person_resets`: it starts at 0
    again when a person grants an attempt. `shown`: how `ganger why` calls it, if not by its name."""
    row = {"limit": limit, "charged": charged, "person_resets": person_resets, "shown": shown}
    return field(default=0, metadata=row)


def _limit(default: int, description: str, *, needs_git: bool = False) -> Any:
    """The setting `policy.NAME`. `needs_git`: it has no effect in direct mode."""
    return field(default=default, metadata={"description": description, "needs_git": needs_git})


@dataclass(frozen=True, slots=True)
class Counters:
    """How often each thing has happened to a task. No counter stands in for another. `losses`: processes lost in a
    row; `repeats`: healed attempts that failed in the same way."""

    worker_attempts: int = _counter(charged=True)
    format_retries: int = _counter("format_retries", charged=True)
    respawns: int = _counter("respawns", charged=True, person_resets=True)
    stalls: int = _counter("stall_restarts", charged=True, person_resets=True)
    checkpoints: int = _counter("checkpoints", person_resets=True)
    transient_retries: int = _counter("transient_retries", charged=True, person_resets=True)
    merge_retries: int = _counter("merge_retries", charged=True, person_resets=True)
    ci_fixes: int = _counter(charged=True, person_resets=True)
    reworks: int = _counter("rework_rounds", charged=True, person_resets=True)
    no_change_retries: int = _counter("no_change_retries", charged=True, person_resets=True)
    healer_attempts: int = _counter(shown="heal_rounds")
    repeats: int = _counter("signature_repeat_limit", person_resets=True, shown="same_failure_after_healing")
    denials: int = _counter(charged=True)
    granted: int = 0
    granted_by_person: int = 0
    losses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterLimits:
    """The part of a run's policy that limits a counter each; what they allow is outside all other budgets."""

    format_retries: int = _limit(1, "retries for an answer that does not match its contract; outside all budgets")
    respawns: int = _limit(1, "retries after a crash; outside all budgets")
    transient_retries: int = _limit(3, "retries after transient failures, 5 s to 60 s apart; outside all budgets")
    merge_retries: int = _limit(
        2, "fresh attempts on the new head after a merge conflict; outside all budgets", needs_git=True
    )
    no_change_retries: int = _limit(1, "retries when an agent is done but changed nothing; outside all budgets")
    rework_rounds: int = _limit(
        2,
        "how often a reviewing agent may send a change back before you decide; your own ganger rework is never counted",
        needs_git=True,
    )
    stall_restarts: int = _limit(2, "restarts of a stalled worker before another one gets its task")
    checkpoints: int = _limit(10, "how often a task may be handed over because its worker's context was full")


@dataclass(frozen=True, slots=True)
class CounterRow:
    name: str
    limit: str
    charged: bool
    person_resets: bool
    shown: str


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A setting that limits a counter; it may be 0 and more."""

    name: str
    default: int
    description: str
    needs_git: bool


COUNTERS: Mapping[str, CounterRow] = {
    each.name: CounterRow(each.name, **(dict(each.metadata) | {"shown": each.metadata["shown"] or each.name}))
    for each in fields(Counters)
    if each.metadata
}
LIMITS: Mapping[str, LimitRow] = {
    each.name: LimitRow(each.name, int(getattr(CounterLimits(), each.name)), **each.metadata)
    for each in fields(CounterLimits)
}
# `none`: a failure that is charged to no counter.
CHARGED = frozenset({"none", *(row.name for row in COUNTERS.values() if row.charged)})
_RESET = {row.name: 0 for row in COUNTERS.values() if row.person_resets}


def counted(counters: Counters, name: str, by: int = 1) -> Counters:
    return replace(counters, **{name: getattr(counters, name) + by})


def granted_by_person(counters: Counters, attempts: int) -> Counters:
    """A person grants attempts: the task begins a new life, and its counters for crashes and repeats start again."""
    return replace(counters, **_RESET, granted_by_person=counters.granted_by_person + attempts)

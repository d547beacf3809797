"""What a lead goes by: part of the order it was given, and recorded when it starts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from ganger.core.model.ledger import RepoRules
from ganger.core.model.records import Budget, Limits, Policy
from ganger.core.vocabulary import MergeMode, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """`only` and `max_tasks` are the operator's limits for this lead; `levels` are given depths of tasks, `in_place`
    the roles whose agents edit the project's folder itself."""

    policy: Policy
    only: tuple[str, ...] | None = None
    max_tasks: int | None = None
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)
    healer: str = ""
    accounts: dict[str, str] = field(default_factory=dict)
    mode: Mode = Mode.DIRECT
    merging: MergeMode = MergeMode.QUEUE
    levels: dict[str, int] = field(default_factory=dict)
    in_place: tuple[str, ...] = ()
    pull_roles: tuple[str, ...] = ()
    repos: tuple[RepoRules, ...] = ()


def settings_of(order: RunSettings) -> dict[str, Any]:
    return {each.name: getattr(order, each.name) for each in fields(RunSettings)}

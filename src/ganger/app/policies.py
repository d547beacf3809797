"""A run's policy, budget and healing limits, from the project's settings."""

from __future__ import annotations

from dataclasses import fields

from ganger.config import Project
from ganger.core.model.records import Budget, Limits, Policy
from ganger.core.vocabulary import HealSchedule


def policy_of(project: Project) -> Policy:
    given = project.config.policy
    values = {each.name: getattr(given, each.name) for each in fields(Policy)}
    return Policy(**values | {"heal_schedule": HealSchedule(given.heal_schedule)})


def budget_of(project: Project) -> Budget:
    return Budget(**project.config.budget.model_dump())


def limits_of(project: Project) -> Limits:
    given = project.config.limits
    return Limits(tuple(given.timeout_sec), tuple(given.concurrency), tuple(given.current_batch_size))

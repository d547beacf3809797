"""A run's policy, budget and healing limits, from the project's settings."""

from __future__ import annotations

from ganger.config import Project
from ganger.core.model.records import Budget, Limits, Policy
from ganger.core.vocabulary import HealSchedule


def policy_of(project: Project) -> Policy:
    given = project.config.policy
    return Policy(
        heal_schedule=HealSchedule(given.heal_schedule),
        batch_size=given.batch_size,
        failure_threshold=given.failure_threshold,
        max_worker_attempts_per_task=given.max_worker_attempts_per_task,
        max_heal_rounds_per_window=given.max_heal_rounds_per_window,
        max_total_heal_rounds=given.max_total_heal_rounds,
        signature_repeat_limit=given.signature_repeat_limit,
        concurrency=given.concurrency,
        format_retries=given.format_retries,
        respawns=given.respawns,
        transient_retries=given.transient_retries,
        quota_wait_sec=given.quota_wait_sec,
        merge_retries=given.merge_retries,
        no_change_retries=given.no_change_retries,
        rework_rounds=given.rework_rounds,
        stall_restarts=given.stall_restarts,
        checkpoints=given.checkpoints,
        quota_spread_sec=given.quota_spread_sec,
        exhausted=given.exhausted,
    )


def budget_of(project: Project) -> Budget:
    return Budget(**project.config.budget.model_dump())


def limits_of(project: Project) -> Limits:
    given = project.config.limits
    return Limits(tuple(given.timeout_sec), tuple(given.concurrency), tuple(given.current_batch_size))

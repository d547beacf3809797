"""The state 2.0: a run as other tools read it, and its exact text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from ganger.contracts.model import (
    Broken,
    Contract,
    Count,
    DateTime,
    Given,
    ListOf,
    NonEmpty,
    Number,
    NumberOrNull,
    Positive,
    Share,
)

_SURROGATES = re.compile("[\ud800-\udfff]")


class Policy(Contract):
    """The policy a run goes by; `concurrency` is read from other tools' files and never written."""

    heal_schedule: Literal["auto", "off", "task", "batch", "epoch"]
    batch_strategy: Literal["fibonacci", "fixed"]
    current_batch_size: Positive
    failure_threshold: Share
    max_worker_attempts_per_task: Positive
    max_heal_rounds_per_window: Count
    max_total_heal_rounds: Count
    signature_repeat_limit: Positive
    concurrency: Given[Number] = None


class HistoryEntry(Contract):
    """One attempt of one phase."""

    task_id: str
    phase: Literal["worker", "verify", "healer", "rollback"]
    attempt_number: Positive
    log_path: str
    verify_log_path: str | None = None
    exit_code: NumberOrNull = None
    failure_class: str | None = None
    failure_signature: str | None = None
    applied_patch_ids: ListOf[str] = ()
    duration_sec: NumberOrNull = None
    timestamp: DateTime


class TaskState(Contract):
    """Where one task stands; `last_log_tail` is read from other tools' files and never written."""

    status: Literal["PENDING", "RUNNING", "DONE", "BLOCKED", "FAILED", "ESCALATED"]
    worker_attempts: Count
    healer_attempts: Count
    last_failure_class: str | None
    last_failure_signature: str | None
    applied_patch_ids: ListOf[str]
    history: ListOf[HistoryEntry]
    last_log_tail: str | None = None


class HealingRound(Contract):
    """One healing checkpoint."""

    round_number: Positive
    scope: Literal["task", "batch", "epoch"]
    window_task_ids: ListOf[str]
    failed_task_ids: ListOf[str]
    decision: Literal["RETRY", "ESCALATE", "NOT_FIXABLE"]
    applied_patch_ids: ListOf[str]
    timestamp: DateTime


class State(Contract):
    """A run at one moment."""

    state_version: Literal["2.0"]
    run_id: NonEmpty
    run_status: Literal["RUNNING", "COMPLETED", "ABORTED"]
    abort_reason: str | None
    manifest_digest: NonEmpty
    policy: Policy
    tasks: dict[str, TaskState]
    healing_rounds: ListOf[HealingRound]

    @classmethod
    def rules(cls, data: object) -> Iterator[Broken]:
        if not isinstance(data, dict) or data.get("run_status") != "ABORTED":
            return
        reason = data.get("abort_reason", "absent")
        if reason is None or (isinstance(reason, str) and not reason.strip()):
            message = "an ABORTED run needs a reason a person can read"
            yield Broken(("abort_reason",), "SCHEMA_VIOLATION", message)

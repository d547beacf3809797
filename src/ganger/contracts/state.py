"""The state 2.0: a run as other tools read it, and its exact text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from ganger.contracts.contract import (
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
from ganger.contracts.digest import manifest_digest
from ganger.contracts.javascript import encode_string, format_number
from ganger.contracts.manifest import Manifest

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


def fresh_state(manifest: Manifest, policy: Policy) -> State:
    """A run that has not started: every task PENDING, in manifest order."""
    untouched = TaskState(
        status="PENDING",
        worker_attempts=0,
        healer_attempts=0,
        last_failure_class=None,
        last_failure_signature=None,
        applied_patch_ids=(),
        history=(),
    )
    return State(
        state_version="2.0",
        run_id=manifest.run_id,
        run_status="RUNNING",
        abort_reason=None,
        manifest_digest=manifest_digest(manifest),
        policy=policy,
        tasks=dict.fromkeys((task.id for task in manifest.tasks), untouched),
        healing_rounds=(),
    )


def dump_state(state: State) -> str:
    """The file's text: two-space indent, keys in the format's order, a newline at the end."""
    tasks = [f"{encode_string(name)}: {_task(task)}" for name, task in state.tasks.items()]
    text = _object(
        0,
        f'"state_version": {encode_string(state.state_version)}',
        f'"run_id": {encode_string(state.run_id)}',
        f'"run_status": {encode_string(state.run_status)}',
        f'"abort_reason": {_text(state.abort_reason)}',
        f'"manifest_digest": {encode_string(state.manifest_digest)}',
        f'"policy": {_policy(state.policy)}',
        f'"tasks": {_object(1, *tasks)}',
        f'"healing_rounds": {_array(1, map(_round, state.healing_rounds))}',
    )
    return _encodable(text + "\n")


def _policy(policy: Policy) -> str:
    return _object(
        1,
        f'"heal_schedule": {encode_string(policy.heal_schedule)}',
        f'"batch_strategy": {encode_string(policy.batch_strategy)}',
        f'"current_batch_size": {format_number(policy.current_batch_size)}',
        f'"failure_threshold": {format_number(policy.failure_threshold)}',
        f'"max_worker_attempts_per_task": {format_number(policy.max_worker_attempts_per_task)}',
        f'"max_heal_rounds_per_window": {format_number(policy.max_heal_rounds_per_window)}',
        f'"max_total_heal_rounds": {format_number(policy.max_total_heal_rounds)}',
        f'"signature_repeat_limit": {format_number(policy.signature_repeat_limit)}',
    )


def _task(task: TaskState) -> str:
    return _object(
        2,
        f'"status": {encode_string(task.status)}',
        f'"worker_attempts": {format_number(task.worker_attempts)}',
        f'"healer_attempts": {format_number(task.healer_attempts)}',
        f'"last_failure_class": {_text(task.last_failure_class)}',
        f'"last_failure_signature": {_text(task.last_failure_signature)}',
        f'"applied_patch_ids": {_texts(3, task.applied_patch_ids)}',
        f'"history": {_array(3, map(_entry, task.history))}',
    )


def _entry(entry: HistoryEntry) -> str:
    return _object(
        4,
        f'"task_id": {encode_string(entry.task_id)}',
        f'"phase": {encode_string(entry.phase)}',
        f'"attempt_number": {format_number(entry.attempt_number)}',
        f'"log_path": {encode_string(entry.log_path)}',
        f'"verify_log_path": {_text(entry.verify_log_path)}',
        f'"exit_code": {_number(entry.exit_code)}',
        f'"failure_class": {_text(entry.failure_class)}',
        f'"failure_signature": {_text(entry.failure_signature)}',
        f'"applied_patch_ids": {_texts(5, entry.applied_patch_ids)}',
        f'"duration_sec": {_number(entry.duration_sec)}',
        f'"timestamp": {encode_string(entry.timestamp)}',
    )


def _round(entry: HealingRound) -> str:
    return _object(
        2,
        f'"round_number": {format_number(entry.round_number)}',
        f'"scope": {encode_string(entry.scope)}',
        f'"window_task_ids": {_texts(3, entry.window_task_ids)}',
        f'"failed_task_ids": {_texts(3, entry.failed_task_ids)}',
        f'"decision": {encode_string(entry.decision)}',
        f'"applied_patch_ids": {_texts(3, entry.applied_patch_ids)}',
        f'"timestamp": {encode_string(entry.timestamp)}',
    )


def _text(value: str | None) -> str:
    return "null" if value is None else encode_string(value)


def _number(value: int | float | None) -> str:
    return "null" if value is None else format_number(value)


def _texts(depth: int, values: Iterable[str]) -> str:
    return _array(depth, map(encode_string, values))


def _object(depth: int, *lines: str) -> str:
    return _lines("{", lines, "}", depth)


def _array(depth: int, items: Iterable[str]) -> str:
    return _lines("[", tuple(items), "]", depth)


def _lines(opening: str, items: tuple[str, ...], closing: str, depth: int) -> str:
    if not items:
        return opening + closing
    indent = "\n" + "  " * depth
    return f"{opening}{indent}  {f',{indent}  '.join(items)}{indent}{closing}"


def _encodable(text: str) -> str:
    """Half a surrogate pair cannot be written as UTF-8; a file that cannot be written helps nobody."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)

"""The same trouble means the same on every agent: its class, what pays for it, and what is done next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from matrix import EVERY, ROWS, Row
from runs import RealProject, plays, until

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.dev.server import ModelServer

HOUR = 3600
SLOT_SEC = 2.0


@dataclass(frozen=True, slots=True)
class Case:
    """What the model does, and what it must come to at the first attempt: the class, the counter that pays, and the
    status and reason the task has then. `settings` are the agent's."""

    steps: tuple[dict[str, object], ...]
    failure_class: str
    counter: str
    status: TaskStatus
    reason: BlockReason | None = None
    settings: dict[str, object] = field(default_factory=dict)
    seconds: int = 60


BLOCKED, PENDING, FAILED = TaskStatus.BLOCKED, TaskStatus.PENDING, TaskStatus.FAILED
QUOTA = ("quota", "none", BLOCKED, BlockReason.QUOTA_WAIT)
TRANSIENT = ("transient_infra", "transient_retries", PENDING)
# The third wish comes late enough for the second refusal to have its consequence before.
SHELL = tuple({"run": f"python3 -c 'print({number})'", "delay": delay} for number, delay in ((1, 0), (2, 0), (3, 8)))


def cases() -> dict[str, Case]:
    reset = int(time.time()) + 2 * HOUR
    return {
        "limit": Case(({"error": 429, "retry_after": HOUR},), *QUOTA),
        "quota": Case(({"error": "quota", "reset_at": reset},), *QUOTA),
        "credit": Case(({"error": "credit"},), *QUOTA),
        "login": Case(({"error": 401},), "blocked_external", "none", BLOCKED, BlockReason.EXTERNAL),
        "denied": Case(
            (*SHELL, {"result": {}}), "permission_denied", "denials", BLOCKED, BlockReason.PERMISSION_DENIED,
            {"permissions": "edit"},
        ),
        "hang": Case(({"hang": 300, "where": "headers"},), "timeout", "worker_attempts", FAILED, seconds=25),
        "drop": Case(({"drop": "before"},), *TRANSIENT),
        "broken": Case(({"drop": "stream"},), *TRANSIENT),
        "down": Case(({"error": 500},), *TRANSIENT),
        "full": Case(({"error": 529},), *TRANSIENT),
        "garbage": Case(({"garbage": True},), *TRANSIENT),
        "refuse": Case(({"refuse": "I will not do that."},), "prompt_gap", "worker_attempts", FAILED),
        "length": Case(({"length": True},), "contract_error", "format_retries", PENDING),
    }  # fmt: skip


SLICE = ("limit", "login", "drop")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one case came to."""

    failure_class: str
    counter: str
    status: TaskStatus
    reason: BlockReason | None
    starts: int
    not_before: float
    detail: str


def played(root: Path, row: Row, chosen: dict[str, Case]) -> tuple[RealProject, dict[str, Outcome]]:
    """All cases in one run, each with an account of its own, until each has failed once."""
    with ModelServer(plays({name: list(case.steps) for name, case in chosen.items()})) as server:
        project = RealProject(
            root,
            row,
            server,
            tuple(chosen),
            agent={"retries": 1},
            apart={name: case.settings for name, case in chosen.items()},
            seconds={name: case.seconds for name, case in chosen.items()},
            policy="concurrency = 3\nmax_worker_attempts_per_task = 1\ntransient_retries = 1\nquota_wait_sec = 900",
        ).make()
        with project.leading() as lead:
            until(lambda: lead.poll() is not None or _failed_once(project, chosen), within=280)
            project.ganger("stop")
            lead.wait(30)
        return project, {name: _outcome(project, name) for name in chosen}


def _failed_once(project: RealProject, names: dict[str, Case]) -> bool:
    ended = {
        recorded.event.task
        for recorded in project.events()
        if isinstance(recorded.event, ev.AttemptFailed | ev.TaskSettled)
    }
    return set(names) <= ended


def _outcome(project: RealProject, name: str) -> Outcome:
    failed = next(iter(project.find(ev.AttemptFailed, name)), None)
    settled: Any = next(iter([*project.find(ev.TaskSettled, name)]), None)
    again = next(iter(project.find(ev.TaskRequeued, name)), None)
    starts = len(project.find(ev.AttemptStarted, name))
    if failed is None:
        return Outcome("", "", project.task(name).status, None, starts, 0.0, project.task(name).detail)
    if again is not None and settled is None:
        status, reason, due = PENDING, None, again.not_before
    else:
        status, reason, due = settled.status, settled.block_reason, settled.not_before
    return Outcome(failed.failure_class, failed.counter, status, reason, starts, due, failed.detail)

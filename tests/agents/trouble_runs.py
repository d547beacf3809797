"""Everything that goes wrong between a program and its model, played for one real agent in one run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.dev.server import ModelServer
from tests.agents.matrix import Row
from tests.agents.runs import RealProject, plays, until

HOUR_SEC = 3600
QUOTA_WAIT_SEC = 900
BLOCKED, PENDING, FAILED = TaskStatus.BLOCKED, TaskStatus.PENDING, TaskStatus.FAILED
_POLICY = f"""concurrency = 4
max_worker_attempts_per_task = 1
transient_retries = 1
quota_wait_sec = {QUOTA_WAIT_SEC}"""


@dataclass(frozen=True, slots=True)
class Next:
    """What follows the first attempt: its class, the counter that pays, where the task stands then and why."""

    failure_class: str
    counter: str
    status: TaskStatus
    reason: BlockReason | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What the model does, and what it must come to. `settings` are the agent's, `seconds` the task's time limit (0: as
    long as the agent tries by itself).

    `wait_sec` is how long the model says a limit lasts.
    """

    says: str
    steps: tuple[Mapping[str, object], ...]
    then: Next
    settings: Mapping[str, object] = field(default_factory=dict)
    seconds: int = 0
    wait_sec: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a case came to: `starts` processes, tried again or waiting until `due` (a Unix time)."""

    then: Next
    starts: int
    due: float
    detail: str


QUOTA = Next("quota", "none", BLOCKED, BlockReason.QUOTA_WAIT)
LOGIN = Next("blocked_external", "none", BLOCKED, BlockReason.EXTERNAL)
DENIED = Next("permission_denied", "denials", BLOCKED, BlockReason.PERMISSION_DENIED)
TRANSIENT = Next("transient_infra", "transient_retries", PENDING)
TIMEOUT = Next("timeout", "worker_attempts", FAILED)
GAP = Next("prompt_gap", "worker_attempts", FAILED)
CONTRACT = Next("contract_error", "format_retries", PENDING)


def cases(row: Row) -> dict[str, Case]:
    wishes = tuple({**row.wish, "delay": delay} for delay in (0, 0, 8))
    reset = int(time.time()) + 2 * HOUR_SEC
    return {
        "limit": Case("429, an hour to wait", ({"error": 429, "retry_after": HOUR_SEC},), QUOTA, wait_sec=HOUR_SEC),
        "quota": Case("quota used up until a time", ({"error": "quota", "reset_at": reset},), QUOTA,
                      wait_sec=2 * HOUR_SEC),
        "credit": Case("out of credit", ({"error": "credit"},), QUOTA),
        "login": Case("401", ({"error": 401},), LOGIN),
        # The third wish comes late enough for the second refusal to have its consequence before.
        "denied": Case("wants a tool it may not use", (*wishes, {"result": {}}), DENIED, {"permissions": "edit"}),
        "hang": Case("never answers", ({"hang": 600, "where": "headers"},), TIMEOUT, seconds=25),
        "drop": Case("closes the connection", ({"drop": "before"},), TRANSIENT),
        "broken": Case("closes it in mid-answer", ({"drop": "stream"},), TRANSIENT),
        "down": Case("500", ({"error": 500},), TRANSIENT),
        "full": Case("529", ({"error": 529},), TRANSIENT),
        "garbage": Case("200 with a web page", ({"garbage": True},), TRANSIENT),
        "refuse": Case("refuses", ({"refuse": ""},), GAP),
        "length": Case("cut at the longest answer", ({"length": True},), CONTRACT),
    }  # fmt: skip


def played(root: Path, row: Row, chosen: Mapping[str, Case]) -> tuple[RealProject, dict[str, Outcome]]:
    """All cases in one run, each with an account of its own, until each has failed once."""
    with ModelServer(plays({name: list(case.steps) for name, case in chosen.items()})) as server:
        project = RealProject(
            root,
            row,
            server,
            tuple(chosen),
            agent={"retries": 1},
            apart={name: case.settings for name, case in chosen.items()},
            seconds={name: case.seconds or row.patience_sec for name, case in chosen.items()},
            policy=_POLICY,
        ).make()
        with project.leading() as lead:
            until(lambda: lead.poll() is not None or _failed_once(project, chosen), within_sec=500)
            project.ganger("stop")
            lead.wait(30)
        return project, {name: outcome(project, name) for name in chosen}


def _failed_once(project: RealProject, names: Mapping[str, Case]) -> bool:
    kinds = (ev.TaskRequeued, ev.TaskSettled)
    return set(names) <= {r.event.task for r in project.events() if isinstance(r.event, kinds)}


def outcome(project: RealProject, name: str) -> Outcome:
    starts = len(project.find(ev.AttemptStarted, name))
    failed = next(iter(project.find(ev.AttemptFailed, name)), None)
    task = project.task(name)
    if failed is None:
        return Outcome(Next("", "", task.status, task.block_reason), starts, 0.0, task.detail)
    followed = [*project.find(ev.TaskRequeued, name), *project.find(ev.TaskSettled, name)]
    order = [recorded.event for recorded in project.events()]
    then = min(followed, key=order.index)
    status, reason = (PENDING, None) if isinstance(then, ev.TaskRequeued) else (then.status, then.block_reason)
    return Outcome(Next(failed.failure_class, failed.counter, status, reason), starts, then.not_before, failed.detail)

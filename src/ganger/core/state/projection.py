"""A run as state 2.0: the picture of the events that people and other tools read."""

from __future__ import annotations

import json
from dataclasses import replace

from ganger.core.model.records import HealRound, HistoryItem
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import HealSchedule

Json = dict[str, object]


def state_data(state: RunState) -> Json:
    """Keys in the order the format prescribes; every history line has all eleven fields."""
    policy = state.policy
    return {
        "state_version": "2.0",
        "run_id": state.run_id,
        "run_status": state.status.value,
        "abort_reason": state.abort_reason,
        "manifest_digest": state.manifest.digest,
        "policy": {
            "heal_schedule": policy.heal_schedule.value,
            "batch_strategy": policy.batch_strategy,
            "current_batch_size": state.windows.batch_size,
            "failure_threshold": _number(policy.failure_threshold),
            "max_worker_attempts_per_task": policy.max_worker_attempts_per_task,
            "max_heal_rounds_per_window": policy.max_heal_rounds_per_window,
            "max_total_heal_rounds": policy.max_total_heal_rounds,
            "signature_repeat_limit": policy.signature_repeat_limit,
        },
        "tasks": {name: _task(name, task) for name, task in state.tasks.items()},
        "healing_rounds": [_round(state, round_) for round_ in state.healing.rounds if round_.decision],
    }


def state_text(state: RunState) -> str:
    return StateText().of(state)


class StateText:
    """A run as the text of its state file. Remembers each task's part, so only what changed is rewritten."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[TaskState, str]] = {}

    def of(self, state: RunState) -> str:
        head, tail = _dumped(state_data(replace(state, tasks={}))).split('"tasks": {}')
        parts = ",\n".join(self._part(name, task) for name, task in state.tasks.items())
        tasks = f'"tasks": {{\n{parts}\n  }}' if parts else '"tasks": {}'
        return f"{head}{tasks}{tail}\n"

    def _part(self, name: str, task: TaskState) -> str:
        known = self._parts.get(name)
        if known is not None and known[0] is task:
            return known[1]
        body = _dumped(_task(name, task)).replace("\n", "\n    ")
        text = f"    {json.dumps(name, ensure_ascii=False)}: {body}"
        self._parts[name] = (task, text)
        return text


def _dumped(data: Json) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False)


def _task(name: str, task: TaskState) -> Json:
    return {
        "status": task.status.value,
        "worker_attempts": task.counters.worker_attempts,
        "healer_attempts": task.counters.healer_attempts,
        "last_failure_class": task.failure.failure_class,
        "last_failure_signature": task.failure.signature,
        "applied_patch_ids": list(task.healing.patches),
        "history": [_line(name, item) for item in task.history],
    }


_SCOPES = {HealSchedule.TASK: "task", HealSchedule.EPOCH: "epoch"}


def _round(state: RunState, round_: HealRound) -> Json:
    """The scope is what the schedule makes it, not what the healer calls it."""
    return {
        "round_number": round_.number,
        "scope": _SCOPES.get(state.policy.heal_schedule, "batch"),
        "window_task_ids": list(round_.tasks),
        "failed_task_ids": list(round_.failed),
        "decision": round_.decision,
        "applied_patch_ids": list(round_.patches),
        "timestamp": round_.at,
    }


def _line(name: str, item: HistoryItem) -> Json:
    return {
        "task_id": name,
        "phase": item.phase.value,
        "attempt_number": item.attempt,
        "log_path": item.log_path,
        "verify_log_path": item.verify_log_path,
        "exit_code": item.exit_code,
        "failure_class": item.failure_class,
        "failure_signature": item.failure_signature,
        "applied_patch_ids": list(item.patches),
        "duration_sec": None if item.duration_sec is None else _number(round(item.duration_sec, 3)),
        "timestamp": item.at,
    }


def _number(value: float) -> float:
    """Whole numbers without a point, as the format's other writers print them."""
    return int(value) if value == int(value) else value

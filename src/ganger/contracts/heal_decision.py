"""The heal decision 2.0: what a healer proposes; nothing in it is authority."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from ganger.contracts.model import Broken, Contract, Given, ListOf, NonEmpty, members

_NEEDS = {"shared_context": "path", "task_prompt": "task_id"}


class Patch(Contract):
    """One proposed change to a prompt, the shared context, a hint or a runtime setting."""

    target: Literal["shared_context", "task_prompt", "runtime_patch", "contract_hint"]
    operation: Literal["replace", "append", "merge"]
    path: Given[str] = None
    task_id: Given[str] = None
    content: Any = None


class Escalation(Contract):
    """A task the healer gives up on, and why."""

    task_id: str
    reason: str


class HealRetryPolicy(Contract):
    """Which tasks the healer wants tried again, and in which window."""

    reset_tasks: ListOf[str] = ()
    retry_window: Given[Literal["same_window", "shrink_window", "next_epoch"]] = None


class HealDecision(Contract):
    """A healer's answer."""

    contract_version: Literal["2.0"]
    scope: Literal["task", "batch", "epoch"]
    decision: Literal["RETRY", "ESCALATE", "NOT_FIXABLE"]
    failure_class: NonEmpty
    root_cause: NonEmpty
    patches: ListOf[Patch]
    learned_rule: Given[str] = None
    escalations: ListOf[Escalation] = ()
    retry_policy: Given[HealRetryPolicy] = None

    @classmethod
    def rules(cls, data: object) -> Iterator[Broken]:
        for place, patch in members(data, "patches"):
            target = patch.get("target")
            needed = _NEEDS.get(target) if isinstance(target, str) else None
            if needed and patch.get(needed, "") == "":
                code = "SCHEMA_VIOLATION" if needed in patch else "MISSING_REQUIRED_FIELD"
                message = f"a patch of the target {target} needs a `{needed}` that is not empty"
                yield Broken(("patches", place, needed), code, message)

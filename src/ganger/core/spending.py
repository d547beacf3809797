"""Setting money and tokens aside, settling what was really spent, giving back the rest."""

from __future__ import annotations

from dataclasses import replace

from ganger.core import events as ev
from ganger.core.records import RunState, Spending, TaskState


def reserve(spent: Spending, usd: float, tokens: int) -> Spending:
    return replace(spent, reserved_usd=spent.reserved_usd + usd, reserved_tokens=spent.reserved_tokens + tokens)


def settle_cost(spent: Spending, event: ev.CostSettled, usd: float, tokens: int) -> Spending:
    return replace(
        spent,
        usd=spent.usd + event.usd,
        tokens=spent.tokens + event.input_tokens + event.output_tokens,
        reserved_usd=max(0.0, spent.reserved_usd - usd),
        reserved_tokens=max(0, spent.reserved_tokens - tokens),
    )


def released(state: RunState, task: TaskState) -> Spending:
    """What was set aside for an attempt that never cost anything goes back."""
    spent = task.spent
    if not spent.reserved_usd and not spent.reserved_tokens:
        return spent
    state.spent = replace(
        state.spent,
        reserved_usd=max(0.0, state.spent.reserved_usd - spent.reserved_usd),
        reserved_tokens=max(0, state.spent.reserved_tokens - spent.reserved_tokens),
    )
    return replace(spent, reserved_usd=0.0, reserved_tokens=0)

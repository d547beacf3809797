"""Setting money and tokens aside, settling what was really spent, giving back the rest."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.model.fast_replace import replace
from ganger.core.model.records import RunState, Spending, TaskState, Totals


def reserve(spent: Spending, usd: float, tokens: int) -> Spending:
    return replace(spent, reserved_usd=spent.reserved_usd + usd, reserved_tokens=spent.reserved_tokens + tokens)


def settle_cost(spent: Spending, event: ev.CostSettled, usd: float, tokens: int) -> Spending:
    return replace(
        spent,
        usd=spent.usd + event.usd,
        tokens=spent.tokens + event.input_tokens + event.output_tokens,
        priced=spent.priced + (event.known and bool(event.task)),
        unpriced=spent.unpriced + (not event.known and event.counted),
        counted=spent.counted + event.counted,
        input_tokens=spent.input_tokens + event.input_tokens * event.counted,
        output_tokens=spent.output_tokens + event.output_tokens * event.counted,
        cache_read_tokens=spent.cache_read_tokens + event.cache_read_tokens,
        cache_write_tokens=spent.cache_write_tokens + event.cache_write_tokens,
        reserved_usd=max(0.0, spent.reserved_usd - usd),
        reserved_tokens=max(0, spent.reserved_tokens - tokens),
    )


def cost_settled(task: str, attempt: int, used: Totals, reserved_usd: float, reserved_tokens: int) -> ev.CostSettled:
    """What is not known is taken to be what was set aside for it."""
    counted = used.input_tokens is not None and used.output_tokens is not None
    return ev.CostSettled(
        task,
        attempt,
        used.usd if used.usd is not None else reserved_usd,
        (used.input_tokens or 0) if counted else reserved_tokens,
        (used.output_tokens or 0) if counted else 0,
        known=used.usd is not None,
        counted=counted,
        cache_read_tokens=used.cache_read_tokens if counted else 0,
        cache_write_tokens=used.cache_write_tokens if counted else 0,
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

"""What a run, its tasks and its failures cost, as far as agents told it."""

from __future__ import annotations

from ganger.core.records import RunState


def spending(state: RunState) -> dict[str, object]:
    spent = state.spent
    return {
        "usd": round(spent.usd, 6),
        "tokens": spent.tokens,
        "attempts": spent.attempts,
        "reserved_usd": round(spent.reserved_usd, 6),
        "usd_of_failure_class": {name: round(usd, 6) for name, usd in sorted(state.cost_of_class.items())},
    }


def spending_line(state: RunState) -> str:
    """Empty while nothing is known of any cost."""
    spent = state.spent
    if not spent.usd and not spent.tokens:
        return ""
    lost = sum(state.cost_of_class.values())
    vain = f"; ${lost:.2f} of it on attempts that failed" if lost else ""
    return f"${spent.usd:.2f}, {spent.tokens} tokens in {spent.attempts} attempts{vain}"

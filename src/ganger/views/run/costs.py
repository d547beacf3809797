"""What a run, its tasks and its failures cost, as far as agents report it. An unreported cost is shown as unknown."""

from __future__ import annotations

from ganger.core.model.records import Spending
from ganger.core.model.run_state import RunState

UNKNOWN = "unknown"


def known_usd(spent: Spending) -> float | None:
    """None if there were attempts and the cost of none of them is known."""
    return round(spent.usd, 6) if spent.priced or spent.usd or not spent.attempts else None


def known_tokens(spent: Spending) -> int | None:
    return spent.tokens if spent.counted or spent.tokens or not spent.attempts else None


def money(spent: Spending) -> str:
    usd = known_usd(spent)
    return UNKNOWN if usd is None else f"${usd:.2f}" if usd >= 0.01 or not usd else f"${usd:.4f}"


def unpriced(state: RunState) -> int:
    """Ended attempts and heal rounds of unknown cost."""
    ended = state.money.spent.attempts - len(state.index.running)
    return max(0, ended - state.money.spent.priced)


def spending(state: RunState) -> dict[str, object]:
    spent = state.money.spent
    return {
        "usd": known_usd(spent),
        "tokens": known_tokens(spent),
        "input_tokens": spent.input_tokens if spent.counted else None,
        "output_tokens": spent.output_tokens if spent.counted else None,
        "cache_read_tokens": spent.cache_read_tokens if spent.counted else None,
        "cache_write_tokens": spent.cache_write_tokens if spent.counted else None,
        "attempts": spent.attempts,
        "attempts_of_unknown_cost": unpriced(state),
        "reserved_usd": round(spent.reserved_usd, 6),
        "usd_of_failure_class": {name: round(usd, 6) for name, usd in sorted(state.money.cost_of_class.items())},
    }


def spending_line(state: RunState) -> str:
    """Empty while no cost is known."""
    spent = state.money.spent
    if not spent.usd and not spent.tokens and not spent.counted:
        return ""
    lost = sum(state.money.cost_of_class.values())
    vain = f"; ${lost:.2f} of it on attempts that failed" if lost else ""
    some = unpriced(state)
    rest = f"; {some} attempts of unknown cost" if some and known_usd(spent) is not None else ""
    price = money(spent) if known_usd(spent) is not None else "cost unknown"
    tokens = known_tokens(spent)
    told = f"{tokens} tokens" if tokens is not None else "tokens unknown"
    return f"{price}, {told} in {spent.attempts} attempts{vain}{rest}"

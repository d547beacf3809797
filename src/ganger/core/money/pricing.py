"""What an attempt used, from its agent's figures: running totals split by process, money by the operator's prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ganger.core.model.records import Totals
from ganger.core.signs import Tokens

_MILLION = 1_000_000
# No agent process comes near this: an agent that claims more has miscounted, or lies.
MOST_USD = 10_000.0
MOST_TOKENS = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. Cached input costs as much as other input unless the prices say otherwise."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def of(self, used: Totals) -> float:
        read, write = used.cache_read_tokens, used.cache_write_tokens
        plain = max(0, (used.input_tokens or 0) - read - write)
        cached = read * (self.input if self.cache_read is None else self.cache_read)
        kept = write * (self.input if self.cache_write is None else self.cache_write)
        return (plain * self.input + cached + kept + (used.output_tokens or 0) * self.output) / _MILLION


def believed(tokens: Tokens) -> Tokens:
    """Without impossible figures: these count as missing, and `doubted` names them."""
    counts = {name: getattr(tokens, name) for name in ("input", "output", "cache_read", "cache_write")}
    wrong = [f"{n} tokens {v}" for n, v in counts.items() if v is not None and not 0 <= v <= MOST_TOKENS]
    kept = replace(tokens, input=None, output=None, cache_read=0, cache_write=0) if wrong else tokens
    if tokens.usd is not None and not 0 <= tokens.usd <= MOST_USD:
        wrong.append(f"{tokens.usd:g} dollars")
        kept = replace(kept, usd=None)
    return replace(kept, doubted=", ".join(filter(None, [tokens.doubted, *wrong]))) if wrong else kept


def used_by(tokens: Tokens, model: str, prices: Mapping[str, Price], before: Totals | None) -> Totals:
    """What one process used; None if unknown. `before` is what its session had reported when the process began."""
    base, tokens = before or Totals(), believed(tokens)
    own = Totals(
        _own(tokens.input, base.input_tokens, tokens.session_tokens),
        _own(tokens.output, base.output_tokens, tokens.session_tokens),
        _own(tokens.cache_read, base.cache_read_tokens, tokens.session_tokens) or 0,
        _own(tokens.cache_write, base.cache_write_tokens, tokens.session_tokens) or 0,
        _own_usd(tokens.usd, base.usd, tokens.session_usd),
    )
    price = price_of(model, prices)
    if own.usd is None and price is not None and own.input_tokens is not None and own.output_tokens is not None:
        return Totals(*own.counts, usd=price.of(own))
    return own


def counted_after(tokens: Tokens, own: Totals, before: Totals | None) -> Totals:
    """What is counted of a session once another of its processes is: the base of its next running total."""
    base, tokens = before or Totals(), believed(tokens)
    usd = tokens.usd if tokens.session_usd else (base.usd or 0.0) + (own.usd or 0.0)
    if tokens.session_tokens:
        return Totals(tokens.input, tokens.output, tokens.cache_read, tokens.cache_write, usd)
    return Totals(
        (base.input_tokens or 0) + (own.input_tokens or 0),
        (base.output_tokens or 0) + (own.output_tokens or 0),
        base.cache_read_tokens + own.cache_read_tokens,
        base.cache_write_tokens + own.cache_write_tokens,
        usd,
    )


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """By the model's full name, else by the longest listed name that it begins with."""
    names = [name for name in prices if model.startswith(name) or model.rpartition("/")[2].startswith(name)]
    return prices[max(names, key=len)] if names else None


def _own(value: int | None, before: int | None, running: bool) -> int | None:
    """A total that is smaller than before belongs to a new count."""
    if value is None or not running or before is None or value < before:
        return value
    return value - before


def _own_usd(value: float | None, before: float | None, running: bool) -> float | None:
    if value is None or not running or before is None or value < before:
        return value
    return value - before

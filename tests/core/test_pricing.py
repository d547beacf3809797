"""What an attempt used: running totals taken apart, prices, and what nobody knows."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ganger.core.model.records import Totals
from ganger.core.money.budgets import cost_settled
from ganger.core.money.pricing import Price, counted_after, price_of, used_by
from ganger.core.signs import Tokens

NONE: dict[str, Price] = {}


@given(st.lists(st.tuples(st.integers(0, 9999), st.integers(0, 999), st.integers(0, 99)), min_size=1, max_size=8))
def test_a_session_that_only_tells_its_total_is_counted_once(parts: list[tuple[int, int, int]]) -> None:
    """G04 H05: whatever its processes told, together they used the last total."""
    before, counted, total = None, [], [0, 0, 0]
    for part in parts:
        total = [a + b for a, b in zip(total, part, strict=True)]
        tokens = Tokens(total[0], total[1], usd=float(total[2]), session_tokens=True, session_usd=True)
        counted.append(used_by(tokens, "m", NONE, before))
        before = counted_after(tokens, counted[-1], before)
    assert [sum(p.input_tokens or 0 for p in counted), sum(p.output_tokens or 0 for p in counted)] == total[:2]
    assert sum(p.usd or 0.0 for p in counted) == total[2]


def test_counts_of_processes_and_running_totals_mix() -> None:
    """G04 H05: a program may tell one or the other, as far as it got."""
    before = None
    counted = []
    for tokens in (Tokens(100, 1, step=True), Tokens(200, 2), Tokens(600, 6, session_tokens=True)):
        counted.append(used_by(tokens, "m", NONE, before))
        before = counted_after(tokens, counted[-1], before)
    assert [used.input_tokens for used in counted] == [100, 200, 300]


def test_what_a_killed_process_could_not_tell_comes_with_the_next_total() -> None:
    """G04 H05: nothing was told before, so all of it is new."""
    assert used_by(Tokens(70, 7, session_tokens=True), "m", NONE, None) == Totals(70, 7)


def test_a_total_that_fell_is_another_count() -> None:
    """G04: a new session under an old name never costs less than nothing."""
    before = Totals(100, 10, usd=1.0)
    used = used_by(Tokens(30, 3, usd=0.1, session_tokens=True, session_usd=True), "m", NONE, before)
    assert used == Totals(30, 3, usd=0.1)


def test_counts_of_one_process_are_taken_as_they_are() -> None:
    """G04: only what is marked as a running total is one."""
    before = Totals(100, 10, usd=1.0)
    assert used_by(Tokens(120, 12, usd=1.5, session_usd=True), "m", NONE, before) == Totals(120, 12, usd=0.5)


def test_a_price_counts_cached_tokens_apart() -> None:
    """G04: dollars for a million of each kind."""
    price = Price(input=10, output=100, cache_read=1, cache_write=20)
    used = used_by(Tokens(1_000_000, 10_000, cache_read=500_000, cache_write=100_000), "m", {"m": price}, None)
    assert used.usd == pytest.approx(4.0 + 0.5 + 2.0 + 1.0)


def test_the_agents_own_figure_comes_before_the_price_list() -> None:
    """G04: it knows discounts and what else it asked."""
    assert used_by(Tokens(10, 1, usd=0.25), "m", {"m": Price(1, 1)}, None).usd == 0.25


@pytest.mark.parametrize(
    ("model", "found"),
    [("big-2-20260101", "big-2"), ("vendor/big-2", "big-2"), ("big", None), ("", None), ("big-1", "big-")],
)
def test_a_model_has_the_price_of_the_longest_name_it_begins_with(model: str, found: str | None) -> None:
    """G04: versions and providers are written around names."""
    prices = {"big-": Price(1, 1), "big-2": Price(2, 2), "small": Price(3, 3)}
    assert price_of(model, prices) == (prices[found] if found else None)


def test_what_nobody_knows_is_what_was_set_aside_and_said_to_be_unknown() -> None:
    """G04: never a silent 0."""
    event = cost_settled("a", 1, Totals(), 0.5, 900)
    assert (event.usd, event.input_tokens, event.known, event.counted) == (0.5, 900, False, False)
    told_tokens = cost_settled("a", 1, Totals(10, 1), 0.5, 900)
    assert (told_tokens.usd, told_tokens.input_tokens, told_tokens.known, told_tokens.counted) == (0.5, 10, False, True)

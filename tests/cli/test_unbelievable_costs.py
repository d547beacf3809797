"""What an agent says it used is believed within reason; anything else counts as unknown, and is told."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core.money.pricing import MOST_TOKENS, MOST_USD, Price, believed, counted_after, used_by
from ganger.core.signs import Tokens
from tests.cli.cli_project import CONFIG, ganger, make_project, task

ODD: dict[str, dict[str, object]] = {
    "all the money": {"usd": 1e308},
    "more than a float": {"usd": math.inf},
    "no number": {"usd": math.nan},
    "negative": {"usd": -3.0},
    "words": {"usd": "much"},
    "true": {"usd": True},
    "a house": {"usd": 250_000},
    "tokens": {"input_tokens": 10**30, "output_tokens": 1},
    "negative tokens": {"input_tokens": -5, "output_tokens": 1},
    "half a token": {"input_tokens": 0.5, "output_tokens": 1},
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("said", ODD)
def test_a_cost_that_cannot_be_is_not_believed(tmp_path: Path, said: str) -> None:
    """G04: the run goes on, its budget is untouched, and somebody is told."""
    steps = [[{"usage": ODD[said]}, {"result": {"status": "DONE"}}]]
    make_project(tmp_path, task("one"), task("two", depends_on=["one"]), script={"one": steps})
    answer = ganger("run", "--set", "budget.usd=5", "--set", "budget.attempt_usd=1", cwd=tmp_path)
    assert answer.code == 0 and "implausible" in answer.out
    spent = ganger("status", "--json", cwd=tmp_path).json["spent"]
    assert (spent["usd"] or 0) <= 5 and (spent["tokens"] or 0) < MOST_TOKENS


def test_a_cost_that_can_be_is_believed(tmp_path: Path) -> None:
    """G04: dear is not impossible."""
    make_project(tmp_path, task("one"), script={"one": [[{"usage": {"usd": 812.5}}, {"result": {"status": "DONE"}}]]})
    answer = ganger("run", cwd=tmp_path)
    assert "implausible" not in answer.out and ganger("status", "--json", cwd=tmp_path).json["spent"]["usd"] == 812.5


@pytest.mark.parametrize("told", [Tokens(usd=v) for v in (1e308, -0.01, math.inf, math.nan, MOST_USD * 1.01)])
def test_no_adapter_can_make_a_run_count_what_cannot_be(told: Tokens) -> None:
    """G04: whoever read it; a price list stands in where there is one."""
    counted = Tokens(1000, 1000, usd=told.usd)
    assert used_by(told, "m", {}, None).usd is None and believed(told).doubted
    assert used_by(counted, "m", {"m": Price(1, 2)}, None).usd == pytest.approx(0.003)
    assert counted_after(told, used_by(told, "m", {}, None), None).usd in (None, 0.0)


@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write"])
@pytest.mark.parametrize("value", [-1, MOST_TOKENS + 1])
def test_tokens_that_cannot_be_are_not_counted(name: str, value: int) -> None:
    """G04: none of a count is believed when a part of it is wrong."""
    told = replace(Tokens(10, 10), **{name: value})  # type: ignore[arg-type]
    used = used_by(told, "m", {"m": Price(1, 2)}, None)
    assert (used.input_tokens, used.output_tokens, used.usd) == (None, None, None)


def test_a_price_without_measure_is_refused(tmp_path: Path) -> None:
    """G04: a slip in the price list would count as money, too."""
    make_project(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + "[prices.m]\ninput = 1e300\noutput = 1\n")
    answer = ganger("run", cwd=tmp_path)
    assert answer.code == 1 and "prices.m.input" in answer.err

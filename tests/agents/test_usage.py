"""Tokens and money of real agents, against what the played model counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ganger.dev.server import ModelServer
from tests.agents.good_runs import EDITS, good_run
from tests.agents.matrix import EVERY, ROWS, Row, params
from tests.agents.runs import RealProject, plays, writes_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
Note = Callable[[str, object], None]
ONE_PERCENT = 0.01
# Requests that programs make beside the work and leave out of their own count.
UNTOLD = {"acp-claude": "what finding a title for its session used is not counted"}
MILLION = 1_000_000
REAL = [name for name, row in ROWS.items() if not row.stands_in]


@pytest.mark.parametrize("row", [param for param in EVERY if param.id in REAL])
def test_tokens_are_what_the_model_counted(
    row: Row, tmp_path_factory: pytest.TempPathFactory, record_property: Note
) -> None:
    """G04: input and output each within one percent, for each task."""
    ran = good_run(row.name, tmp_path_factory)
    for name in ran.project.tasks:
        spent, counted = ran.project.task(name).spent, ran.server.tokens(name, beside=row.name not in UNTOLD)
        assert spent.counted == 1
        assert spent.input_tokens == pytest.approx(counted.input, rel=ONE_PERCENT)
        assert spent.output_tokens == pytest.approx(counted.output, rel=ONE_PERCENT)
    record_property(f"{row.name}: tokens", "yes")
    if row.name in UNTOLD:
        record_property(f"{row.name}: note", f"tokens: {UNTOLD[row.name]}")


@pytest.mark.parametrize("row", EVERY)
def test_a_cost_nobody_told_is_unknown_and_never_nothing(
    row: Row, tmp_path_factory: pytest.TempPathFactory, record_property: Note
) -> None:
    """G04: in the status for programs, the status for people and the report."""
    ran = good_run(row.name, tmp_path_factory)
    status = json.loads(ran.project.ganger("status", "--json").stdout)
    said, report = ran.project.ganger("status").stdout, ran.project.folder.report.read_text()
    if ran.project.state().money.spent.priced:
        assert status["spent"]["usd"] > 0 and "cost unknown" not in said + report
    else:
        assert status["spent"]["usd"] is None and status["spent"]["attempts_of_unknown_cost"] == 2
        assert "cost unknown" in said and "cost unknown" in report
    record_property(f"{row.name}: says what it costs", "yes" if ran.project.state().money.spent.priced else "no")


@pytest.mark.parametrize("row", params([name for name in REAL if name not in ("claude", "acp-claude")], [], ["codex"]))
def test_a_price_list_gives_the_money(row: Row, tmp_path: Path) -> None:
    """G04: by the model's name, from the tokens the agent told."""
    prices = f'[prices."{row.model}"]\ninput = 3.0\noutput = 15.0'
    with ModelServer(plays({EDITS: [writes_file(EDITS), {"result": {}}]})) as server:
        project = RealProject(tmp_path / "project", row, server, (EDITS,), more=prices).make()
        assert project.ganger("run").returncode == 0
        counted = server.tokens(EDITS)
    cost = (counted.input * 3.0 + counted.output * 15.0) / MILLION
    status = json.loads(project.ganger("status", "--json").stdout)
    assert status["spent"]["usd"] == pytest.approx(cost, rel=ONE_PERCENT)
    assert status["spent"]["attempts_of_unknown_cost"] == 0

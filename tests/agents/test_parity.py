"""The same trouble means the same on every agent: its class, what pays for it, and what is done next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matrix import ROWS, Row, params
from trouble_runs import PENDING, QUOTA_WAIT_SEC, Case, Outcome, cases, played

Note = Callable[[str, object], None]
SLICE = ("limit", "login", "drop")
REAL = [name for name, row in ROWS.items() if not row.stands_in]
# Programs that pass on when a limit ends; of the others Ganger only knows that there is one.
TELLS_WAIT = {"limit": {"gemini"}, "quota": {"codex"}}
# Where a program tells less than the others, and what that comes to.
OTHERWISE: dict[tuple[str, str], tuple[Case, str]] = {}


def require(row: Row, chosen: dict[str, Case], found: dict[str, Outcome], begun: float) -> None:
    told = {name: (found[name].then, found[name].detail) for name in chosen}
    expected = {name: OTHERWISE.get((row.name, name), (chosen[name], ""))[0].then for name in chosen}
    assert {name: then for name, (then, _) in told.items()} == expected, told
    for name, case in chosen.items():
        due, knows = found[name].due, row.name in TELLS_WAIT.get(name, ())
        if case.then.reason is not None and case.then.reason.value == "quota_wait":
            wait = case.wait_sec if knows else QUOTA_WAIT_SEC
            assert begun + wait - 120 < due < time.time() + wait + 120, (name, due - begun)
        if case.then.status is not PENDING:
            assert found[name].starts == 1, name


@pytest.mark.parametrize("row", params(["claude", "codex"], ["claude", "codex"]))
def test_a_limit_a_wrong_key_and_a_lost_connection_mean_the_same(row: Row, tmp_path: Path) -> None:
    """D12 G04 W07: waits without paying; stops at once without paying; tries again later."""
    chosen = {name: case for name, case in cases(row).items() if name in SLICE}
    chosen["limit"] = replace(chosen["limit"], seconds=20)
    begun = time.time()
    project, found = played(tmp_path / "project", row, chosen)
    require(row, chosen, found, begun)
    assert project.task("login").worker_attempts == 0 == project.task("limit").worker_attempts
    assert "no valid login or key" in project.task("login").detail


@pytest.mark.agents_full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", params(REAL, REAL))
def test_every_trouble_means_the_same_on_every_agent(row: Row, tmp_path: Path, record_property: Note) -> None:
    """D12 G04 W07 T24: one table of scenarios, and one of the few agents that tell less."""
    chosen = cases(row)
    begun = time.time()
    project, found = played(tmp_path / "project", row, chosen)
    for name, case in chosen.items():
        then = found[name].then
        word = f"{then.failure_class}" + (f" ({then.reason.value})" if then.reason else "")
        record_property(f"{row.name}: {case.says}", word + ("" if then == case.then else " *"))
    require(row, chosen, found, begun)
    assert project.processes() == [] and project.leaks() == []

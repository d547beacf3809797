"""The same trouble means the same on every agent: its class, what pays for it, and what is done next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agents.matrix import ROWS, Row, params
from tests.agents.trouble_runs import (
    CONTRACT,
    HOUR_SEC,
    PENDING,
    QUOTA,
    QUOTA_WAIT_SEC,
    TRANSIENT,
    Case,
    Next,
    Outcome,
    cases,
    played,
)

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
Note = Callable[[str, object], None]
SLICE = ("limit", "login", "drop")
REAL = [name for name, row in ROWS.items() if not row.stands_in]
# Programs that pass on when a limit ends; of the others Ganger only knows that there is one.
TELLS_WAIT = {"limit": {"gemini", "copilot", "qwen", "acp-gemini"}, "quota": {"codex", "copilot", "qwen"}}
# Where a program tells less than the others: what it comes to, and why.
OTHERWISE: dict[tuple[str, str], tuple[Next, str]] = {
    ("qwen", "refuse"): (TRANSIENT, "a refused answer looks like an empty one, which is tried again"),
    ("acp-gemini", "refuse"): (CONTRACT, "a refused answer looks like one without a result block"),
}


def require(row: Row, chosen: dict[str, Case], found: dict[str, Outcome], begun: float) -> None:
    told = {name: (found[name].then, found[name].detail) for name in chosen}
    expected = {name: OTHERWISE.get((row.name, name), (case.then, ""))[0] for name, case in chosen.items()}
    assert {name: then for name, (then, _) in told.items()} == expected, told
    for name, case in chosen.items():
        due, knows = found[name].due, row.name in TELLS_WAIT.get(name, ())
        if case.then == QUOTA:
            wait = case.wait_sec if knows else QUOTA_WAIT_SEC
            assert begun + wait - 120 < due < time.time() + wait + 120, (name, due - begun)
        if expected[name].status is not PENDING:
            assert found[name].starts == 1, name


@pytest.mark.parametrize("row", params(["claude", "codex"], ["claude"], ["codex"]))
def test_a_limit_a_wrong_key_and_a_lost_connection_mean_the_same(row: Row, tmp_path: Path) -> None:
    """D12 G04 W07: waits without paying; stops at once without paying; tries again later."""
    chosen = {name: case for name, case in cases(row).items() if name in SLICE}
    chosen["limit"] = replace(chosen["limit"], seconds=20)
    begun = time.time()
    project, found = played(tmp_path / "project", row, chosen)
    require(row, chosen, found, begun)
    assert project.task("login").counters.worker_attempts == 0 == project.task("limit").counters.worker_attempts
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
        then, known = found[name].then, OTHERWISE.get((row.name, name))
        reason = f" ({then.reason.value})" if then.reason else ""
        record_property(f"{row.name}: {case.says}", f"{then.failure_class}{reason}{' *' if known else ''}")
        if known:
            record_property(f"{row.name}: note", f"{case.says}: {known[1]}")
        elif case.wait_sec and row.name not in TELLS_WAIT[name]:
            record_property(f"{row.name}: note", f"{case.says}: it does not say until when; `quota_wait_sec` counts")
    require(row, chosen, found, begun)
    assert project.processes() == [] and project.leaks() == []


@pytest.mark.slow
def test_a_subscription_says_until_when_it_is_used_up(tmp_path: Path, record_property: Note) -> None:
    """G04 W07: claude tells the time of a plan's limit, though not that of a key's."""
    row = replace(ROWS["claude"], key="CLAUDE_CODE_OAUTH_TOKEN")
    chosen = {name: case for name, case in cases(row).items() if name == "quota"}
    begun = time.time()
    project, found = played(tmp_path / "project", row, chosen)
    assert found["quota"].then == QUOTA and project.task("quota").counters.worker_attempts == 0
    assert begun + 2 * HOUR_SEC - 60 < found["quota"].due < time.time() + 2 * HOUR_SEC + 60
    assert "continues at" in project.task("quota").detail
    record_property("claude: note", "with a subscription's login instead of a key it says until when a limit lasts")

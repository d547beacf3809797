"""Changes that no workflow runs on, CI that never starts, and CI that does not move: real runs against a forge."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.times import unix_time
from tests.engine.run_projects import until
from tests.forges.expected_rows import EXPECTED, FIXING, HEALTH, RETRIED, WAITING
from tests.forges.loopback.server import serving
from tests.forges.scenario import Outcome, Row, Scene, play, require

pytestmark = pytest.mark.whole
ROWS = (*EXPECTED, *RETRIED, *WAITING, *FIXING)


def wrongly_waived(outcome: Outcome) -> list[str]:
    """What pushes changed that were taken for documents alone, and are not."""
    ground, main = outcome.scene.world.ground, "main"
    pushed = {one.after: one for one in ground.pushes()}
    found = []
    for event in outcome.project.find(ev.CiWaived):
        push = pushed[event.sha]
        before = push.before if push.branch == main else ground.git("merge-base", main, event.sha)
        names = ground.changed(before, event.sha) if "ci_paths_ignore" in event.why else []
        found += [name for name in names if not name.startswith("docs/")]
    return found


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(r, id=r.name, marks=[pytest.mark.slow] if r.slow else [])
        for r in (*EXPECTED, *RETRIED, *WAITING, *FIXING)
    ],
)
def test_no_task_waits_for_ci_that_cannot_come_and_none_is_done_where_it_was_due(tmp_path: Path, row: Row) -> None:
    """D01 D04 D05 D14: expected by settings and paths, run again where that can help, and never twice."""
    outcome = play(row, tmp_path)
    require(row, outcome)
    assert wrongly_waived(outcome) == []


def warned(outcome: Outcome, number: int) -> float:
    """How long that attempt had worked when it was warned of its time."""
    recorded = outcome.project.events()
    began = next(e.at for e in recorded if isinstance(e.event, ev.AttemptStarted) and e.event.attempt == number)
    told = next(e.at for e in recorded if isinstance(e.event, ev.LimitWarned) and e.event.limit == "working")
    return unix_time(told) - unix_time(began)


def test_a_fix_is_warned_at_two_thirds_of_its_time_unless_the_settings_say_when(tmp_path: Path) -> None:
    """D14: 10 of 15 minutes; in proportion where `fix_sec` is another."""
    usual, row = tmp_path / "usual", FIXING[1]
    usual.mkdir()
    assert 0.8 <= warned(play(row, usual), 2) < 1.2 + 1
    own = replace(row, more="fix_sec = 1.2\nfix_warn_sec = 0.1\n" + HEALTH)
    assert 0.1 <= warned(play(own, tmp_path), 2) < 0.8


def test_a_lead_that_is_killed_while_it_waits_decides_the_same_afterwards(tmp_path: Path) -> None:
    """D05 D18: the grace counts from the push, and nothing is pushed or waived twice."""
    row = replace(EXPECTED[0], more="expects_ci = false\nappear_sec = 3\n")
    scene = Scene(row, tmp_path)
    with pytest.MonkeyPatch.context() as patch, serving(row.flavour, scene.world) as server:
        patch.setenv("LOOPBACK_TOKEN", row.token)
        project = scene.project(server)
        with project.start() as lead:
            until(lambda: scene.world.looks >= 5, beside=lead)
            lead.kill()
        text = project.ganger("why", "a").stdout
        assert "none is expected: delivery.expects_ci = false" in text, text
        assert project.run() == 0
        assert project.happened("a").count("ci_waived") == 1 and scene.world.own == 1
        ledger = project.ganger("ledger", "a").stdout
    assert "CI not expected by setting: delivery.expects_ci = false" in ledger and "pushed: all proved" in ledger

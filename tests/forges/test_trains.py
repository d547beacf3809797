"""Several tasks on one branch: real runs, real git, a forge that gives up older runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core import events as ev
from tests.forges.scenario import Row, ended_of, merges_of, play, require
from tests.forges.train_rows import BY_PATHS, STRAIGHT, TRAINS, UNMENDED, UNSAID
from tests.forges.truth import lies

pytestmark = pytest.mark.whole


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.slow] if row.slow else []) for row in TRAINS]
)
def test_what_is_pushed_together_is_judged_together_and_mended_by_the_one_who_broke_it(
    tmp_path: Path, row: Row
) -> None:
    """D02 D06 D13: no innocent pays, no commit of nothing stands between own pushes."""
    outcome = play(row, tmp_path)
    require(row, outcome)


@pytest.mark.parametrize("row", BY_PATHS, ids=lambda row: row.name)
def test_a_run_that_others_took_away_is_replaced_by_theirs_where_no_commit_of_nothing_starts_one(
    tmp_path: Path, row: Row
) -> None:
    """D02 D05: of a tip that holds the change, with every workflow that its own run had; else a person is asked."""
    outcome = play(row, tmp_path)
    require(row, outcome)


def test_one_that_nobody_mends_holds_up_the_others_who_pay_nothing(tmp_path: Path) -> None:
    """D06 D13: whoever is in no green tip waits for it, and nobody else mends."""
    outcome = play(UNMENDED, tmp_path)
    tasks = outcome.project.state().tasks
    assert lies(outcome.project.events(), outcome.scene.world, UNMENDED.needs) == []
    ends = {name: ended_of(task) for name, task in tasks.items()}
    assert ends.pop("t2") == "ESCALATED" and set(ends.values()) <= {"DONE", "BLOCKED(dependency_failed)"}, ends
    assert not any(task.counters.ci_fixes for task in tasks.values())


def test_a_refused_merge_is_one_question_and_nobody_pays_for_it(tmp_path: Path) -> None:
    """D03 D13: what the branch asks for is the operator's to set."""
    outcome = play(UNSAID, tmp_path)
    tasks = outcome.project.state().tasks
    ends = sorted(ended_of(task) for task in tasks.values())
    assert ends == ["BLOCKED(external)", "BLOCKED(external)", "DONE"], ends
    asked = [e.text for e in outcome.project.find(ev.QuestionAsked)]
    assert len(asked) == 1 and 'set delivery.history = "rebase"' in asked[0], asked
    assert not any(task.counters.ci_fixes for task in tasks.values()) and {
        task.attempts for task in tasks.values()
    } == {1}


def test_what_was_joined_before_the_setting_came_goes_out_straight(tmp_path: Path) -> None:
    """D03: the same commits, on top of what others pushed."""
    then = (f"setting {STRAIGHT}", "retry")
    outcome = play(replace(UNSAID, then=then), tmp_path)
    assert [ended_of(task) for task in outcome.project.state().tasks.values()] == ["DONE"] * 3, outcome.detail()
    assert merges_of(outcome.project, outcome.scene.world) == []

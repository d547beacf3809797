"""Several tasks on one branch: real runs, real git, a forge that gives up older runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenario import Row, ended_of, play, require
from train_rows import TRAINS, UNMENDED
from truth import lies


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.slow] if row.slow else []) for row in TRAINS]
)
def test_what_is_pushed_together_is_judged_together_and_mended_by_the_one_who_broke_it(
    tmp_path: Path, row: Row
) -> None:
    """D02 D06 D13: no innocent pays, no commit of nothing stands between own pushes."""
    outcome = play(row, tmp_path)
    require(row, outcome)


def test_one_that_nobody_mends_holds_up_the_others_who_pay_nothing(tmp_path: Path) -> None:
    """D06 D13: whoever is in no green tip waits for it, and nobody else mends."""
    outcome = play(UNMENDED, tmp_path)
    tasks = outcome.project.state().tasks
    assert lies(outcome.project.events(), outcome.scene.world, UNMENDED.needs) == []
    ends = {name: ended_of(task) for name, task in tasks.items()}
    assert ends.pop("t2") == "ESCALATED" and set(ends.values()) <= {"DONE", "BLOCKED(dependency_failed)"}, ends
    assert not any(task.ci_fixes for task in tasks.values())

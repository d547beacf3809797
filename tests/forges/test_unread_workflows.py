"""Workflows that a forge cannot read: what no row of the table can say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from tests.forges.loopback.script import GREEN
from tests.forges.scenario import Row, ended_of, play, require
from tests.forges.workflow_rows import UNREAD

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("late", [{}, {"pace": {"a": 1.5}}], ids=["together", "one later"])
def test_three_tasks_wait_for_one_answer_about_one_workflow(tmp_path: Path, late: dict[str, Any]) -> None:
    """D05 D12: it is no worker's fault, so nobody is paid for it, and a person is asked once."""
    outcome = play(Row("three of them", ((UNREAD,),), tasks=3, **late), tmp_path)
    asked, tasks = outcome.project.find(ev.QuestionAsked), outcome.project.state().tasks
    assert len(asked) == 1 and "ci.yml" in asked[0].text and "the commit's title" in asked[0].text
    assert {ended_of(task) for task in tasks.values()} == {"BLOCKED(external)"}
    assert [task.counters.ci_fixes for task in tasks.values()] == [0, 0, 0]
    assert {e.signature for e in outcome.project.find(ev.AttemptFailed)} == {"environment:workflow unread"}
    assert len(outcome.project.find(ev.PushIntended)) <= 5


def test_who_waited_for_a_workflow_goes_on_when_a_later_push_is_green(tmp_path: Path) -> None:
    """D02 D05: the later tip holds their changes and is their proof: no person, no worker and no commit of nothing."""
    row = Row("corrected meanwhile", ((UNREAD,), (GREEN,)), tasks=3, pace={"a": 1.5}, pushed=None, most=3)
    outcome = play(row, tmp_path)
    require(row, outcome)
    assert [ended_of(task) for task in outcome.project.state().tasks.values()] == ["DONE"] * 3

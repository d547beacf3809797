"""Workflows that a forge cannot read: what no row of the table can say."""

from __future__ import annotations

from pathlib import Path

from ganger.core import events as ev
from tests.forges.scenario import Row, ended_of, play
from tests.forges.workflow_rows import UNREAD


def test_three_tasks_wait_for_one_answer_about_one_workflow(tmp_path: Path) -> None:
    """D05 D12: it is no worker's fault, so nobody is paid for it, and a person is asked once."""
    outcome = play(Row("three of them", ((UNREAD,),), tasks=3), tmp_path)
    asked, tasks = outcome.project.find(ev.QuestionAsked), outcome.project.state().tasks
    assert len(asked) == 1 and "ci.yml" in asked[0].text and "the commit's title" in asked[0].text
    assert {ended_of(task) for task in tasks.values()} == {"BLOCKED(external)"}
    assert [task.ci_fixes for task in tasks.values()] == [0, 0, 0]
    assert {e.signature for e in outcome.project.find(ev.AttemptFailed)} == {"environment:workflow unread"}

"""Whole runs with real agents: a played model, the real program, its own tools, Ganger's walls, a merged change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from tests.agents.good_runs import ANSWERS, EDITS, good_run
from tests.agents.matrix import EVERY, Row
from tests.agents.runs import MADE, made_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
Note = Callable[[str, object], None]
NOTES = {
    "agent": "Cursor's own installer is the only way to its program, so this was tried with a stand-in that keeps to "
    "its documented interface, never with the real one",
    "acp-gemini": "a session that was cut off is seldom found again, for unknown reasons; the next attempt "
    "then starts from the beginning",
}


@pytest.mark.parametrize("row", EVERY)
def test_an_agent_edits_a_file_with_its_own_tools_and_it_is_merged(
    row: Row, tmp_path_factory: pytest.TempPathFactory, record_property: Note
) -> None:
    """T24 T06: verification reads the file, so no word of the agent's could have made the task done."""
    ran = good_run(row.name, tmp_path_factory)
    assert ran.project.task(EDITS).status is TaskStatus.DONE, ran.output
    assert ran.project.merged(made_file(EDITS)) == MADE
    assert row.stands_in or "write" in [seen.answered for seen in ran.server.requests if seen.scenario == EDITS]
    record_property(f"{row.name}: edits files", "yes")
    if row.name in NOTES:
        record_property(f"{row.name}: note", NOTES[row.name])


@pytest.mark.parametrize("row", EVERY)
def test_an_agent_answers_with_files_and_they_are_written_and_merged(
    row: Row, tmp_path_factory: pytest.TempPathFactory, record_property: Note
) -> None:
    """T24 T18: writes[] of the result, taken from the program's own stream of events."""
    ran = good_run(row.name, tmp_path_factory)
    assert ran.code == 0 and ran.project.task(ANSWERS).status is TaskStatus.DONE, ran.output
    assert ran.project.merged(made_file(ANSWERS)) == MADE
    record_property(f"{row.name}: answers with writes[]", "yes")


@pytest.mark.parametrize("row", EVERY)
def test_a_run_knows_session_and_model_of_its_agent_and_leaves_nothing_behind(
    row: Row, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """T24: one process for each task, heard while it worked; none of its processes is left."""
    ran = good_run(row.name, tmp_path_factory)
    for name in (EDITS, ANSWERS):
        task = ran.project.task(name)
        assert task.agent.session and task.agent.model, ran.project.log(name)
        assert len(ran.project.find(ev.AttemptStarted, name)) == 1 == task.counters.worker_attempts
    assert ran.project.processes() == []

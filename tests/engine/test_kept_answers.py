"""An answer that was given is judged, whoever leads by then: nobody is asked for it a second time."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.errors import NotFoundError
from tests.engine.asking_sessions import PEOPLE, Session, people_in_git, people_project
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, done, leading, task, until, write

pytestmark = pytest.mark.whole

GATE = "while [ ! -e {folder}/open ]; do sleep 0.05; done\n"
RESULT = {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "did it"}
REPORTS = "ganger worker report {folder}/result.json\nganger worker done\n"
AGENT = 'kind = "command"\nargv = ["sh", "{folder}/agent.sh"]'


def gated(folder: Path) -> dict[str, Any]:
    """Verification waits until somebody opens it."""
    (folder / "gate.sh").write_text(GATE.format(folder=folder))
    return {"steps": ({"name": "test", "cmd": f"sh {folder}/gate.sh"},)}


def is_judged(project: Project) -> bool:
    with contextlib.suppress(NotFoundError):
        return bool(project.find(ev.VerifyStarted))
    return False


def stopped_while_it_is_judged(project: Project, lead: Any) -> None:
    until(lambda: is_judged(project), beside=lead)
    project.ganger("stop")
    assert lead.wait(30) == 130 and project.status("a") is TaskStatus.PENDING


@pytest.mark.brief(1)
@pytest.mark.parametrize("made", [people_in_git, people_project], ids=["git", "direct"])
def test_what_a_session_reported_is_judged_although_nobody_asks(tmp_path: Path, made: Callable[..., Project]) -> None:
    """H07 H10: also in a run that starts nobody; and it is offered to nobody else meanwhile."""
    project = made(tmp_path / "p", [task("a", **PEOPLE, timeout_sec=60)], **gated(tmp_path))
    with leading(project) as lead:
        held = Session(project).get()
        assert held.report(write("a.txt", "a\n")).taken
        stopped_while_it_is_judged(project, lead)
    with leading(project) as lead:
        assert Session(project, "another").ask()["task"] is None
        (tmp_path / "open").touch()
        assert lead.wait(30) == 0 and project.status("a") is TaskStatus.DONE
    assert [(e.attempt, e.worker) for e in project.find(ev.AttemptStarted)] == [(1, "me"), (2, "")]


@pytest.mark.brief(1)
@pytest.mark.parametrize("kind", [GitProject, Project], ids=["git", "direct"])
def test_what_an_agent_reported_is_judged_without_asking_it_again(tmp_path: Path, kind: type[Project]) -> None:
    """H07 H10: its report counts, although its output says nothing."""
    (tmp_path / "agent.sh").write_text(REPORTS.format(folder=tmp_path))
    (tmp_path / "result.json").write_text(json.dumps({**RESULT, "writes": [write("a.txt", "a\n")]}))
    agent = AGENT.format(folder=tmp_path)
    project = kind(tmp_path / "p", [task("a", timeout_sec=60)], agent=agent, **gated(tmp_path)).make()
    with leading(project) as lead:
        stopped_while_it_is_judged(project, lead)
    (tmp_path / "open").touch()
    with leading(project) as lead:
        assert lead.wait(30) == 0 and project.status("a") is TaskStatus.DONE
    assert len(project.find(ev.AttemptLaunched)) == 1 and not project.find(ev.AttemptFailed)


@pytest.mark.brief(1)
@pytest.mark.parametrize("kind", [GitProject, Project], ids=["git", "direct"])
def test_what_an_agent_said_of_its_work_is_told_although_somebody_stopped_the_run(
    tmp_path: Path, kind: type[Project]
) -> None:
    """H10: the report and the list of tasks hold its sentence."""
    project = kind(tmp_path / "p", script={"a": done(write("a.txt", "a\n"))}, **gated(tmp_path)).make()
    with leading(project) as lead:
        stopped_while_it_is_judged(project, lead)
    (tmp_path / "open").touch()
    assert project.run() == 0 and len(project.find(ev.AttemptLaunched)) == 1
    assert "did it" in project.ganger("tasks").stdout and "did it" in project.folder.report.read_text()

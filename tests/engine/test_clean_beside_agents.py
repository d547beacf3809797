"""`ganger clean` while nobody leads: what an agent works in, or may go on with, stays."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ganger.app.runs import keeper_pid
from tests.engine.git_runs import GitProject, orphan
from tests.engine.run_projects import until
from tests.engine.speaking_agent import Speech, speaking

pytestmark = pytest.mark.whole

HALF, REST, DONE = {"write": {"half.txt": "half\n"}}, {"write": {"rest.txt": "rest\n"}}, {"done": True}


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speech:
    return speaking(tmp_path, monkeypatch)


def cleaned(project: GitProject) -> dict[str, bool]:
    """What there was, and whether it went."""
    made = json.loads(project.ganger("clean", "--json").stdout)
    return {piece["what"]: piece["goes"] for piece in made["pieces"]}


def test_nothing_goes_of_an_agent_that_works_on_without_a_lead(tmp_path: Path, speech: Speech) -> None:
    """G01 Z05: its workspace and its home are all it has; the next lead takes what it made."""
    go = tmp_path / "go"
    project = GitProject(tmp_path / "p", agent=speech.write([HALF, {"wait_for": str(go)}, REST, DONE])).make()
    orphan(project)
    found = cleaned(project)
    assert not any(found.values()) and {"home of an agent", "workspace of a, attempt 1"} <= set(found)
    go.touch()
    assert project.run() == 0 and len(speech.starts()) == 1
    assert {"half.txt", "rest.txt"} <= set(project.merged_files())


def test_nothing_goes_that_the_next_lead_can_go_on_with(tmp_path: Path, speech: Speech) -> None:
    """G01 H05: lead, keeper and agent are dead; the session and its half of the work are there."""
    project = GitProject(tmp_path / "p", agent=speech.write([HALF, {"hang": True}], [REST, DONE])).make()
    orphan(project)
    keeper = keeper_pid(project.folder)
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    until(lambda: keeper_pid(project.folder) is None and not project.processes())
    found = cleaned(project)
    assert not found["home of an agent"] and not found["workspace of a, attempt 1"]
    assert project.run() == 0
    assert speech.sessions() == ["", "s-1"] and "half.txt" in speech.starts()[1]["files"]

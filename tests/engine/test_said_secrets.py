"""A secret in what an agent says of its own work is in no event, whatever becomes of that work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.core.vocabulary import TaskStatus
from tests.engine.git_runs import GitProject, edits
from tests.engine.run_projects import task

KEY = "AKI" + "A" + "Q7X2M4V6B3N5R7T2"


@pytest.mark.parametrize("status", ["DONE", "FAILED", "BLOCKED"])
def test_a_secret_in_a_summary_is_in_no_event(tmp_path: Path, status: str) -> None:
    """D12 D19: events go to screens, hooks and notices; a change that says it is refused for good."""
    said = {**edits({"a.txt": "x\n"}), "result": {"status": status, "summary": f"used {KEY} for it"}}
    project = GitProject(tmp_path / "p", [task("a")], {"a": [said, said]}).make()
    project.run()
    told = json.dumps([str(recorded.event) for recorded in project.events()])
    assert "[masked] for it" in told and KEY not in told
    assert KEY.encode() not in (project.folder.path / "ganger.db").read_bytes()
    if status == "DONE":
        assert project.state().tasks["a"].failure.failure_class == "fatal"
    assert project.state().tasks["a"].status is not TaskStatus.DONE

"""Direct mode: agents that edit the project's own folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from tests.engine.run_projects import SCRIPTED, Project, done, kill, leading, task, until, write

IN_PLACE = SCRIPTED + "\nin_place = true"
RED = ({"name": "test", "cmd": "false"},)
ONCE = {"retry_policy": {"max_attempts": 1}}


def edits(files: dict[str, str]) -> dict[str, object]:
    return {"files": files, "result": "DONE"}


def test_edits_that_pass_stay_and_are_recorded(tmp_path: Path) -> None:
    """W02: the change summary names them; verification alone decides."""
    project = Project(tmp_path, script={"a": edits({"src/new.py": "A = 1\n"})}).make()
    assert project.run() == 0 and (tmp_path / "src/new.py").exists()
    assert project.find(ev.EditsSeen)[0].files == ("src/new.py",)
    summary = json.loads((project.folder.path / "edits/a.1/summary.json").read_text())
    assert "src/new.py" in json.dumps(summary)


def test_edits_that_fail_are_undone_and_kept_aside(tmp_path: Path) -> None:
    """W02 G08: the folder is as it was before, and what the agent made is saved with a summary."""
    files = {"old.txt": "as it was\n"}
    made = edits({"old.txt": "spoilt\n", "new/deep.txt": "new\n"})
    project = Project(tmp_path, [task("a", **ONCE)], {"a": made}, steps=RED, files=files).make()
    before = project.tree()
    assert project.run() == 1 and project.tree() == before
    saved = project.find(ev.WorkSaved)[0]
    place = project.folder.path / saved.place
    assert (place / "files/old.txt").read_text() == "spoilt\n" and set(saved.files) == {"old.txt", "new/deep.txt"}
    assert "new/deep.txt" in json.dumps(json.loads((place / "summary.json").read_text()))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        (".github/workflows/ci.yml", "PATH_PROTECTED"),
        ("CLAUDE.md", "PATH_PROTECTED"),
        ("verify.json", "PATH_PROTECTED"),
        ("tests/test_old.py", "GATE_CHANGED"),
        ("conftest.py", "GATE_CHANGED"),
    ],
)
def test_edits_pass_the_same_safeguards_as_writes(tmp_path: Path, path: str, code: str) -> None:
    """T18 G09: judged before anything is verified, and undone."""
    script = {"a": edits({path: "changed\n"})}
    files = {"tests/test_old.py": "old\n", ".github/workflows/ci.yml": "on: push\n"}
    project = Project(tmp_path, [task("a", **ONCE)], script, files=files).make()
    before = project.tree()
    assert project.run() == 1 and project.tree() == before
    now = project.state().tasks["a"]
    assert now.failure.failure_class == "policy_violation" and now.detail.startswith(code)


def test_writes_pass_the_gate_rules_too(tmp_path: Path) -> None:
    """G09: an existing test is nobody's to change, unless the task may."""
    files = {"tests/test_old.py": "old\n"}
    change = done(write("tests/test_old.py", "new\n", "replace"))
    tasks = [task("a", **ONCE), task("b", "c", **ONCE, metadata={"may_change_gates": True}), task("c")]
    project = Project(tmp_path, tasks, {"a": change, "b": change}, files=files).make()
    assert project.run() == 1
    assert project.state().tasks["a"].failure.failure_class == "policy_violation"
    assert project.status("b") is TaskStatus.DONE


def overlap(project: Project) -> int:
    most = now = 0
    for recorded in project.events():
        now += isinstance(recorded.event, ev.AttemptStarted)
        now -= isinstance(recorded.event, ev.TaskSettled)
        most = max(most, now)
    return most


@pytest.mark.parametrize(("agent", "most"), [(SCRIPTED, 3), (IN_PLACE, 1)])
def test_agents_that_edit_in_place_work_one_at_a_time(tmp_path: Path, agent: str, most: int) -> None:
    """W02: those that only hand in writes work side by side."""
    names = ["a", "b", "c"]
    script = {name: {"delay": 0.3, **done(write(f"{name}.txt", name))} for name in names}
    project = Project(tmp_path, [task(n) for n in names], script, agent=agent, policy="concurrency = 3").make()
    assert project.run() == 0 and overlap(project) == most


@pytest.mark.whole
def test_an_agent_seen_to_edit_in_place_works_alone_from_then_on(tmp_path: Path) -> None:
    """W02: nobody has to say so."""
    names = ["a", "b", "c", "d"]
    script = {name: {"delay": 0.2, **edits({f"{name}.txt": name})} for name in names}
    tasks = [task("a"), *[task(n, "a") for n in names[1:]]]
    project = Project(tmp_path, tasks, script, policy="concurrency = 3").make()
    assert project.run() == 0 and overlap(project) == 1


def test_a_gate_changed_in_a_crowd_is_put_back_before_it_judges(tmp_path: Path) -> None:
    """G09: nobody can tell who did it, so it simply does not count."""
    gate = "import sys; sys.exit('AssertionError: red')\n"
    cheat = {"files": {"check.py": "pass\n"}, "delay": 0.5, "result": "DONE"}
    tasks = [task("a", **ONCE), task("b", **ONCE)]
    steps = ({"name": "test", "cmd": "python3 check.py"},)
    script = {"a": cheat, "b": {"delay": 0.5, "result": "DONE"}}
    project = Project(tmp_path, tasks, script, steps=steps, policy="concurrency = 2", files={"check.py": gate}).make()
    assert project.run() == 1 and (tmp_path / "check.py").read_text() == gate
    assert {project.status(name) for name in "ab"} == {TaskStatus.FAILED}
    assert project.find(ev.GatesRestored)


def test_a_profile_that_keeps_failed_changes_keeps_edits_too(tmp_path: Path) -> None:
    """T18: rollback_on_failure = false."""
    project = Project(tmp_path, [task("a", **ONCE)], {"a": edits({"x.txt": "x"})}, steps=RED).make()
    project.profile = {"rollback_on_failure": False}
    project.make()
    assert project.run() == 1 and (tmp_path / "x.txt").exists()


def test_edits_of_an_agent_whose_lead_was_killed_are_undone_by_the_next(tmp_path: Path) -> None:
    """W02 G01: the baseline outlives the lead."""
    slow = [[{"files": {"begun.txt": "x", "old.txt": "spoilt"}}, {"delay": 1.5}, {"exit": 1}]]
    project = Project(tmp_path, [task("a", **ONCE)], {"a": slow}, agent=IN_PLACE, files={"old.txt": "old"})
    project.policy = "respawns = 0"
    project.make()
    with leading(project) as lead:
        until(lambda: (tmp_path / "begun.txt").exists(), beside=lead)
        kill(lead)
    assert project.run() != 0
    assert not (tmp_path / "begun.txt").exists() and (tmp_path / "old.txt").read_text() == "old"

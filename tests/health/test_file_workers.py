"""Workers that can only read and write files: they are told what was refused and what they are told, and asked for."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.model.workers import Message
from ganger.core.names import counter_folder
from ganger.core.vocabulary import TaskStatus
from ganger.engine.workers.file_inbox import leave_messages, leave_refusal, take_back_refusal
from tests.engine.asking_sessions import PEOPLE, people_project
from tests.engine.run_projects import Project, leading, task, until
from tests.health.behaviour_run import seen

pytestmark = pytest.mark.whole

AGENT = 'kind = "command"\nargv = ["python3", "agent.py"]'
# It knows of nothing but files.
BEGIN = """
import json, os, pathlib, time
desk = pathlib.Path(os.environ["GANGER_DESK"])
def put(name, value):
    (desk / "new").write_text(json.dumps(value))
    os.rename(desk / "new", desk / name)
def found(name):
    # The run's own time limit ends a wait in vain.
    while not (desk / name).exists():
        time.sleep(0.05)
    return json.loads((desk / name).read_text())
result = {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "did it"}
"""
MENDS = """
put("result.json", {**result, "status": "READY"})
pathlib.Path("why.json").write_text(json.dumps(found("refused-result.json")))
put("result.json", result)
while (desk / "refused-result.json").exists():
    time.sleep(0.05)
pathlib.Path("mended").touch()
(desk / "done.flag").touch()
"""
ASKS = """
put("escalations.json", {"escalations": [{"category": "spec", "message": "red or blue?"}]})
answer = found("messages.json")["messages"][-1]
put("result.json", {**result, "summary": answer["question"] + " " + answer["text"]})
(desk / "done.flag").touch()
"""


def file_worker(root: Path, code: str) -> Project:
    return Project(root, [task("a", timeout_sec=60)], agent=AGENT, files={"agent.py": BEGIN + code}).make()


def test_a_result_file_that_was_refused_can_be_mended(tmp_path: Path) -> None:
    """H07: its worker reads why, and the next one takes the word back."""
    project = file_worker(tmp_path, MENDS)
    assert project.run() == 0 and project.status() is TaskStatus.DONE and (tmp_path / "mended").exists()
    why = json.loads((tmp_path / "why.json").read_text())
    assert why["file"] == "result.json" and why["ok"] is False and why["code"] and "status" in why["message"]
    assert len(project.find(ev.AttemptStarted)) == 1


def test_an_answer_reaches_a_worker_that_only_reads_files(tmp_path: Path) -> None:
    """D19: what it is told lies on its desk."""
    project = file_worker(tmp_path, ASKS)
    with leading(project) as lead:
        until(lambda: seen(project, ev.QuestionAsked), beside=lead)
        assert project.ganger("answer", "q-1", "blue").returncode == 0
        assert lead.wait(40) == 0
    assert project.find(ev.WorkerReported)[0].summary == "q-1 blue"


@pytest.mark.parametrize("trap", ["link", "folder", "link for a folder"])
def test_nothing_is_written_outside_a_desk(tmp_path: Path, trap: str) -> None:
    """D19: whatever its worker puts in the way."""
    desk, outside = tmp_path / "desk", tmp_path / "outside"
    desk.mkdir()
    outside.mkdir()
    (outside / "file").write_text("mine")
    for name in ("messages.json", ".messages.json.new"):
        if trap == "folder":
            (desk / name).mkdir()
        else:
            (desk / name).symlink_to(outside if trap == "link for a folder" else outside / "file")
    assert leave_messages(desk, (Message(1, "note", "x", ""),)) is (trap != "folder")
    assert (outside / "file").read_text() == "mine" and [p.name for p in outside.iterdir()] == ["file"]


def test_a_refusal_is_left_and_taken_back(tmp_path: Path) -> None:
    """H07: and a desk that is gone is nobody's trouble."""
    assert leave_refusal(tmp_path, "result", "result.json", {"code": "X"})
    assert json.loads((tmp_path / "refused-result.json").read_text()) == {"file": "result.json", "code": "X"}
    for _ in range(2):
        take_back_refusal(tmp_path, "result")
    assert not list(tmp_path.iterdir()) and not leave_refusal(tmp_path / "none", "result", "r", {})


def written_at(file: Path) -> int:
    return file.stat().st_mtime_ns if file.exists() else 0


def is_written_anew(file: Path, since: int) -> bool:
    return written_at(file) > since


def brief_of(project: Project, name: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((project.folder.path / counter_folder() / f"brief-{name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def test_a_task_whose_answer_cannot_be_written_is_handed_out_to_nobody(tmp_path: Path) -> None:
    """W03: until it can, and then to whoever still asks."""
    project = people_project(tmp_path, [task("a", **PEOPLE)])
    with leading(project) as lead:
        counter = project.folder.path / counter_folder()
        until(counter.is_dir, beside=lead)
        (counter / "brief-ada.json").mkdir()
        (counter / "next-ada.json").write_text("{}")
        (counter / "next-bob.json").write_text('{"roles": ["nobody"]}')
        # Whose wish cannot be met is answered at every look.
        for _ in range(3):
            until(
                partial(is_written_anew, counter / "brief-bob.json", written_at(counter / "brief-bob.json")),
                beside=lead,
            )
        assert project.status() is TaskStatus.PENDING
        (counter / "brief-ada.json").rmdir()
        until(lambda: (brief_of(project, "ada").get("task") or {}).get("id") == "a", beside=lead)
        assert project.state().tasks["a"].attempts == 1
        lead.terminate()
        assert "Traceback" not in lead.communicate()[1]

"""What arrives at the model: the first prompt with the check's command, and after a red check the session with why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.dev.journal import Seen
from ganger.dev.server import ModelServer
from tests.agents.matrix import ROWS, Row, params
from tests.agents.runs import MADE, RealProject, made_file, plays, writes_file

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
TASK = "twice"
COMMAND = f"python3 check.py {made_file(TASK)}"
CHECK = f"""import pathlib, sys
for number in range(300):
    print("looked at row", number)
found = pathlib.Path(sys.argv[1]).read_text()
if found != {MADE!r}:
    why = f"AssertionError: {{found!r}} is not what was wanted"
    print(f"tests/test_made.py:7: {{why}}")
    print(f"FAILED tests/test_made.py::test_text - {{why}}")
    print("\\n".join(f"closed page {{number}}" for number in range(300)))
    sys.exit(3)
"""
STEPS = {
    "steps": [{"write": {"path": made_file(TASK), "content": "wrong\n"}}, {"result": {}}],
    "resumed": [writes_file(TASK), {"result": {}}],
    "again": "not accepted",
}
# The stand-in knows no sessions of its own, and acp-gemini does not find every session again.
RESUMING = [name for name, row in ROWS.items() if not row.stands_in and name != "acp-gemini"]


def made(root: Path, row: Row, server: ModelServer) -> RealProject:
    project = RealProject(root, row, server, (TASK,)).make()
    (project.root / "check.py").write_text(CHECK)
    words = ["git", "-c", "user.name=S", "-c", "user.email=s@example.org", "commit", "-qam", "a check that talks"]
    subprocess.run(words, cwd=project.root, check=True)
    return project


def said(request: Seen) -> str:
    """All that people and programs said to the model in one request."""
    return "\n".join(turn.text for turn in request.conversation if turn.role == "user")


@pytest.mark.parametrize("row", params(RESUMING, ["claude", "codex", "gemini"]))
def test_after_a_red_check_the_session_goes_on_and_the_model_is_told_why(row: Row, tmp_path: Path) -> None:
    """G22 H05 T24: one session, two prompts; the second has command, exit code, failed test, place and line."""
    with ModelServer(plays({TASK: STEPS})) as server:
        project = made(tmp_path / "project", row, server)
        ran = project.ganger("run")
        task = project.task(TASK)
        assert (ran.returncode, task.status) == (0, TaskStatus.DONE), f"{task.detail}\n{project.log(TASK)}"
        first, second = project.find(ev.AttemptStarted, TASK)
        assert first.session == "" and second.session
        asked = [request for request in server.requests if request.step >= 0]
    opening, last = said(asked[0]), said(asked[-1])
    assert f"- `{COMMAND}`" in opening and '"writes"' not in opening and "not accepted" not in opening
    for words in (
        *(f"    {COMMAND}", "exit code 3", "- tests/test_made.py::test_text (tests/test_made.py:7)"),
        *("is not what was wanted", "your change is in it"),
    ):
        assert words in last, words
    assert last.count("looked at row") < 40 and "looked at row 17\n" not in last
    # The whole session is there: what it was asked first, and what it did then.
    assert f"# Task {TASK}\n" in last and "wrong" in str(asked[-1].conversation)
    assert project.merged(made_file(TASK)) == MADE

"""An agent that ends without a result: its last telling line, the setting behind it, and whether it ran at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from tests.engine.each_sandbox import sandbox as sandbox
from tests.engine.run_projects import Project

pytestmark = pytest.mark.whole


def project_of(root: Path, *argv: str, more: str = "") -> Project:
    return Project(root, agent=f'kind = "command"\nargv = {json.dumps(argv)}\n{more}').make()


def crash_of(project: Project) -> str:
    done = project.ganger("run")
    assert done.returncode == 4
    assert {f.failure_class for f in project.find(ev.AttemptFailed)} == {"crash"}
    detail = str(project.state().tasks["a"].detail)
    assert detail[-120:] in done.stdout, "the run's last words leave out what to do"
    return detail


def test_a_crash_says_the_last_telling_line_and_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G10 H04 D19: the exception of the traceback, with what was handed on masked."""
    monkeypatch.setenv("MY_KEY", "canary-secret-0123456789")
    code = "import os; print('100% [#####]'); raise RuntimeError('no model for ' + os.environ['MY_KEY'])"
    project = project_of(tmp_path, sys.executable, "-c", code, more='env = ["MY_KEY"]')
    detail = crash_of(project)
    assert "exit code 1 and no result block: RuntimeError: no model for" in detail
    assert "canary-secret" not in detail + project.ganger("why", "a").stdout


def test_a_crash_over_a_file_outside_the_sandbox_names_the_setting(tmp_path: Path, sandbox: str) -> None:
    """G05 G10 G14: where there is no sandbox nothing is said of one."""
    notes, agent = tmp_path / "elsewhere" / "notes.txt", tmp_path / "elsewhere" / "agent.py"
    notes.parent.mkdir()
    notes.write_text("hello\n")
    agent.write_text(f"print(open({str(notes)!r}).read())\nraise SystemExit('nothing more')\n")
    detail = crash_of(project_of(tmp_path / "p", sys.executable, str(agent)))
    if sandbox == "none":
        assert "nothing more" in detail and "sandbox" not in detail
    else:
        assert f'add "{notes}" to sandbox.readable' in detail and str(notes) in detail


def test_a_module_beside_the_agents_script_is_hinted_at(tmp_path: Path, sandbox: str) -> None:
    """G05 G14: the script is shown because argv names it, its neighbours are not."""
    agent = tmp_path / "elsewhere" / "agent.py"
    agent.parent.mkdir()
    agent.write_text("import neighbour\n")
    (agent.parent / "neighbour.py").write_text("raise SystemExit('found it')\n")
    detail = crash_of(project_of(tmp_path / "p", sys.executable, str(agent)))
    assert (
        ("found it" in detail) if sandbox == "none" else (f'{agent.parent}/neighbour.py" to sandbox.readable' in detail)
    )


@pytest.mark.parametrize("how", ["no such interpreter", "in a shell"])
def test_an_agent_that_cannot_be_started_is_the_environments_fault(tmp_path: Path, sandbox: str, how: str) -> None:
    """G14 H04: not a crash: one start, no counter, BLOCKED(external), and the sentence names it."""
    agent = tmp_path / "elsewhere" / "agent"
    agent.parent.mkdir()
    agent.write_text("#!/opt/none/python\n")
    agent.chmod(0o755)
    argv = ("sh", "-c", "exec nonesuch-agent") if how == "in a shell" else (str(agent),)
    project = project_of(tmp_path / "p", *argv)
    assert project.run() == 3
    state = project.state().tasks["a"]
    assert (state.status, state.block_reason) == (TaskStatus.BLOCKED, BlockReason.EXTERNAL), state.detail
    assert [(f.failure_class, f.counter) for f in project.find(ev.AttemptFailed)] == [("environment", "none")]
    assert ("nonesuch-agent" if how == "in a shell" else str(agent)) in state.detail


def test_an_agent_that_says_it_was_not_there_is_not_believed(tmp_path: Path, sandbox: str) -> None:
    """G14: it ran, so it has crashed; its words are shown as its words."""
    detail = crash_of(project_of(tmp_path, "sh", "-c", "echo start; echo 'sh: 1: sh: not found' >&2; exit 127"))
    assert "exit code 127" in detail

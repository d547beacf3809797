"""Real agents that are ended in the middle of their work go on with their own session."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.dev.server import ModelServer
from tests.agents.matrix import ROWS, Row, params
from tests.agents.runs import RealProject, plays, until, writes_file

pytestmark = pytest.mark.needs("bwrap")
Note = Callable[[str, object], None]
TASK = "long"
FIRST = "first.txt"
# A command that goes on until somebody ends it, and can be told from all others.
SLEEP = "import time; time.sleep(86399)"
ONE_PERCENT = 0.01
# Without acp-gemini: a session that was cut off there was found again once and not found in every later try.
RESUMING = [name for name, row in ROWS.items() if not row.stands_in and name != "acp-gemini"]
# What programs leave untold of a process that was killed.
UNTOLD = {
    "opencode": "it says what a call of the model used when its tools are done; one that is cut off is not counted",
    "acp-claude": "it says what it used at its end; a process that is cut off is not counted",
}
STEPS = {
    "steps": [
        {"write": {"path": FIRST, "content": "begun\n"}},
        {"run": f"python3 -c '{SLEEP}'"},
    ],
    "resumed": [writes_file(TASK), {"result": {}}],
    "again": "continued",
}


@contextmanager
def at_work(root: Path, row: Row) -> Iterator[tuple[RealProject, subprocess.Popen[bytes]]]:
    """A lead whose agent is in the middle of a tool."""
    with ModelServer(plays({TASK: STEPS})) as server:
        project = RealProject(root, row, server, (TASK,)).make()
        with project.leading() as lead:
            until(lambda: lead.poll() is not None or sleepers(project))
            assert lead.poll() is None, project.log(TASK)
            yield project, lead


def sleepers(project: RealProject) -> list[int]:
    """The tool's own processes."""
    found = []
    for pid in project.processes():
        with contextlib.suppress(OSError):
            if SLEEP.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def require_one_session(project: RealProject) -> None:
    """Done by the second process, which went on with the session of the first; everything was counted once."""
    task = project.task(TASK)
    assert task.status is TaskStatus.DONE, task.detail
    first, second = project.find(ev.AttemptStarted, TASK)
    heard = {event.session for event in project.find(ev.AgentHeard, TASK) if event.session}
    assert heard == {second.session} and first.session == ""
    last = [seen for seen in project.server.requests if seen.step >= 0][-1]
    assert f"MARK({TASK})" in str(last.conversation) and FIRST in str(last.conversation)
    assert project.merged(FIRST) == "begun\n" and project.processes() == []
    require_counted_once(project)


def require_counted_once(project: RealProject) -> None:
    spent, counted = project.task(TASK).spent, project.server.tokens(TASK, beside=False)
    if project.row.name in UNTOLD:
        assert 0 < spent.input_tokens <= counted.input and 0 < spent.output_tokens <= counted.output
    else:
        assert spent.input_tokens == pytest.approx(counted.input, rel=ONE_PERCENT)
        assert spent.output_tokens == pytest.approx(counted.output, rel=ONE_PERCENT)


@pytest.mark.whole
@pytest.mark.parametrize("row", params(RESUMING, ["claude"]))
def test_an_agent_that_is_killed_with_all_it_started_goes_on(row: Row, tmp_path: Path, record_property: Note) -> None:
    """H05 D12: a crash; the next process continues the session, and no worker attempt is paid twice."""
    with at_work(tmp_path / "project", row) as (project, lead):
        project.kill_agents()
        assert lead.wait(90) == 0, project.task(TASK).detail
        require_one_session(project)
        assert project.task(TASK).counters.respawns == 1
    record_property(f"{row.name}: goes on after a kill", "yes")
    if row.name in UNTOLD:
        record_property(f"{row.name}: note", f"tokens: {UNTOLD[row.name]}")


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.parametrize("row", params(RESUMING, RESUMING))
def test_an_agent_that_was_stopped_goes_on_with_the_next_run(row: Row, tmp_path: Path, record_property: Note) -> None:
    """H05: `ganger stop` ends the whole tree; nobody pays for it, and the session goes on."""
    with at_work(tmp_path / "project", row) as (project, lead):
        assert project.ganger("stop").returncode == 0
        lead.wait(60)
        assert project.processes() == [] and project.task(TASK).counters.worker_attempts == 0
        assert project.ganger("run").returncode == 0
        require_one_session(project)
    record_property(f"{row.name}: goes on after ganger stop", "yes")


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.parametrize("row", params(RESUMING, RESUMING))
def test_an_agent_that_dies_while_nobody_leads_goes_on(row: Row, tmp_path: Path) -> None:
    """H05: the lead's death ends no agent; when both are gone, the next lead continues the session."""
    with at_work(tmp_path / "project", row) as (project, lead):
        lead.send_signal(signal.SIGKILL)
        lead.wait()
        assert sleepers(project)
        project.kill_agents()
        until(lambda: project.processes() == [])
        assert project.ganger("run").returncode == 0
        require_one_session(project)

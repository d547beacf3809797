"""Agents whose output tells what they are at: an open tool call is work, however long; what follows it is not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, task
from tests.engine.speaking_agent import speaking
from tests.health.behaviour_run import LIMITS, LOOK_SEC, SLACK_SEC, Book, Row, complaints, health_of, moment

STALL_SEC = 1.0
STAND_IN = Path(__file__).parents[1] / "agents" / "acp_stand_in.py"
BEGIN = {"sign": {"is": "ToolStarted", "id": "1", "name": "bash", "about": "make all"}}
END = {"sign": {"is": "ToolEnded", "id": "1"}}
LONG: list[dict[str, Any]] = [BEGIN, {"delay": 10 * STALL_SEC}, END, {"result": "DONE"}]
STUCK: list[dict[str, Any]] = [BEGIN, {"delay": 2 * STALL_SEC}, END, {"hang": True}]
THINKING: list[dict[str, Any]] = [{"sign": {"is": "Said", "text": "hm"}}, {"delay": STALL_SEC / 2}] * 6
ACP = f"""
[agents.spoken]
kind = "acp"
argv = ["{sys.executable}", "{STAND_IN}", "keeps"]
[roles.spoken]
agent = "spoken"
"""
ROWS = {
    "long": Row(),
    "thinking": Row(),
    "stuck": Row(("stalled/stalls",), ("stalled",), why="no sign of it"),
    # Its tool call never ends: only its time limit does.
    "T1": Row(("timeout/worker_attempts",), status="FAILED", why="no result within 5 s"),
}


def streams(root: Path, *names: str, policy: str = "") -> Project:
    """The stand-in of a protocol is `T1`; the others are played from a script."""
    script = {"long": [LONG], "thinking": [[*THINKING, {"result": "DONE"}]], "stuck": [STUCK, {"result": "DONE"}]}
    once = {"max_attempts": 1}
    tasks = [task(n, timeout_sec=60) for n in names if n != "T1"]
    tasks += [task("T1", timeout_sec=5, retry_policy=once, metadata={"role": "spoken"})] if "T1" in names else []
    policy = f"concurrency = 4\n{policy}\n{health_of({**LIMITS, 'stall_sec': STALL_SEC})}"
    return Project(root, tasks=tasks, script=script, policy=policy, tiers=ACP).make()


def test_an_open_tool_call_is_let_alone_for_ten_times_the_limit(tmp_path: Path) -> None:
    """H02 H03 D14: and when it is over, silence counts from there; a protocol's tool call has its time limit alone."""
    made = streams(tmp_path, *ROWS)
    assert made.run() == 1
    book = Book(made)
    assert complaints(book, ROWS) == []
    # It may take its time to start on a busy machine; from its tool call on nobody suspects it.
    at_tool = book.at("long", ev.AttemptExited) - 9 * STALL_SEC
    assert all(moment(suspected) < at_tool for suspected in book.of("long", ev.WorkerSuspected))
    took = book.at("stuck", ev.WorkerEnding) - book.at("stuck", ev.AttemptLaunched)
    assert 3 * STALL_SEC <= took <= 3 * STALL_SEC + 2 * LOOK_SEC + SLACK_SEC


def test_a_stalled_session_goes_on_until_another_worker_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Z03 H01 H05: a restart continues the agent's session and its workspace; who takes over has a session of its own
    and finds the work that was begun."""
    speech = speaking(tmp_path, monkeypatch)
    half: list[dict[str, Any]] = [{"write": {"half.txt": "half\n"}}, {"hang": True}]
    agent = speech.write(half, half, [{"write": {"rest.txt": "rest\n"}}, {"done": True}])
    policy = f"stall_restarts = 1\n{health_of({**LIMITS, 'stall_sec': STALL_SEC})}"
    made = GitProject(tmp_path / "p", agent=agent, policy=policy).make()
    assert made.run() == 0
    assert speech.sessions() == ["", "s-1", ""]
    _, again, other = speech.starts()
    assert "half.txt" in again["files"] and "continued" in again["prompt"]
    assert "half.txt" not in other["files"] and made.find(ev.WorkSaved)[-1].place in other["prompt"]
    now = made.state().tasks["a"]
    assert (now.attempts, now.counters.worker_attempts, now.counters.stalls, now.counters.respawns) == (3, 1, 2, 0)

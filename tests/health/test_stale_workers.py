"""A worker that was given up and comes back changes nothing, whatever it speaks through."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ganger.core import events as ev
from tests.engine.run_projects import Project, leading, until
from tests.health.behaviour_run import health_of, seen

SESSION = Path(__file__).with_name("stale_session.py")
LATE = Path(__file__).with_name("late_agent.py")


@contextmanager
def session(made: Project, notes: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, str(SESSION), str(notes), sys.executable], cwd=made.root) as process:
        try:
            yield process
        finally:
            process.kill()


def is_stopped(process: subprocess.Popen[bytes]) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.fixture
def pulled(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", agent='kind = "pull"', policy=health_of()).make()


def test_a_session_that_comes_back_too_late_is_refused_by_every_carrier(pulled: Project, tmp_path: Path) -> None:
    """H07 Z03 W03: stopped past its lease, its task given to another; its word, however it comes, changes nothing."""
    outcomes = tmp_path / "outcomes"
    with leading(pulled) as lead, session(pulled, tmp_path) as stale:
        until(lambda: (tmp_path / "taken").exists() and is_stopped(stale), beside=lead)
        assert pulled.ganger("worker", "next", "--wait", "60", "--worker", "fresh").returncode == 0
        assert [e.verdict for e in seen(pulled, ev.WorkerEnding)] == ["stalled"]
        os.kill(stale.pid, signal.SIGCONT)
        until(outcomes.exists, beside=lead)
        # Two looks later nothing of its files has been taken either.
        told = pulled.ganger("worker", "messages", "--wait", "0.5", "--worker", "fresh")
        assert told.returncode in (0, 3) and not seen(pulled, ev.WorkerReported)
        words = ("--status", "DONE", "--summary", "in time", "--worker", "fresh")
        assert pulled.ganger("worker", "report", *words).returncode == 0
        assert lead.wait(30) == 0
    assert json.loads(outcomes.read_text()) == {"command": "ATTEMPT_OVER", "socket": "409", "http": "409"}
    assert [(e.attempt, e.summary) for e in pulled.find(ev.WorkerReported)] == [(2, "in time")]
    assert [(e.failure_class, e.counter) for e in pulled.find(ev.AttemptFailed)] == [("stalled", "stalls")]


def late_project(folder: Path) -> Project:
    """Its second attempt still has the token and the desk of the first, which stalled."""
    folder.mkdir(exist_ok=True)
    agent = f'kind = "command"\nargv = ["{sys.executable}", "-E", "-S", "{LATE}", "{folder}"]'
    return Project(folder / "project", agent=agent, policy=health_of()).make()


def test_a_token_of_an_attempt_that_is_over_opens_nothing(tmp_path: Path) -> None:
    """H07: also for somebody who works on the same task; the spool sorts it out as refused."""
    made = late_project(tmp_path)
    assert made.run() == 0
    said = json.loads((tmp_path / "said").read_text())
    assert said == {"heartbeat": 409, "report": 409, "escalate": 409, "messages": 409, "refused": ["late.json"]}
    assert not made.find(ev.WorkerReported) and not made.find(ev.QuestionAsked)
    assert made.state().tasks["a"].attempt.summary == "did it myself"

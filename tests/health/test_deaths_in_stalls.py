"""A lead that dies while it decides about a worker: the next one comes to the same end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from tests.engine.run_projects import Project
from tests.health.behaviour_run import LIMITS, LOOK_SEC, SLACK_SEC, Book, moment, project
from tests.patience import stretched

pytestmark = pytest.mark.whole

LEAD = Path(__file__).with_name("dying_lead.py")


def after_a_death(folder: Path, when: str) -> tuple[Project, Book]:
    made = project(folder, "local-git", "will_not_end", limits={**LIMITS, "stall_sec": 0.8})
    died = subprocess.run([sys.executable, str(LEAD), when], cwd=made.root, capture_output=True, timeout=stretched(60))
    assert died.returncode == -9, died
    assert made.run() == 0
    return made, Book(made)


def means_a_stall(made: Project) -> bool:
    now = made.state().tasks["will_not_end"]
    failed = [(e.failure_class, e.counter) for e in made.find(ev.AttemptFailed)]
    return failed == [("stalled", "stalls")] and (now.attempts, now.counters.stalls, now.counters.respawns) == (2, 1, 0)


@pytest.mark.brief(1)
@pytest.mark.parametrize("when", ["before", "between", "after"])
def test_the_next_lead_decides_as_the_dead_one_did(tmp_path: Path, when: str) -> None:
    """H09 H10 Z03: one stall is counted, no crash; what was decided is carried out, not waited for once more."""
    made, book = after_a_death(tmp_path, when)
    assert means_a_stall(made) and made.processes() == []
    if when != "before":
        second = [moment(r) for r in book.events if isinstance(r.event, ev.LeadStarted)][1]
        ended = book.at("will_not_end", ev.AttemptExited) - second
        assert ended <= 0.5 + LOOK_SEC + SLACK_SEC
        assert len(made.find(ev.WorkerEnding)) == 1


def test_a_worker_that_is_ended_before_it_is_recorded_why_is_found_out(tmp_path: Path) -> None:
    """H09: planted in the lead; then the next one takes the end for a crash."""
    assert not means_a_stall(after_a_death(tmp_path, "without_intent")[0])

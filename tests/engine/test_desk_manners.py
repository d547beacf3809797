"""What a worker says is weighed: a flurry is no habit, too much is refused without losing the report, time is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.scheduling.health import HealthPolicy, HealthWatch, Signs, What, look
from ganger.core.vocabulary import TaskStatus
from ganger.engine.resources.live_attempts import LiveAttempt
from ganger.engine.workers import protocol
from tests.engine.run_projects import Project, leading, task, until
from tests.engine.test_desk_refusals import PULL, Lead

EVERY = 15.0


def post() -> LiveAttempt:
    return LiveAttempt("a", 1, "f", "log", 0.0, Path(), Path())


@pytest.mark.parametrize(
    ("moments", "beats"),
    [((1, 2, 3, 4), 1), ((15, 30, 45), 3), ((15, 30, 31, 45), 3), ((15, 30, 300), 1), ((5, 10, 15, 20), 4)],
)
def test_a_habit_is_made_by_beats_in_time(moments: tuple[float, ...], beats: int) -> None:
    """H02 Z03: a flurry is one beat, a late one begins anew."""
    made = post()
    for moment in moments:
        made.beat(moment, EVERY)
    assert made.beats == beats and made.beat_at == moments[-1]


def test_who_has_the_habit_and_is_at_work_is_not_missed() -> None:
    """H02: used processor time counts for those who beat as well, until that alone has gone on for too long."""
    policy, watch = HealthPolicy(), HealthWatch()
    for now in range(60, 1800, 5):
        found = look(policy, Signs(now, 0.0, beat_at=60.0, beats=5, cpu_at=now), watch)
        watch = found.watch
        assert not [act for act in found.acts if act.what is What.STALLED], now


SAYS = """for part in 1 2 3 4 5 6; do ganger worker progress --step part-$part --json >> said.txt; done
ganger worker report --status DONE --summary "said enough"
ganger worker done"""


def test_who_has_said_enough_still_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H07: what is too much is refused for good, and nothing waits behind it."""
    monkeypatch.setattr(protocol, "_MOST_KEPT", 3)
    agent = 'kind = "command"\nargv = ["sh", "agent.sh"]'
    project = Project(tmp_path, [task("a", timeout_sec=60)], agent=agent, files={"agent.sh": SAYS}).make()
    assert project.run() == 0 and project.status() is TaskStatus.DONE
    assert len(project.find(ev.WorkerBeat)) == 3 and len(project.find(ev.WorkerReported)) == 1
    assert (tmp_path / "said.txt").read_text().count("SAID_ENOUGH") == 3


@pytest.mark.whole
def test_many_beats_are_few_events(tmp_path: Path) -> None:
    """Z09: a worker cannot fill the store by saying how far it is."""
    beats = "for n in $(seq 1 12); do ganger worker heartbeat --percent $n; done\n"
    agent = 'kind = "command"\nargv = ["sh", "agent.sh"]'
    files = {"agent.sh": f"{beats}ganger worker report --status DONE --summary did"}
    project = Project(tmp_path, [task("a", timeout_sec=60)], agent=agent, files=files).make()
    assert project.run() == 0
    assert 1 <= len(project.find(ev.WorkerBeat)) <= 4


@pytest.mark.whole
def test_a_session_can_be_given_more_time_and_knows_what_it_holds(tmp_path: Path) -> None:
    """D14 W03: ganger extend also moves the limit of a task nobody was started for."""
    project = Project(tmp_path, [task("a", timeout_sec=4)], agent=PULL).make()
    with leading(project) as process:
        key, place = project.folder.path / "worker.key", project.folder.path / "worker.json"
        until(lambda: place.exists() and key.exists(), beside=process)
        lead = Lead(project, json.loads(place.read_text())["socket"], bytes.fromhex(key.read_text()), {}, "")
        first = lead.ask("next", lead.join(), {"worker": "ada", "wait_sec": 20, "id": "1"})[1]
        assert project.ganger("extend", "a", "600").returncode == 0
        again = lead.ask("next", lead.join(), {"worker": "ada", "id": "1"})[1]
        other = lead.ask("next", lead.join(), {"worker": "ada", "id": "2"})[1]
        assert first["token"] == again["token"] == other["token"] and "again" not in again and other["again"] is True
        started = project.state().tasks["a"].attempt.started_at
        until(lambda: _seconds_since(started) > 5)
        assert project.status() is TaskStatus.RUNNING and lead.ask("heartbeat", first["token"], {})[0] == 200


def _seconds_since(moment: str) -> float:
    from datetime import UTC, datetime

    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()

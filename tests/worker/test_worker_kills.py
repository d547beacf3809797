"""A worker killed at any instant of a report has lost nothing: what anybody heard of is recorded, or in the spool."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from faults.strace import Point, Strike, points_in
from tests.patience import stretched
from tests.worker.little_lead import ROOM, Body, Worker, leading, taken

REPORT = ("report", "--status", "DONE", "--summary", "all good")
# Sends first and keeps only what could not be sent.
CARELESS = """
def tell(post, verb, body):
    body = named(body)
    try:
        return Outcome(_send(post, verb, post.token, body))
    except Away as away:
        _spool(post).put(verb, post.token, body)
        return Outcome(None, kept=True, later=away.later)
"""


def careless_room(folder: Path) -> Path:
    room = folder / "careless"
    shutil.copytree(ROOM, room, ignore=shutil.ignore_patterns("__pycache__"))
    with open(room / "sending.py", "a") as file:
        file.write(CARELESS)
    return room


def fresh(folder: Path, room: Path = ROOM) -> Worker:
    desk = folder / "desk"
    shutil.rmtree(desk, ignore_errors=True)
    desk.mkdir()
    return Worker(str(folder / "s"), desk, room)


# Between two calls that change nothing a kill finds the same world.
EFFECTS = "mkdirat openat write fsync rename renameat renameat2 flock socket connect sendto recvfrom unlinkat close"


def calls_of_a_report(folder: Path, room: Path = ROOM) -> list[Point]:
    """Every system call that may change anything, from the moment it opens its desk, of a report that is taken."""
    worker, record = fresh(folder, room), folder / "record"
    with leading(worker.socket):
        argv = ["strace", "-qq", "-o", str(record), *worker.argv(*REPORT)]
        subprocess.run(argv, env=worker.environ, check=True, capture_output=True, timeout=stretched(60))
    found = points_in(record, "AF_UNIX" if room != ROOM else str(worker.desk))
    return [point for point in found if point.call in EFFECTS.split()]


def killed_at(worker: Worker, point: Point) -> int:
    argv = ["strace", "-qq", *Strike(point).options(), *worker.argv(*REPORT)]
    return subprocess.run(argv, env=worker.environ, capture_output=True, timeout=stretched(60)).returncode


def losses(folder: Path, point: Point, room: Path = ROOM, *, both_die: bool) -> list[str]:
    """What is wrong after a kill there, and after the next call of the worker. With `both_die` the lead dies as well,
    after it heard the report and before it recorded it."""
    worker, found = fresh(folder, room), []
    with leading(worker.socket, (lambda verb, body: None) if both_die else taken) as lead:
        code = killed_at(worker, point)
    heard, spooled = bool(lead.said), bool(worker.spooled())
    if (heard or code == 0) and not (lead.recorded or spooled):
        found.append(f"{point}: the lead heard it, and it is neither recorded nor kept")
    with leading(worker.socket) as later:
        later.recorded.update(lead.recorded)
        worker.say("heartbeat")
    reports: list[Body] = [body for verb, body in later.recorded.values() if verb == "report"]
    if len(reports) != (1 if heard or spooled else 0):
        found.append(f"{point}: {len(reports)} reports in the end")
    if list((folder / "desk" / "spool").glob("*.json")):
        found.append(f"{point}: something is left in the spool")
    return found


@pytest.mark.whole
@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    "both_die", [pytest.param(False, marks=pytest.mark.slow), True], ids=["the worker dies", "both die"]
)
def test_a_kill_at_any_system_call_of_a_report_loses_nothing(tmp_path: Path, both_die: bool) -> None:
    """H07: acknowledged, or in the spool; and recorded once in the end."""
    points = calls_of_a_report(tmp_path)
    assert {"fsync", "connect", "sendto", "recvfrom", "unlinkat"} <= {point.call for point in points}
    assert [loss for point in points for loss in losses(tmp_path, point, both_die=both_die)] == []


@pytest.mark.needs("strace")
def test_from_the_moment_it_is_in_the_spool_a_report_always_arrives(tmp_path: Path) -> None:
    """H07: nobody need have heard of it."""
    points = calls_of_a_report(tmp_path)
    kept = next(n for n, point in enumerate(points) if point.call.startswith("rename"))
    worker = fresh(tmp_path)
    killed_at(worker, points[kept + 1])
    assert [verb for verb, _ in worker.spooled()] == ["report"]
    with leading(worker.socket) as lead:
        assert worker.say("done").code == 0
    assert lead.verbs() == ["report", "done"]


@pytest.mark.needs("strace")
def test_a_spool_that_sends_before_it_writes_is_caught(tmp_path: Path) -> None:
    """H07: planted; the harness sees the report that died with both."""
    room = careless_room(tmp_path)
    points = calls_of_a_report(tmp_path, room)
    assert any(losses(tmp_path, point, room, both_die=True) for point in points)


def test_a_report_is_on_the_disk_before_its_first_byte_is_sent(tmp_path: Path) -> None:
    """H07: file and folder are synced, then somebody is spoken to."""
    worker = fresh(tmp_path)
    seen: list[str] = []
    with leading(worker.socket) as lead:

        def look(verb: str, body: Body) -> tuple[int, Body]:
            seen.extend(json.loads(file.read_text())["body"]["id"] for file in (worker.desk / "spool").iterdir())
            return taken(verb, body)

        lead.answers = look
        assert worker.say(*REPORT).code == 0
    assert seen == [lead.said[0][2]["id"]]

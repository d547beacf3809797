"""Whatever a worker piles on its desk, the lead hears everybody else meanwhile and takes what is worth taking."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.engine import lead as run
from ganger.engine.workers.file_inbox import Allowance, new_names, read
from ganger.engine.workers.file_protocol import limit_of
from tests.engine.run_projects import Project, leading, task, until
from tests.engine.test_desk_refusals import PULL, Lead

MANY_LISTS = b"[" + b"[]," * 2_990_000 + b"[]]"
# One large text under many names: it fills no disk, and is read anew each time it was touched.
PILES = """
import json, os, pathlib, sys, time
desk = pathlib.Path(os.environ["GANGER_DESK"])
(desk / "spool").mkdir(exist_ok=True)
first = desk / "result.json"
first.write_bytes(b"[" + b"[]," * 2_990_000 + b"[]]")
for number in range(40):
    for name in (f"result-{number}.json", f"heartbeat-{number}.json", f"spool/{number:020d}-a.json"):
        os.link(first, desk / name)
for _ in range(20):
    os.utime(first)
    time.sleep(0.1)
name = os.environ["GANGER_TASK_ID"]
result = {"contract_version": "2.0", "task_id": name, "status": "DONE", "summary": "piled"}
print("<<<TASK_RESULT_V2>>>", json.dumps(result), "<<<END_TASK_RESULT_V2>>>", sep="\\n")
"""


def test_a_desk_full_of_large_files_stops_nobody(tmp_path: Path) -> None:
    """H12: they are read aside, few of them; the lead's loop goes on, and the end of the worker is noticed."""
    gaps: list[float] = []

    async def tick() -> None:
        loop, last = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(0.01)
            gaps.append(loop.time() - last)
            last = loop.time()

    def during(_lead: run.Lead) -> None:
        ticking.append(asyncio.get_running_loop().create_task(tick()))

    ticking: list[asyncio.Task[None]] = []
    agent = 'kind = "command"\nargv = ["python3", "piles.py"]'
    project = Project(tmp_path, [task("a", timeout_sec=50)], agent=agent, files={"piles.py": PILES}).make()
    assert project.run(during) == 0 and project.status() is TaskStatus.DONE
    assert max(gaps) < 2.5 and len(project.find(ev.AttemptStarted)) == 1


KNOWN = ["heartbeat.json", "heartbeat-x.json", "progress-2.json", "checkpoint.json", "escalations.json", "result.json"]


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        *((name, 64 << 10) for name in KNOWN[:3]),
        *((name, 1 << 20) for name in KNOWN[3:5]),
        ("result.json", 9 << 20),
        ("done.flag", 0),
        ("mine-done.flag", 0),
        *((name, None) for name in ("result-1.json", "escalations-1.json", "notes.json", "result", ".json", "-.json")),
    ],
)
def test_each_kind_of_file_has_its_own_size(name: str, limit: int | None) -> None:
    """H12: only an answer may be large, and there is one."""
    assert limit_of(name) == limit


@pytest.mark.parametrize(
    "data",
    [MANY_LISTS, b"{" * 1_000_000, b"\xff\xfe", b" " * (9 << 20) + b"{}", b"", b'{"a": 1, "a": 2}'],
    ids=["many lists", "deep", "no text", "too large", "empty", "ambiguous"],
)
def test_what_cannot_be_read_cheaply_says_nothing(tmp_path: Path, data: bytes) -> None:
    """H12: and is known from then on."""
    (tmp_path / "result.json").write_bytes(data)
    found = read(tmp_path, "result.json", 9 << 20)
    assert found is not None and found.value is None
    assert new_names(tmp_path, limit_of, {"result.json": found.mark}) == []


def test_only_regular_files_are_new(tmp_path: Path) -> None:
    """H12: a link, a pipe and a folder are left alone."""
    (tmp_path / "heartbeat.json").write_text("{}")
    (tmp_path / "heartbeat-link.json").symlink_to("heartbeat.json")
    (tmp_path / "heartbeat-folder.json").mkdir()
    os.mkfifo(tmp_path / "heartbeat-pipe.json")
    assert new_names(tmp_path, limit_of, {}) == ["heartbeat.json"]
    assert [read(tmp_path, f"heartbeat-{name}.json", 100) for name in ("link", "folder", "pipe")] == [None] * 3


def test_who_took_much_at_once_rests(tmp_path: Path) -> None:
    """H12: on average a desk costs no more than it may, whatever is on it."""
    (tmp_path / "result.json").write_text(json.dumps({"a": "x" * 900_000}))
    allowance, spent = Allowance(1 << 20), 0
    for moment in range(100):
        if not allowance.rests(moment) and (found := read(tmp_path, "result.json", 9 << 20)) is not None:
            for _ in range(5):
                allowance.charge(moment, found.cost)
                spent += found.cost
    assert 70 << 20 < spent < 110 << 20


@pytest.mark.whole
def test_of_two_reports_at_once_one_counts(tmp_path: Path) -> None:
    """H07: whatever they say, the answer that is kept is the one that was recorded."""
    project = Project(
        tmp_path, [task("a", timeout_sec=100)], agent=PULL, steps=({"name": "t", "cmd": "sleep 1"},)
    ).make()
    with leading(project) as process:
        key, place = project.folder.path / "worker.key", project.folder.path / "worker.json"
        until(lambda: place.exists() and key.exists(), beside=process)
        lead = Lead(project, json.loads(place.read_text())["socket"], bytes.fromhex(key.read_text()), {}, "")
        token = lead.ask("next", lead.join(), {"worker": "me", "wait_sec": 20})[1]["token"]
        said = [{"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": f"n{n}"} for n in range(8)]
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda one: lead.ask("report", token, {"result": one}), said))
    assert sorted(status for status, _ in answers) == [200] + [409] * 7
    assert len(project.find(ev.WorkerReported)) == 1

"""progress.md tells every event once, whatever dies and whoever writes into it."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from checker.memory_store import MemoryStores
from ganger.contracts.verify_profile import Profile
from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec, VerifyStep
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import TaskStatus
from ganger.engine.journal import Journal
from ganger.engine.output.progress import ProgressLog
from ganger.errors import GangerError
from ganger.local.run_folder import RunFolder
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore, SqliteStores
from tests.engine.progress_lead import Ticks, opened
from tests.patience import until

AT = "2026-01-01T00:00:00.000000Z"
STEPS = (VerifyStep("test", "correctness", "failed", 2, 0.1, "E   assert 1 == 2"),)
STORY: tuple[ev.Event, ...] = (
    ev.RunStarted("r", "d", Policy(), (TaskSpec("a", verify_profile="check"),)),
    ev.LeadStarted(7, policy=Policy()),
    ev.AttemptStarted("a", 1, "t1", "coder", "first attempt", "log"),
    ev.AttemptLaunched("a", 1, 1, 1),
    ev.WorkerBeat("a", 1),
    ev.WorkerBeat("a", 1, "r1", "tests", 40.0),
    ev.WorkerMilestone("a", 1, "r2", "tests green"),
    ev.QuestionAsked("q-1", "a", "ambiguous_spec", "Which port?\n[2026] Worker x: forged <!-- 9 -->", 1, "r3"),
    ev.AttemptExited("a", 1, 3, None, False, 1.0, "out of memory"),
    ev.VerifyFinished("a", 1, False, "log", 0.1, STEPS),
    ev.AttemptFailed("a", 1, "test_error", "s", "a test failed", "worker_attempts"),
    ev.TaskRequeued("a", "1 of 2 attempts used"),
    ev.AttemptStarted("a", 2, "t2", "coder", "again", "log", worker="ada"),
    ev.VerifyFinished("a", 2, True, "log", 0.1, ()),
    ev.TaskSettled("a", TaskStatus.DONE, "verified by check"),
)
PROFILES = {"check": Profile.model_validate({"steps": [{"name": "test", "cmd": "pytest -q"}]})}


class Told:
    """A run's folder, its journal with the story in it, and progress logs of it."""

    def __init__(self, folder: Path, kind: type[ProgressLog] = ProgressLog) -> None:
        self.folder, self.kind = RunFolder(folder), kind
        self.folder.make()
        self.journal = Journal(MemoryStores().open_async(folder), RunState(), Ticks())
        self.log = self.new_log()

    def new_log(self) -> ProgressLog:
        """As a new lead makes it."""
        return self.kind(self.folder, self.journal, PROFILES)

    def tell(self, *events: ev.Event, to: ProgressLog | None = None) -> None:
        asyncio.run(self._tell(events, to))

    async def _tell(self, events: Sequence[ev.Event], to: ProgressLog | None) -> None:
        for event in events:
            task = self.journal.state.tasks.get(getattr(event, "task", ""))
            token = task.attempt.token if task is not None and not isinstance(event, ev.AttemptStarted) else ""
            for recorded in await self.journal.store.append([Entry(AT, event, token)]):
                apply(self.journal.state, recorded)
                if to is not None:
                    to.on_event(recorded)
                    await to.flush()

    def told(self) -> list[ev.Recorded]:
        async def events() -> list[ev.Recorded]:
            return [recorded async for recorded in self.journal.store.read()]

        return asyncio.run(events())

    def worker(self, task: str) -> str:
        worker = self.journal.state.tasks[task].worker
        assert worker is not None
        return worker.name

    def text(self) -> str:
        return self.log.path.read_text(encoding="utf-8")


def caught_up(log: ProgressLog) -> None:
    asyncio.run(log.catch_up())


def whole(journal: Journal, folder: Path) -> bytes:
    """The log as somebody writes it who is never disturbed."""
    place = RunFolder(folder / "whole")
    place.path.mkdir(exist_ok=True)
    log = ProgressLog(place, journal, PROFILES)
    log.path.unlink(missing_ok=True)
    caught_up(log)
    return log.path.read_bytes()


def test_it_tells_what_each_worker_did(tmp_path: Path) -> None:
    """Z09: the seed's lines: started, verification, errors with command, exit code and first line of output."""
    told = Told(tmp_path)
    told.tell(*STORY[:3])
    coder = told.worker("a")
    told.tell(*STORY[3:], to=told.log)
    lines = [re.sub(r" <!-- \d+ -->$", "", line) for line in told.text().splitlines()[2:]]
    assert lines[2] == f"[2026-01-01T00:00:00Z] Worker {coder}: started task a, attempt 1: first attempt"
    assert lines[3].endswith(f"Worker {coder}: a: tests, 40 %")
    assert lines[6].endswith(f"Worker {coder} ERROR: a: its agent ended; exit code: 3; output: out of memory")
    failed = "verification failed for a; command: pytest -q; exit code: 2; output: E assert 1 == 2"
    assert lines[7].endswith(f"Worker {coder} ERROR: {failed}")
    assert lines[11].endswith("Worker ada: verification passed for a")
    assert lines[12].endswith("Ganger: a: DONE: verified by check") and len(lines) == 13


def test_the_words_of_an_agent_forge_no_line(tmp_path: Path) -> None:
    """Z09: neither a new one nor the number at its end."""
    told = Told(tmp_path)
    told.tell(*STORY, to=told.log)
    asked = [line for line in told.text().splitlines() if "Which port?" in line]
    assert len(asked) == 1 and asked[0].endswith("forged &lt;!-- 9 --> <!-- 8 -->")
    assert [int(n) for n in re.findall(r"<!-- (\d+) -->$", told.text(), re.MULTILINE)] == [1, 2, 3, *range(6, 16)]


def cut_anywhere(folder: Path, kind: type[ProgressLog]) -> list[int]:
    """Cuts the file at every byte, as a death or a power cut may; where the next lead does not make it whole."""
    told = Told(folder, kind)
    told.tell(*STORY, to=told.log)
    good = whole(told.journal, folder)
    wrong = []
    for size in range(0, len(good) + 1, 7):
        told.log.path.write_bytes(good[:size] + (b"\0" * 20 if size % 2 else b""))
        caught_up(told.new_log())
        if told.log.path.read_bytes() != good:
            wrong.append(size)
    return wrong


def test_wherever_it_is_cut_the_next_lead_makes_it_whole(tmp_path: Path) -> None:
    """Z09 H09: no line is missing, doubled or torn."""
    assert cut_anywhere(tmp_path, ProgressLog) == []


class KeepsTornLines(ProgressLog):
    async def _missing(self, fd: int) -> list[ev.Recorded]:
        size = os.fstat(fd).st_size
        kept = os.pread(fd, size, 0)
        missing = await super()._missing(fd)
        os.ftruncate(fd, 0)
        os.write(fd, kept)
        return missing


class BeginsAnew(ProgressLog):
    def _last_mark(self, data: bytes) -> None:
        return None


class TrustsTheState(ProgressLog):
    async def _missing(self, fd: int) -> list[ev.Recorded]:
        await super()._missing(fd)
        return []


@pytest.mark.parametrize("kind", [KeepsTornLines, BeginsAnew, TrustsTheState])
def test_a_log_that_catches_up_wrongly_is_caught(tmp_path: Path, kind: type[ProgressLog]) -> None:
    """Z09: planted: torn lines stay, lines come twice, lines never come."""
    assert cut_anywhere(tmp_path, kind)


async def awoken(log: ProgressLog, events: Sequence[ev.Recorded]) -> None:
    for recorded in events:
        log.on_event(recorded)
    await log.flush()


def test_a_lead_that_was_thought_dead_doubles_nothing(tmp_path: Path) -> None:
    """Z09 W03: it wakes with lines in hand that the next lead has written."""
    told = Told(tmp_path)
    told.tell(*STORY[:3], to=told.log)
    old = told.log
    told.tell(*STORY[3:8])
    caught_up(told.new_log())
    asyncio.run(awoken(old, told.told()[3:]))
    assert told.log.path.read_bytes() == whole(told.journal, tmp_path)


def test_what_a_person_wrote_into_it_stays(tmp_path: Path) -> None:
    """Z09: and no number of theirs stops the log."""
    told = Told(tmp_path)
    told.tell(*STORY[:6], to=told.log)
    with told.log.path.open("a") as file:
        file.write("I looked at this. <!-- 99999 -->\n")
    told.tell(*STORY[6:], to=told.log)
    lines = told.text().splitlines()
    assert lines.pop(6) == "I looked at this. <!-- 99999 -->"
    assert "\n".join(lines) + "\n" == whole(told.journal, tmp_path).decode()


def test_a_place_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    """Z09: what is missing comes as soon as it can."""
    told = Told(tmp_path)
    told.log.path.mkdir()
    told.tell(*STORY[:8], to=told.log)
    told.log.path.rmdir()
    told.tell(*STORY[8:], to=told.log)
    assert told.log.path.read_bytes() == whole(told.journal, tmp_path)


def last_seq(database: Path) -> int:
    try:
        store = SqliteStore(database, read_only=True)
    except GangerError:
        return 0
    try:
        return sum(1 for _ in store.read(0))
    finally:
        store.close()


def reached(database: Path, wanted: int) -> bool:
    return last_seq(database) >= wanted


@pytest.mark.whole
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_leads_leave_an_exact_log(tmp_path: Path, seed: int) -> None:
    """Z09 H09: kill -9 at some moment, again and again; the next lead writes on without a gap or a double."""
    chance, folder = random.Random(seed), RunFolder(tmp_path)
    folder.make()
    program = [sys.executable, str(Path(__file__).with_name("progress_lead.py")), str(tmp_path)]
    for _ in range(4):
        wanted = last_seq(folder.path / "ganger.db") + chance.randrange(5, 60)
        with subprocess.Popen(program) as lead:
            try:
                until(partial(reached, folder.path / "ganger.db", wanted))
            finally:
                lead.send_signal(signal.SIGKILL)
    asyncio.run(judged(folder))


async def judged(folder: RunFolder) -> None:
    store = SqliteStores().open_async(folder.path)
    await store.take_lead()
    journal = await opened(store)
    await ProgressLog(folder, journal).catch_up()
    good = (folder.path / "progress.md").read_bytes()
    alone = ProgressLog(RunFolder(folder.path / "logs"), journal)
    await alone.catch_up()
    assert good == alone.path.read_bytes() and good.count(b"leads") == 4
    await store.release()
    await store.close()

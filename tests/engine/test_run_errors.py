"""When the ground gives way: a failing store, a full disk, a reader that goes away."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from ganger.core import events as ev
from ganger.core.state.projection import state_text
from ganger.core.vocabulary import TaskStatus
from ganger.engine.lead import Lead
from ganger.errors import DiskFullError, RollbackFailed, StoreError
from ganger.ports.processes import Launch, Running
from ganger.ports.store import Entry, Store
from tests.engine.run_projects import Project, done, require_state_2_0, task, write
from tests.patience import stretched

pytestmark = pytest.mark.whole


class Failing:
    """A store that works until its n-th commit; that one may be on disk although it is reported as failed."""

    def __init__(self, store: Store, fails_at: int, *, stored: bool = False) -> None:
        self.store, self.left, self.stored = store, fails_at, stored

    async def append(self, batch: Sequence[Entry]) -> list[ev.Recorded]:
        self.left -= 1
        if self.left == 0 and self.stored:
            await self.store.append(batch)
        if self.left <= 0:
            raise StoreError("the disk reports errors", hint="check it")
        return await self.store.append(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def run_until_commit(project: Project, fails_at: int, *, stored: bool) -> bool:
    """True when the run met the failing commit; then the error was named."""

    def during(lead: Lead) -> None:
        lead.journal.store = cast("Store", Failing(lead.journal.store, fails_at, stored=stored))

    try:
        assert project.run(during=during) == 0
    except StoreError as error:
        assert error.message == "the disk reports errors"
        return True
    return False


SCRIPT = {"a": done(write("a.txt", "x")), "b": [[{"delay": 0.2}, done(write("b.txt", "x"))]]}


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["every fourth", "each"])
@pytest.mark.parametrize("stored", [False, True], ids=["lost", "stored-but-reported-lost"])
def test_a_store_that_fails_at_any_commit_ends_the_run_and_the_next_one_finishes_it(
    tmp_path: Path, stored: bool, every: int
) -> None:
    """T19 T20 G01: fail the 1st, 2nd … commit until a run passes; nothing is lost and no agent is started twice."""
    for fails_at in range(1 + stored * (every // 2), 60, every):
        project = Project(tmp_path / str(fails_at), [task("a"), task("b")], SCRIPT, policy="concurrency = 2").make()
        if not run_until_commit(project, fails_at, stored=stored):
            break
        assert project.run() == 0 and {"a.txt", "b.txt"} <= set(project.tree()) and project.processes() == []
        assert sorted(event.task for event in project.find(ev.AttemptLaunched)) == ["a", "b"]
        assert project.state().log.refused == [] and not list((project.folder.path / "backups").iterdir())
    assert 5 < fails_at < 57


def break_in_verification(lead: Lead) -> None:
    """The store breaks while a verification runs, and the next event finds out."""

    def heard(entry: ev.Recorded) -> None:
        if isinstance(entry.event, ev.VerifyStarted):
            lead.journal.store = cast("Store", Failing(lead.journal.store, 1))
            asyncio.get_running_loop().call_later(0.2, lead.journal.record, ev.StopRequested("x"))

    lead.journal.listeners.append(heard)


def test_an_error_in_verification_leaves_it_to_the_next_lead(tmp_path: Path) -> None:
    """T18 T19: what was running is ended, verification runs again, and only then is the change kept."""
    steps = ({"name": "s", "cmd": "sleep 30"},)
    project = Project(tmp_path, script={"a": done(write("a.txt", "x"))}, steps=steps).make()
    with pytest.raises(StoreError):
        project.run(during=break_in_verification)
    assert project.status() is TaskStatus.RUNNING and len(project.processes()) == 1
    (tmp_path / "verify.json").write_text((tmp_path / "verify.json").read_text().replace("sleep 30", "true"))
    assert project.run() == 0 and (tmp_path / "a.txt").exists() and project.processes() == []
    assert project.happened().count("writes_intended") == 1 and len(project.find(ev.AttemptStarted)) == 1


def fill_disk_at_verification_of_b(lead: Lead) -> None:
    start = lead.tools.launcher.start

    async def full(launch: Launch) -> Running:
        if "b.verify" in launch.key:
            raise DiskFullError("the log cannot be opened: the disk is full")
        return await start(launch)

    lead.tools.launcher.start = full  # type: ignore[method-assign]


def test_a_full_disk_ends_the_lead_and_leaves_the_agents_to_the_next_one(tmp_path: Path) -> None:
    """T19 G01: nobody's work is thrown away; the state file is exact, and the same agents are taken up again."""
    slow = [[{"delay": 1}, {"result": "DONE"}]]
    project = Project(tmp_path, [task("a"), task("b")], {"a": slow}, policy="concurrency = 2").make()
    with pytest.raises(DiskFullError):
        project.run(during=fill_disk_at_verification_of_b)
    assert project.folder.state.read_text() == state_text(project.state())
    assert [project.status(name) for name in "ab"] == [TaskStatus.RUNNING] * 2
    assert project.run() == 0 and len(project.find(ev.AttemptStarted)) == 2


def test_files_that_cannot_be_put_back_stop_the_run_and_keep_the_backup(tmp_path: Path) -> None:
    """T18: nobody goes on over a tree in an unknown state."""
    project = Project(tmp_path, script={"a": done(write("a.txt", "new", op="replace"))}, files={"a.txt": "old"})
    project.steps = (
        {"name": "test", "cmd": "rm -rf .ganger/r1/backups/a.1/00000.orig"},
        {"name": "no", "cmd": "false"},
    )
    project.make()
    with pytest.raises(RollbackFailed):
        project.run()
    assert project.status() is TaskStatus.RUNNING and list((project.folder.path / "backups").iterdir())


FULL = """
mount -t tmpfs -o size=700k none "$XDG_STATE_HOME" || exit 77
"$1" -m ganger run --json > first.txt 2> errors.txt; echo $?
rm -f "$XDG_STATE_HOME"/ganger/*/r1/logs/*
printf '{}' > script.json
"$1" -m ganger run > second.txt 2>> errors.txt; echo $?
"$1" -m ganger state export > state.txt
"""


@pytest.mark.needs("root", "unshare", "mount")
def test_a_full_disk_ends_the_run_by_name_and_the_run_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T19 T20: exit code 1, DISK_FULL, no traceback; then everything is done."""
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    tmp_path = tmp_path / "p"
    project = Project(tmp_path, [task(n) for n in "abc"], default={"garbage": "x" * 900_000}).make()
    words = ["unshare", "-m", "--propagation", "private", "sh", "-c", FULL, "sh", sys.executable]
    made = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=stretched(60))
    if made.returncode == 77:
        assert os.environ.get("CI") != "true", "this test must run where CI=true"
        pytest.skip("no private mount here")
    assert made.stdout.split() == ["1", "0"], (tmp_path / "errors.txt").read_text()
    assert "DISK_FULL" in (tmp_path / "first.txt").read_text()
    assert "Traceback" not in (tmp_path / "errors.txt").read_text()
    require_state_2_0((tmp_path / "state.txt").read_text())
    assert project.processes() == []


def test_a_reader_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    """T23: as in `ganger run --json | head -1`: agents are paid, whoever listens."""
    project = Project(tmp_path, [task("a"), task("b", "a")]).make()
    lead = project.start("--json")
    assert lead.stdout is not None and lead.stderr is not None
    lead.stdout.readline()
    lead.stdout.close()
    assert lead.wait(20) == 0 and "Traceback" not in lead.stderr.read()
    lead.stderr.close()
    assert project.processes() == []


@pytest.mark.parametrize("place", ["logs", "prompts"])
def test_a_run_folder_that_cannot_be_written_is_named(tmp_path: Path, place: str) -> None:
    """T19: exit code 1 and a sentence; no task is blamed for it."""
    project = Project(tmp_path).make()
    project.folder.path.mkdir(parents=True)
    (project.folder.path / place).write_text("in the way")
    made = project.ganger("run", "--json")
    assert made.returncode == 1 and "NOT_WRITABLE" in made.stdout and os.fspath(project.folder.path) in made.stdout

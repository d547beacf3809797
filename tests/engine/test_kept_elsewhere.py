"""A run whose events another store keeps: nothing but one line of the table says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.app.control import tell
from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.engine.lead import Lead
from ganger.stores import table
from tests.engine.run_projects import Project, done, require_state_2_0, task, write

pytestmark = pytest.mark.whole
FOLDER = "tests.promises.folder_store:FolderStores"


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "KINDS", (FOLDER, *table.KINDS))


def project(root: Path, *names: str) -> Project:
    script = {name: done(write(f"{name}.txt", name)) for name in names}
    return Project(root, [task(name) for name in names], script).make()


@pytest.mark.usefixtures("elsewhere")
def test_a_run_is_carried_by_a_store_that_is_one_line_of_the_table(tmp_path: Path) -> None:
    """T19 T20: led, controlled, read and finished; SQLite has no part in it."""
    run = project(tmp_path, "a", "b")
    assert run.run() == 0 and list(run.folder.path.rglob("*.db")) == []
    assert (run.folder.path / "events" / "000000001.json").is_file() and len(run.find(ev.LeadStarted)) == 1
    assert [run.status(name) for name in "ab"] == [TaskStatus.DONE] * 2
    require_state_2_0(run.ganger("state", "export").stdout)
    assert run.ganger("status").returncode == 0 and not tell(run.folder, run.state(), "pause", {}).refused
    assert run.run(during=resume_when_paused) == 0
    assert [event.kind for event in run.find(ev.CommandTaken)] == ["pause", "resume"]


def resume_when_paused(lead: Lead) -> None:
    """A person's command reaches the lead that runs."""
    folder, state = lead.tools.folder, lead.state

    def on_event(recorded: ev.Recorded) -> None:
        if isinstance(recorded.event, ev.RunPaused):
            tell(folder, state, "resume", {}, 0)

    lead.journal.listeners.append(on_event)


def test_a_run_that_has_begun_stays_in_its_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T20: whatever keeps new runs meanwhile."""
    run = project(tmp_path, "a", "b")
    assert run.run(only=("a",)) != 2
    monkeypatch.setattr(table, "KINDS", (FOLDER, *table.KINDS))
    assert run.run() == 0 and not (run.folder.path / "events").exists()
    assert len(run.find(ev.LeadStarted)) == 2 and run.status("b") is TaskStatus.DONE

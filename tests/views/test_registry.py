"""The registry: who works where, on what, since when and how far; which accounts wait."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.model.workers import TierMark
from ganger.core.state.snapshot import decode_state, encode_state
from ganger.core.times import stamp
from ganger.core.vocabulary import BlockReason, Mode, TaskStatus
from ganger.views.run.registry import WorkerRow, registry, waiting_accounts
from tests.views.worker_story import BEGAN, Story

FOLDER, ROOT = Path("/p/.ganger/r1"), Path("/p")


def rows(story: Story, *, past: bool = False) -> list[WorkerRow]:
    return registry(story.state, FOLDER, ROOT, past=past)


def busy() -> Story:
    """A spawned worker that talks, and a session that asked for work."""
    story = Story()
    story.start("api", sec=0)
    tiers = (TierMark(1, "syntax"), TierMark(2, "correctness", False, 1))
    story.record(ev.WorkerBeat("api", 1, "r1", "write tests", 40.0, "slow", tiers, 55.0), sec=100)
    story.record(ev.WorkerMilestone("api", 1, "r2", "first green"), sec=110)
    story.start("db", worker="ada", sec=30)
    return story


def test_every_worker_at_work_has_a_row_with_all_that_is_known() -> None:
    """D11 Z09: who, where, on what, in which step and milestone, since when."""
    story = busy()
    spawned, pulled = rows(story)
    named = (spawned.worker, spawned.task, spawned.attempt, spawned.agent, spawned.role)
    assert named == (story.worker("api"), "api", 1, "coder", "worker")
    how_far = (spawned.state, spawned.step, spawned.percent, spawned.milestone)
    assert how_far == ("EXECUTING", "write tests", 40.0, "first green")
    assert spawned.last_sign == stamp(BEGAN + 110) and spawned.workspace == "/p" and spawned.context_pct == 55.0
    assert (pulled.worker, pulled.pulled, pulled.state, pulled.since) == ("ada", True, "EXECUTING", stamp(BEGAN + 30))


def test_a_row_is_one_line_that_needs_no_colour() -> None:
    """Z09 D14: what is suspicious says so in words."""
    story = busy()
    story.record(ev.WorkerSuspected("db", 1, "no sign of it for 5 min", "message"), sec=330)
    first, second = (row.line(stamp(BEGAN + 340)) for row in rows(story))
    assert first == (
        f"api #1 {story.worker('api')}: EXECUTING since 5 min 40 s, write tests, 40 %, milestone first green, "
        "tier 1 syntax passed, tier 2 correctness failed at retry 1, seen 3 min 50 s ago, context 55 %"
    )
    assert second == "db #1 ada (pull): EXECUTING since 5 min 10 s, SUSPICIOUS: no sign of it for 5 min"


def test_the_document_has_null_for_what_nobody_knows() -> None:
    """Z09: and is JSON."""
    row = json.loads(json.dumps(rows(busy())[1].as_json()))
    assert row["step"] is None and row["tiers"] == [] and row["percent"] is None and row["task"] == "db"


def test_done_and_total_are_counted_per_worker() -> None:
    """Z09: a session by its name, spawned ones by their agent."""
    story = busy()
    story.finish("api")
    story.start("ui")
    ui, db = sorted(rows(story), key=lambda row: row.task == "db")
    assert (ui.tasks_done, ui.tasks_total) == (1, 2) and (db.tasks_done, db.tasks_total) == (0, 1)


def test_past_workers_of_unfinished_tasks_are_shown_on_demand() -> None:
    """D11: those at work first."""
    story = busy()
    story.record(ev.TaskSettled("api", TaskStatus.BLOCKED, "crashed twice", BlockReason.PAUSED))
    assert [row.task for row in rows(story)] == ["db"]
    assert [(row.task, row.state) for row in rows(story, past=True)] == [("db", "EXECUTING"), ("api", "STOPPED")]
    assert rows(story, past=True)[1].line(stamp(BEGAN)).endswith("task BLOCKED")


def test_in_a_git_mode_the_workspace_is_the_attempts_own() -> None:
    """D11: where it works."""
    story = Story(mode=Mode.LOCAL_GIT)
    story.start("api")
    assert rows(story)[0].workspace == "/p/.ganger/r1/work/api.1"


def test_the_registry_survives_a_restart() -> None:
    """D11: it is the same from a snapshot."""
    story = busy()
    again = decode_state(encode_state(story.state))
    assert again is not None and registry(again, FOLDER, ROOT) == rows(story)


@pytest.mark.parametrize(("now", "shown"), [(BEGAN + 10, ["work"]), (BEGAN + 1000, [])])
def test_accounts_out_of_quota_are_shown_until_they_are_back(now: float, shown: list[str]) -> None:
    """Z09 W07: with the time, and how many tasks wait."""
    story = Story()
    story.record(ev.AccountPaused("work", BEGAN + 610, "quota"))
    found = waiting_accounts(story.state, now)
    assert [row.account for row in found] == shown
    assert all(
        row.line == "account work is out of quota until 2026-01-01T00:10:10Z (10 min 00 s); 2 tasks wait for it"
        for row in found
    )

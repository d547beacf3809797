"""Agent programs that misbehave, run for real: each ends as the table says, and no healthy one is ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.core import events as ev
from tests.health.behaviour_run import LIMITS, LOOK_SEC, SLACK_SEC, Book, complaints, project
from tests.health.behaviour_table import BEING_WELL, BREAKING, GETTING_NOWHERE, LOSING_MESSAGES, WELL

pytestmark = pytest.mark.whole

MODES = ("direct", "local-git")
SLOW_DIRECT = (pytest.param("direct", marks=pytest.mark.slow), "local-git")
# They take the longest, and where they work changes nothing for them.
LONG = ("hangs", "loops", "babbles")


@pytest.mark.quick
@pytest.mark.brief(1)
@pytest.mark.parametrize("mode", MODES)
def test_whatever_breaks_is_noticed_at_once_and_keeps_what_it_said(tmp_path: Path, mode: str) -> None:
    """H04 H07: crash at start, at work, after its answer, report or mark; half a request, a lost acknowledgement."""
    made = project(tmp_path, mode, *BREAKING)
    assert made.run() == 4
    assert complaints(Book(made), BREAKING) == []


@pytest.mark.parametrize("mode", SLOW_DIRECT)
def test_whatever_gets_nowhere_is_ended_at_its_limit(tmp_path: Path, mode: str) -> None:
    """H02 H03 H08 Z03: silence, loops, floods, prompts, stopped, half dead, its own children; each by its own limit."""
    rows = {name: row for name, row in GETTING_NOWHERE.items() if name not in LONG or mode == "local-git"}
    made = project(tmp_path, mode, *rows)
    assert made.run() == (4 if "hangs" in rows else 0)
    assert complaints(Book(made), rows) == []
    told = json.loads(made.ganger("why", "is_stopped", "--json").stdout)
    assert told["counters"]["stalls"] == "1 of 2" and any("stopped by a signal" in line for line in told["evidence"])


@pytest.mark.parametrize("mode", SLOW_DIRECT)
def test_nobody_who_is_well_is_ended(tmp_path: Path, mode: str) -> None:
    """H02 H08: words, files, processor time, beats or an answer are each enough; children and zombies hold nothing."""
    rows = {**BEING_WELL, **({"writes_slowly": WELL} if mode == "local-git" else {})}
    made = project(tmp_path, mode, *rows)
    assert made.run() == 0
    assert complaints(Book(made), rows) == []


def test_a_done_mark_without_a_report_is_settled_from_what_is_there(tmp_path: Path) -> None:
    """H06 H07: from its answer, from its checkpoint, by asking; else it has crashed. Found within one heartbeat."""
    made = project(tmp_path, "local-git", *LOSING_MESSAGES)
    assert made.run() == 0
    book = Book(made)
    assert complaints(book, LOSING_MESSAGES) == []
    for name in ("marks_and_stays", "marks_too_early"):
        asked = book.at(name, ev.WorkerSuspected) - book.noted(name)
        assert asked <= LIMITS["heartbeat_sec"] + 2 * LOOK_SEC + SLACK_SEC

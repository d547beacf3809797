"""Leads of the delivery demo that are stopped or killed while CI goes on; the last one brings everything home."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from ganger.app.runs import read_events, read_state
from ganger.core import events as ev
from ganger.demo.delivery import build_delivery, shortcomings
from ganger.local.run_folder import RunFolder

End = tuple[str, int, signal.Signals]
INT, KILL = signal.SIGINT, signal.SIGKILL


def lead(office: Path, end: End | None) -> None:
    """Leads until the event has come so often, and is ended then."""
    words = [sys.executable, "-m", "ganger", "run", "--json"]
    with subprocess.Popen(words, cwd=office, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert process.stdout is not None
        left = end[1] if end is not None else 0
        for line in process.stdout:
            left -= end is not None and json.loads(line).get("type") == end[0]
            if end is not None and left == 0:
                process.send_signal(end[2])
                break
        process.stdout.read()
    assert end is not None or process.returncode == 0


@pytest.mark.whole
@pytest.mark.parametrize(
    "ends",
    [
        [("ci_seen", 2, INT), ("ci_seen", 3, KILL), ("retriggered", 1, KILL)],
        pytest.param([("push_intended", 1, KILL), ("pushed", 1, KILL), ("ci_seen", 1, KILL)], marks=pytest.mark.slow),
        pytest.param([("ci_judged", 1, KILL), ("ci_judged", 1, INT), ("ci_seen", 3, INT)], marks=pytest.mark.slow),
        pytest.param([("retrigger_intended", 1, KILL), ("mirror_proved", 1, KILL)], marks=pytest.mark.slow),
    ],
)
def test_however_leads_end_nothing_is_pushed_or_paid_twice_and_all_is_proved(
    tmp_path: Path, ends: Sequence[End]
) -> None:
    """D18: pushed and not judged goes on at the ledger: no second push, no second worker, no lost verdict."""
    office = build_delivery(tmp_path)
    for end in (*ends, None):
        lead(office, end)
    folder = RunFolder(office / ".ganger" / "delivery")
    state, events = read_state(folder), list(read_events(folder, 0))
    assert shortcomings(tmp_path, state, events) == []
    pushes = Counter(one.event.task for one in events if isinstance(one.event, ev.Pushed) and one.event.how == "pushed")
    worked = Counter(one.event.task for one in events if isinstance(one.event, ev.AttemptLaunched))
    assert pushes["units"] <= 2 and pushes["rounding"] <= 1 and pushes["report"] <= 1
    assert worked == {"units": 2, "rounding": 1, "report": 1} and state.log.refused == []


@pytest.mark.slow
def test_where_ci_cannot_be_run_again_an_empty_commit_does_and_moves_the_tracking(tmp_path: Path) -> None:
    """D04: the new commit holds the same tree, is what is proved, and there is one of it."""
    office = build_delivery(tmp_path)
    config = office / "ganger.toml"
    config.write_text(config.read_text().replace("[delivery]\n", "[delivery]\nreruns = false\n"))
    for end in (("retrigger_intended", 1, KILL), None):
        lead(office, end)
    folder = RunFolder(office / ".ganger" / "delivery")
    state, events = read_state(folder), list(read_events(folder, 0))
    assert shortcomings(tmp_path, state, events) == []
    intended = [one.event for one in events if isinstance(one.event, ev.PushIntended) and one.event.task == "report"]
    assert [one.cause for one in intended] == ["change", "mirror_skipped"] and len({one.tree for one in intended}) == 1
    bare = ["git", "--git-dir", str(tmp_path / "remotes" / "app.git")]
    said = subprocess.run([*bare, "log", "--format=%B", "main"], check=True, capture_output=True, text=True).stdout
    assert said.count("Ganger-Retrigger: mirror_skipped") == 1

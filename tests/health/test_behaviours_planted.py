"""Each bug that is planted in the lead is found by the table, on the behaviour it concerns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.run_projects import Project
from tests.health.behaviour_bugs import BLIND, acknowledged_early, any_fence, blind, forgetful, hasty
from tests.health.behaviour_run import LIMITS, Book, complaints, project
from tests.health.behaviour_table import BEING_WELL, BREAKING, GETTING_NOWHERE, LOSING_MESSAGES, WELL
from tests.health.test_behaviours_streams import ROWS, streams
from tests.health.test_stale_workers import late_project

pytestmark = pytest.mark.whole

EVERY = {**BEING_WELL, **BREAKING, **GETTING_NOWHERE, **LOSING_MESSAGES, **ROWS, "writes_slowly": WELL}
ONCE = "stall_restarts = 0"


def said_of(made: Project, *behaviours: str) -> list[str]:
    """Whatever became of the run itself, the judge reads what was recorded."""
    made.run()
    return complaints(Book(made), {name: EVERY[name] for name in behaviours})


@pytest.mark.parametrize("tool", [False, True], ids=["behaviours", "streams"])
def test_a_lead_that_overlooks_a_sign_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: bool) -> None:
    """H02 H03 H06: a tool call, processor time, beats, output, files, a stop, a prompt, a mark, an answer, a limit;
    or that does not ask."""
    blind(monkeypatch)
    names = ["long"] if tool else [name for name in BLIND if name != "long"]
    made = streams(tmp_path, *names, policy=ONCE) if tool else project(tmp_path, "local-git", *names, policy=ONCE)
    said = said_of(made, *names)
    for name in names:
        assert any(text.startswith(f"{name}: ") and BLIND[name].says in text for text in said), (name, said)


@pytest.mark.parametrize(
    ("plant", "behaviour", "says"),
    [
        (acknowledged_early, "looks_into_the_store", "failed as ('crash"),
        (forgetful, "says_it_twice", "failed as ('crash"),
        (hasty, "leaves_a_file", "failed as ('contract_error"),
    ],
)
def test_a_lead_that_records_wrongly_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[..., None], behaviour: str, says: str
) -> None:
    """H07: acknowledges before it records; counts twice; does not look once more at the end."""
    plant(monkeypatch)
    # Nobody looks at desks by chance at the right moment.
    said = said_of(project(tmp_path, "local-git", behaviour, limits={**LIMITS, "look_sec": 30.0}), behaviour)
    assert any(says in text for text in said), said


def test_a_desk_that_ignores_the_fence_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H07: a worker that comes back is taken at its word."""
    any_fence(monkeypatch)
    late_project(tmp_path).run()
    assert json.loads((tmp_path / "said").read_text())["report"] == 200

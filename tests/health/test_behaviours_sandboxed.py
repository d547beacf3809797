"""Misbehaving workers in a sandbox: inside bubblewrap they reach their lead, are watched, and are ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.health.behaviour_run import Book, Row, complaints, project
from tests.health.behaviour_table import BEING_WELL, BREAKING, GETTING_NOWHERE, LOSING_MESSAGES

NAMES = {
    "direct": ("crashes_after_mark", "beats_by_file", "is_stopped"),
    "local-git": (
        *("crashes_at_work", "crashes_after_mark", "leaves_a_file", "is_stopped", "will_not_end", "loops"),
        *("beats", "beats_by_file", "computes", "answers_when_asked", "marks_after_a_checkpoint", "holds_the_pipe"),
    ),
}
EVERY = {**BEING_WELL, **BREAKING, **GETTING_NOWHERE, **LOSING_MESSAGES}


def row(name: str) -> Row:
    """Nobody inside can note when it began to misbehave, and a signal that ends it is an exit code outside."""
    return replace(EVERY[name], limit_sec=None, why="" if name == "crashes_at_work" else EVERY[name].why)


@pytest.mark.whole
@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("mode", [pytest.param("direct", marks=pytest.mark.slow), "local-git"])
def test_walls_change_nothing_about_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """H02 H03 H07 G05: its program, its desk and the socket are there; what it does is seen through the walls."""
    monkeypatch.delenv("GANGER_SANDBOX_USE")
    made = project(tmp_path, mode, *NAMES[mode], more='[sandbox]\nuse = "require"')
    assert made.run() == 0
    assert complaints(Book(made), {name: row(name) for name in NAMES[mode]}) == []

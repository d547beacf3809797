"""Exit codes of workers that said nothing mean nothing: the page about workers says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.cli_project import ganger, make_project

pytestmark = pytest.mark.whole


@pytest.mark.parametrize("code", [2, 3, 4, 9])
def test_a_code_without_the_words_that_go_with_it_is_a_crash(tmp_path: Path, code: int) -> None:
    """Z07 H04: neither a checkpoint, nor blocked, nor waiting for a person; run again once, then paused."""
    root = make_project(tmp_path, script={"one": {"text": "x", "exit": code}})
    assert ganger("run", cwd=root).code == 4
    one = ganger("tasks", "--json", cwd=root).json["tasks"][0]
    assert (one["status"], one["block_reason"]) == ("BLOCKED", "paused")
    assert "crash" in ganger("why", "one", cwd=root).out


@pytest.mark.quick
def test_exit_code_0_without_an_answer_breaks_the_contract(tmp_path: Path) -> None:
    """Z07 T06 T08: asked for once more, then a worker failure."""
    root = make_project(tmp_path, script={"one": {"text": "all fine"}})
    assert ganger("run", cwd=root).code == 1
    assert "contract_error" in ganger("why", "one", cwd=root).out

"""What `.ci/run` does on a machine that has nothing installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.conftest import NEEDED

CI = Path(__file__).resolve().parents[1] / ".ci" / "run"
# They come with the system, with the set-up of the project itself, or are no programs.
THERE = {"root", "landlock", "git", "make", "sh", "bash", "env", "python3", sys.executable}
# `make test-all` fetches these from their registry into the project's folder.
FETCHED = {"jest", "vitest"}


def programs_installed(script: str) -> set[str]:
    """The first word of each line of the table of programs and packages."""
    table = re.search(r"<<'END'\n(.*?)\nEND\n", script, re.DOTALL)
    assert table is not None
    return {line.split()[0] for line in table[1].splitlines()}


def test_ci_installs_every_program_that_a_test_needs(request: pytest.FixtureRequest) -> None:
    """A new machine runs every test, as nothing is skipped there."""
    installed = programs_installed(CI.read_text(encoding="utf-8"))
    assert request.config.stash[NEEDED] - installed - THERE - FETCHED == set()


def test_a_program_that_is_not_in_the_table_is_noticed() -> None:
    assert "go" not in programs_installed("done <<'END'\nstrace strace\nEND\n")

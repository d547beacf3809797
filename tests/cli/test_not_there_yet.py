"""What the pages call missing is what the commands refuse, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ganger.cli.shell.table import COMMANDS
from tests.cli.cli_project import as_program

ROOT = Path(__file__).resolve().parents[2]
MISSING = {name for name, row in COMMANDS.items() if not row.built}


def told_in_readme() -> set[str]:
    """The nouns after "no" in the first of the limits."""
    limits = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Limits today")[2]
    return set(re.findall(r"\bno (\w+)", limits.partition("\n- ")[2].partition("\n- ")[0]))


def test_the_readme_names_every_command_that_is_missing_and_none_that_is_there() -> None:
    """T26: its limits are those of the program."""
    told = told_in_readme()
    assert told >= MISSING and told & COMMANDS.keys() == MISSING


def test_the_page_of_commands_names_the_same() -> None:
    """T26: under its last heading."""
    tail = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8").partition("\n## Not ")[2]
    assert set(re.findall(r"`([\w-]+)`", tail)) == MISSING


@pytest.mark.parametrize("name", sorted(told_in_readme()))
def test_what_is_missing_says_so(tmp_path: Path, name: str) -> None:
    """T26 Z07: 64, with a sentence."""
    answer = as_program(name, cwd=tmp_path)
    assert answer.code == 64 and answer.err.startswith("error: ")
    assert name not in MISSING or "NOT_BUILT_YET" in answer.err

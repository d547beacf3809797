"""What CONTRIBUTING says of additions is so: the files it names, and no file forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<kind>[a-z ]+) \| `(?P<word>\w+)` \| (?P<files>[^|]+) \| (?P<then>[^|]+) \|$", re.MULTILINE)
ROWS = {row["kind"]: row for row in ROW.finditer(PAGE)}


def places(word: str) -> set[str]:
    """As `grep -rlw` finds them."""
    spelt = re.compile(rf"\b{word}\b")
    paths = (ROOT / "src" / "ganger").rglob("*.py")
    return {path.relative_to(ROOT).as_posix() for path in paths if spelt.search(path.read_text(encoding="utf-8"))}


def test_the_table_has_a_row_for_each_kind() -> None:
    assert ROWS.keys() == {"agent", "forge", "store", "event", "counter", "failure class", "setting"}


@pytest.mark.parametrize("kind", ROWS)
def test_the_files_of_a_row_are_those_that_hold_its_word(kind: str) -> None:
    """When it fails, correct the row: somebody will add one by it."""
    named = re.findall(r"`([^`]+)`", ROWS[kind]["files"])
    assert sorted(named) == sorted(places(ROWS[kind]["word"]))


def test_every_path_that_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:src|tests|docs|scripts)/[\w./-]+)`", PAGE)
    assert len(named) > 20 and [path for path in named if not (ROOT / path).exists()] == []


def test_a_file_that_is_forgotten_would_be_seen() -> None:
    assert places("HostTried") - {"src/ganger/core/events/__init__.py"} != places("HostTried")

"""Names that are meant for another are seen; other people's names are left alone."""

from __future__ import annotations

import pytest

from ganger.core.settings.applicability import KNOWN_METADATA
from ganger.core.settings.near_names import distance, near_name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(("reviw", "review"), ("Review", "review"), ("reveiw", "review"), ("maxAttempts", "max_attempts")),
        *(("may-change-gates", "may_change_gates"), ("MAY_CHANGE_GATES", "may_change_gates")),
        *(("file_create", "files_create"), ("filesread", "files_read"), ("expected-file", "expected_files")),
        *(("secrity", "security"), ("rol", "role"), ("rloe", "role"), ("roles", "role"), ("kidn", "kind")),
        *(("max attempts", "max_attempts"), ("critical.path", "critical_path"), ("allowShrinkage", "allow_shrinkage")),
    ],
)
def test_a_near_miss_is_recognised(written: str, meant: str) -> None:
    """G24: a slip of the finger, another case, another mark between words."""
    assert near_name(written, KNOWN_METADATA) == meant


OTHERS = (
    *("owner", "tags", "labels", "estimate", "model", "node", "code", "rule", "state", "status", "reviewer", "preview"),
    *("notes", "type", "epic", "sprint", "title", "url", "issue", "assignee", "team", "priority", "points", "own"),
)


@pytest.mark.parametrize(
    "written",
    OTHERS,
)
def test_other_tools_keys_are_nobodys_near_miss(written: str) -> None:
    """G24 T01: metadata stays free."""
    assert near_name(written, KNOWN_METADATA) == ""


@pytest.mark.parametrize("known", KNOWN_METADATA)
def test_a_known_key_is_no_near_miss(known: str) -> None:
    assert near_name(known, KNOWN_METADATA) == ""


def test_a_long_name_is_not_compared() -> None:
    assert near_name("x" * 100_000, KNOWN_METADATA) == ""


def test_swapped_neighbours_count_once() -> None:
    assert [distance("ab", "ba"), distance("", "abc"), distance("kitten", "sitting")] == [1, 3, 3]

"""The words of every forge: each one known is in its table, and no other is a verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from ganger.core.model.ci import NEEDS_APPROVAL, OVER, UNKNOWN_WORD, Word
from ganger.forges.ci.words import (
    COMMIT_STATUS,
    CONCLUSION,
    FORGEJO,
    GITHUB_STATUS,
    GITLAB,
    CiWord,
    commit_status,
    forgejo,
    github,
    gitlab,
)

SCHEMAS = Path(__file__).resolve().parents[1] / "data" / "forge" / "schemas"
W, R, S, F, C, K = (
    Word.WAITING,
    Word.RUNNING,
    Word.SUCCESS,
    Word.FAILURE,
    Word.CANCELLED,
    Word.SKIPPED,
)
STATUSES = [
    ("pending", "Waiting to run", W),
    ("pending", "Blocked by required conditions", W),
    ("pending", "Has started running", R),
    ("success", "Successful in 1s", S),
    ("success", "Has been skipped", K),
    ("success", "Skipped", K),
    ("skipped", "Has been skipped", K),
    ("warning", "", K),
    ("failure", "Failing after 2s", F),
    ("failure", "Has been cancelled", C),
    ("error", "", F),
    ("success", "Has started running", S),
    ("success", "Skipped nothing at all", K),
    ("", "Successful in 1s", W),
    ("SUCCESS", "", W),
]


@pytest.mark.parametrize(("status", "description", "word"), STATUSES)
def test_a_commit_status_is_read_with_its_description(status: str, description: str, word: Word) -> None:
    """D03: a skip is posted as success, a cancellation as failure."""
    said = commit_status(status, description)
    assert said.word is word and said.raw.startswith(status)


def enum_of(schema: object, *path: str) -> set[str]:
    for name in path:
        assert isinstance(schema, dict)
        schema = schema[name]
    assert isinstance(schema, list)
    return {word for word in schema if word is not None}


def test_every_published_word_of_github_has_its_place() -> None:
    """D03: the jobs of the published API description."""
    parts = json.loads((SCHEMAS / "github-23.0.2.openapi.json").read_bytes())["components"]["schemas"]
    statuses = enum_of(parts, "job", "properties", "status", "enum")
    conclusions = enum_of(parts, "job", "properties", "conclusion", "enum")
    assert statuses - {"completed"} <= GITHUB_STATUS.keys() and conclusions <= CONCLUSION.keys()


def test_each_of_the_six_is_reachable_in_each_language() -> None:
    """D03: and success by one word alone."""
    for table in (FORGEJO, {**GITHUB_STATUS, **CONCLUSION}, GITLAB, COMMIT_STATUS):
        assert [raw for raw, (word, _) in table.items() if word is Word.SUCCESS] == ["success"]
        missing = set(Word) - {word for word, _ in table.values()}
        assert missing <= ({Word.RUNNING, Word.CANCELLED} if table is COMMIT_STATUS else set())


@given(st.text(), st.text())
def test_a_word_nobody_knows_is_waited_for(raw: str, more: str) -> None:
    """D03, D05: it is kept, it is named, and it ends nothing."""
    said = [
        (forgejo(raw), FORGEJO),
        (github(raw, more), {**GITHUB_STATUS, "completed": (W, "")}),
        (github("completed", raw), CONCLUSION),
        (gitlab(raw, failure=more), GITLAB),
        (commit_status(raw, more), COMMIT_STATUS),
    ]
    for found, table in said:
        if raw not in table:
            assert (found.word, found.reason) == (Word.WAITING, UNKNOWN_WORD)
            assert found.raw == raw or (not raw and found.raw == "completed")


@given(st.sampled_from(sorted(FORGEJO)))
def test_approval_holds_what_is_not_over(raw: str) -> None:
    """D03: a run that waits for somebody is neither running nor through."""
    said, plain = forgejo(raw, need_approval=True), forgejo(raw)
    assert said == plain if plain.word in OVER else said == CiWord(Word.WAITING, raw, NEEDS_APPROVAL)

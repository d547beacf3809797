"""What signs come to: the answer, sums, what still explains an end and what is over."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from ganger.core.lines import LONGEST_LINE, Lines
from ganger.core.signs import (
    Heard,
    Limited,
    Over,
    Retrying,
    Said,
    Session,
    Sign,
    Tokens,
    ToolEnded,
    ToolStarted,
)


def heard(*signs: Sign) -> Heard:
    made = Heard()
    made.add(signs)
    return made


def test_parts_of_a_message_are_joined_and_a_tool_ends_it() -> None:
    """T24: deltas may cut the result block anywhere."""
    made = heard(
        Said("<<<TASK_", part=True), Said("RESULT", part=True), ToolStarted("1", "sh"), Said("next", part=True)
    )
    assert made.messages == ["<<<TASK_RESULT", "next"]


def test_a_whole_message_stands_for_itself() -> None:
    """T24: also right after a part."""
    assert heard(Said("a", part=True), Said("b"), Said("c", part=True)).messages == ["a", "b", "c"]


def test_the_answer_is_the_agents_last_word() -> None:
    """T24: the result is looked for where the agent ended, not in what it said on the way."""
    block = "<<<TASK_RESULT_V2>>>{}<<<END_TASK_RESULT_V2>>>"
    assert heard(Said("draft <<<"), Said(block), Over("success", block)).answer == block
    assert heard(Said("draft <<<"), Said(block)).answer == block


def test_a_block_before_a_closing_remark_counts_only_where_the_agent_was_through() -> None:
    """T24 T29: models like to add a sentence; an agent that was cut off has not answered."""
    said = (Said("<<<TASK_RESULT_V2>>>{}<<<END_TASK_RESULT_V2>>>"), Said("That is all."))
    assert "<<<TASK_RESULT_V2>>>" in heard(*said, Over("success", "That is all.")).answer
    assert heard(*said, Over("network", "reset")).answer == "That is all."


def test_steps_add_up_until_a_sum_replaces_them() -> None:
    """G04: nothing is counted twice."""
    steps = (Tokens(10, 1, step=True), Tokens(20, 2, cache_read=5, step=True))
    assert heard(*steps).tokens == Tokens(30, 3, cache_read=5, step=True)
    assert heard(*steps, Tokens(31, 4, usd=0.5)).tokens == Tokens(31, 4, usd=0.5)


@pytest.mark.parametrize("progress", [Said("going on"), ToolStarted("1", "sh"), ToolEnded("1")])
def test_progress_ends_the_trouble_that_was_passed(progress: Sign) -> None:
    """D12 W07: a limit that was waited out explains nothing later; a final one does."""
    made = heard(Retrying("again", 429), Limited("slow down", final=False), progress)
    assert made.retrying is None and made.limited is None
    assert heard(Limited("empty", final=True), progress).limited is not None


def test_a_session_that_was_named_is_not_forgotten() -> None:
    """H05: an empty name says nothing."""
    assert heard(Session("s1"), Session("")).session == "s1"


@given(st.binary(max_size=400), st.lists(st.integers(1, 40), max_size=30))
def test_lines_are_the_same_however_they_come_in_pieces(data: bytes, sizes: list[int]) -> None:
    """T24: the reader while an agent works sees what the reader of the whole log sees."""
    lines, found, at = Lines(), [], 0
    for size in [*sizes, len(data)]:
        found += list(lines.feed(data[at : at + size]))
        at += size
    found += list(lines.end())
    whole = data.split(b"\n")
    assert found == [line.rstrip(b"\r") for line in (whole if whole[-1] else whole[:-1])]


def test_a_line_beyond_all_measure_is_dropped_and_the_next_is_read() -> None:
    """T24: output without an end does not fill the memory."""
    lines = Lines()
    assert list(lines.feed(b"x" * LONGEST_LINE)) == [] and list(lines.feed(b"yy")) == []
    assert list(lines.feed(b"z\nnext\n")) == [b"next"]

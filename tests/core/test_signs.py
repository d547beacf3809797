"""What signs come to: the answer, sums, what still explains an end and what is over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from ganger.core.agent_output.whole_lines import LONGEST_LINE, Lines
from ganger.core.signs import (
    Alive,
    Context,
    Heard,
    Limited,
    Model,
    Over,
    Retrying,
    Said,
    Session,
    Sign,
    Tokens,
    ToolEnded,
    ToolStarted,
    context_pct,
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


@pytest.mark.parametrize("mark", ["<<<END_TASK_RESULT_V2>>>", "<<<TASK_RESULT_V2>>>", "<<<TASK_RESULT_V2", "<<<"])
def test_a_mark_behind_the_answer_does_not_hide_it(mark: str) -> None:
    """T07 T24: a last message with a stray mark, or the beginning of a second block, is not the whole answer."""
    block = "<<<TASK_RESULT_V2>>>{}<<<END_TASK_RESULT_V2>>>"
    assert block in heard(Said(block), Said(mark), Over("success", mark)).answer
    assert block not in heard(Said(block), ToolStarted("1", "w"), ToolEnded("1"), Said(mark), Over("success")).answer


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
    went_on = (said[0], ToolStarted("1", "sh"), ToolEnded("1"), Said("I give up."), Over("success", "I give up."))
    assert "<<<" not in heard(*went_on).answer


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


@pytest.mark.parametrize("progress", [Said("going on"), ToolStarted("1", "sh"), ToolEnded("1")])
def test_errors_in_a_row_count_until_it_gets_somewhere(progress: Sign) -> None:
    """D14: what is told in between without getting anywhere changes nothing."""
    failing = (Retrying("again", 529), Tokens(1, 0), Alive(), Session("s1"), Retrying("again", 529))
    assert heard(*failing).errors_in_a_row == 2
    assert heard(*failing, progress).errors_in_a_row == 0
    assert heard(*failing, progress, *failing).errors_in_a_row == 2


def test_a_sign_of_life_alone_changes_nothing_that_was_heard() -> None:
    """H02: it tells that somebody is there and no more."""
    told = (Said("a", part=True), ToolStarted("1", "sh"), Retrying("again"))
    assert heard(*told, Alive()) == heard(*told)


@pytest.mark.parametrize(
    ("signs", "default", "pct"),
    [
        ((), 200_000, 0.0),
        ((Context(100),), 0, 0.0),
        ((Context(50_000),), 200_000, 25.0),
        ((Context(50_000, 100_000),), 200_000, 50.0),
        ((Context(10, 100), Context(70)), 0, 70.0),
        ((Context(250_000),), 200_000, 0.0),
        ((Context(0, 100),), 100, 0.0),
        ((Context(-5, 100),), 100, 0.0),
    ],
)
def test_how_full_the_context_is(signs: tuple[Sign, ...], default: int, pct: float) -> None:
    """Z05: what the agent tells of its window counts first and is not forgotten; more than fits proves it wrong."""
    assert context_pct(heard(*signs), default) == pct


BEYOND: dict[str, tuple[Sign, Callable[[Heard], object], object]] = {
    "a session with a NUL": (Session("s\0"), lambda h: h.session, ""),
    "a session that is an option": (Session("--force"), lambda h: h.session, ""),
    "a session of half a letter": (Session("\ud800"), lambda h: h.session, ""),
    "a session without end": (Session("s" * 5000), lambda h: h.session, ""),
    "a model of half a letter": (Model("m\ud800"), lambda h: h.model, "m "),
    "tokens without end": (Tokens(10**400, 5), lambda h: h.tokens, Tokens(None, 5)),
    "money without end": (Tokens(1, 1, usd=float("inf")), lambda h: h.tokens, Tokens(1, 1)),
    "money that is no number": (Tokens(1, 1, usd=float("nan")), lambda h: h.tokens, Tokens(1, 1)),
    "less than nothing": (Tokens(-1, 1), lambda h: h.tokens, Tokens(None, 1)),
    "a reset in milliseconds": (Limited("x", 1_790_000_000_000.0), lambda h: h.limited, Limited("x", 1_790_000_000.0)),
    "a reset after all time": (Limited("x", float("inf")), lambda h: h.limited, Limited("x")),
    "a reset before all time": (Limited("x", -5.0), lambda h: h.limited, Limited("x")),
}


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_beyond_all_measure_is_as_good_as_not_said(name: str) -> None:
    """T24: an agent's output never brings the lead down, nor keeps it down."""
    sign, look, wanted = BEYOND[name]
    assert look(heard(sign)) == wanted


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

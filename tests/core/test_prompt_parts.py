"""A prompt under a budget: what is needed least goes first, and what is gone is said."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from ganger.core.prompts.parts import NEVER_CUT, Part, Piece, fitted, joined, needed, sizes
from ganger.core.prompts.tokens import estimate

LINES = "\n".join(f"Line {number} of a text that can be cut anywhere." for number in range(40))
WHOLE = [
    Piece(Part.SPAWN, "# Task a"),
    Piece(Part.CONTEXT, LINES),
    Piece(Part.CONTEXT, LINES),
    Piece(Part.RULES, LINES),
    Piece(Part.TASK, "Do it."),
    Piece(Part.HISTORY, LINES),
    Piece(Part.CI, "## CI is red"),
    Piece(Part.FAILURE, LINES),
    Piece(Part.HINTS, LINES),
    Piece(Part.ANSWERS, LINES),
    Piece(Part.CONTRACT, "How to answer."),
]
TOTAL = sum(piece.tokens for piece in WHOLE)
ORDER = [Part.HISTORY, Part.RULES, Part.CONTEXT, Part.HINTS, Part.ANSWERS, Part.FAILURE]


@pytest.mark.parametrize("budget", [0, TOTAL, 10 * TOTAL])
def test_without_a_budget_or_with_enough_nothing_is_cut(budget: int) -> None:
    """D15: not even the order changes."""
    assert fitted(WHOLE, budget) == WHOLE


@pytest.mark.parametrize("budget", range(80, TOTAL, 97))
def test_a_part_is_cut_only_where_all_that_are_needed_less_are_gone(budget: int) -> None:
    """D15: in the fixed order."""
    before, after = sizes(WHOLE), sizes(fitted(WHOLE, budget))
    kept = [after.get(part, 0) == before[part] for part in ORDER]
    assert kept == sorted(kept)
    for less, more in pairwise(ORDER):
        assert after.get(more, 0) == before[more] or after.get(less, 0) == 0


texts = st.text("ab \n>`#", max_size=400).map(str.strip)
piles = st.lists(st.builds(Piece, st.sampled_from([part for part in Part if part is not Part.MARK]), texts), max_size=8)


@given(piles, st.integers(1, 400))
def test_the_budget_holds_unless_what_is_never_cut_is_more(pieces: list[Piece], budget: int) -> None:
    """D15: and that is all there, in its order."""
    kept = fitted(pieces, budget)
    must = [piece for piece in pieces if piece.part in NEVER_CUT and piece.text]
    assert [piece for piece in kept if piece.part in NEVER_CUT and piece.part is not Part.MARK] == must
    if needed(pieces) + 48 <= budget:
        assert estimate(joined(kept)) <= budget
    assert sum(piece.part is Part.MARK for piece in kept) <= 1


def test_what_is_left_out_is_named_before_the_contract() -> None:
    """D15: the contract stays the last thing read."""
    kept = fitted(WHOLE, 200)
    assert [piece.part for piece in kept[-2:]] == [Part.MARK, Part.CONTRACT]
    assert kept[-2].text == "[Left out, because the prompt has a budget: context, rules, history, hints, answers]"


def test_a_text_that_is_cut_says_so_and_closes_what_it_opened() -> None:
    """D15: or the rest of the prompt would be read as code."""
    text = "## Context: a.md\n\n```\n" + LINES
    kept = fitted([Piece(Part.TASK, "Do it."), Piece(Part.CONTEXT, text)], 200)
    assert kept[1].cut > 300 and kept[1].text.endswith("```\n[… cut here: the prompt has a budget]")
    assert text.startswith(kept[1].text.rpartition("\n```")[0])


def test_the_longest_mark_fits_into_what_is_set_aside_for_it() -> None:
    """D15: whatever is left out."""
    pieces = [Piece(part, LINES) for part in Part if part not in NEVER_CUT]
    mark = fitted(pieces, 1)
    assert [piece.part for piece in mark] == [Part.MARK] and mark[0].tokens <= 48

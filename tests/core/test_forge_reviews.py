"""What reviews on a forge come to for one commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ganger.core.delivery.forge_reviews import (
    APPROVED,
    REWORK,
    Opinion,
    Remark,
    Review,
    ReviewSaid,
    rework_text,
    said_of,
)

HEAD, OLD = "a" * 40, "b" * 40
YES = Review("1", "maria", APPROVED, HEAD)
NO = Review("2", "maria", REWORK, HEAD)


@pytest.mark.parametrize(
    ("reviews", "opinion"),
    [
        pytest.param([], Opinion.NONE, id="nobody"),
        pytest.param([YES], Opinion.APPROVED, id="approved"),
        pytest.param([NO], Opinion.REWORK, id="changes asked for"),
        pytest.param([YES, NO], Opinion.REWORK, id="second thoughts"),
        pytest.param([NO, replace(YES, id="3")], Opinion.APPROVED, id="content now"),
        pytest.param([YES, replace(NO, by="jo")], Opinion.REWORK, id="one of two objects"),
        pytest.param([replace(YES, verdict="")], Opinion.NONE, id="a comment"),
        pytest.param([NO, replace(NO, id="3", verdict="")], Opinion.REWORK, id="a comment takes nothing back"),
        pytest.param([replace(YES, dismissed=True)], Opinion.NONE, id="dismissed"),
        pytest.param([NO, replace(YES, dismissed=True)], Opinion.NONE, id="the newest is dismissed"),
        pytest.param([replace(YES, stale=True)], Opinion.NONE, id="stale"),
        pytest.param([replace(NO, stale=True)], Opinion.NONE, id="a stale objection"),
        pytest.param([replace(YES, counts=False)], Opinion.NONE, id="who may not"),
        pytest.param([replace(YES, commit=OLD)], Opinion.NONE, id="another commit"),
        pytest.param([replace(NO, commit=OLD)], Opinion.REWORK, id="an objection to the commit before"),
        pytest.param([replace(YES, commit="")], Opinion.APPROVED, id="of what is there"),
    ],
)
def test_the_newest_word_of_each_person_counts_as_the_forge_means_it(reviews: list[Review], opinion: Opinion) -> None:
    """W08: dismissed and stale ones are none, and an approval is of one commit."""
    assert said_of(reviews, HEAD).opinion is opinion


def test_an_approval_of_the_same_files_is_one_of_this_commit() -> None:
    """W08 D04: an empty commit moves nothing that was looked at."""
    assert said_of([replace(YES, commit=OLD)], HEAD, same={OLD}).opinion is Opinion.APPROVED


def test_who_was_heard_holds_and_sends_nothing_back_twice() -> None:
    """W08: until the forge says that they no longer object."""
    assert said_of([NO], HEAD, heeded=("2",)) == ReviewSaid(Opinion.HELD, (NO,), 0)
    again = replace(NO, id="9")
    assert said_of([NO, again], HEAD, heeded=("2",)) == ReviewSaid(Opinion.REWORK, (again,), 0)


def test_as_many_approve_as_the_forge_asks_for() -> None:
    """W08 G03: two of two, and what is lacking is told."""
    one, two = YES, replace(YES, id="3", by="jo")
    assert said_of([one], HEAD, needed=2) == ReviewSaid(Opinion.NONE, (), 1)
    assert said_of([one, two], HEAD, needed=2).who == "maria, jo"


def test_a_worker_gets_each_persons_words_and_each_line_they_point_at() -> None:
    """W08: text, path and line; a flood is cut."""
    remarks = tuple(Remark("a.py", line, f"wrong {line}") for line in range(1, 60))
    text = rework_text(ReviewSaid(Opinion.REWORK, (replace(NO, text="rename it", url="https://f/1", remarks=remarks),)))
    assert text.startswith("maria asked for changes (https://f/1):\nrename it\n- a.py:1: wrong 1\n")
    assert "a.py:40" in text and "a.py:41" not in text and "19 more remarks" in text
    huge = ReviewSaid(Opinion.REWORK, tuple(replace(NO, id=str(n), by=f"p{n}", text="x" * 9000) for n in range(50)))
    assert len(rework_text(huge)) < 20_000

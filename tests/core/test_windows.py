"""Window sizes and failure rates."""

from __future__ import annotations

import pytest

from ganger.core import events as ev
from ganger.core.healing.policy import failure_rate
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.scheduling.windows import larger, smaller
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus
from tests.core.run_model import Model

OFF = Policy(heal_schedule=HealSchedule.OFF, concurrency=99)


def test_growing_follows_fibonacci_without_an_end() -> None:
    """T10: 1 2 3 5 8 13 21 …"""
    sizes = [1]
    while len(sizes) < 10:
        sizes.append(larger(sizes[-1]))
    assert sizes == [1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


@pytest.mark.parametrize(
    ("size", "less", "more"), [(1, 1, 2), (2, 1, 3), (4, 3, 5), (6, 5, 8), (13, 8, 21), (14, 13, 21)]
)
def test_a_size_off_the_sequence_goes_to_its_neighbours(size: int, less: int, more: int) -> None:
    """T10 T12: 1 stays 1."""
    assert (smaller(size), larger(size)) == (less, more)


CASES: dict[str, tuple[str, float]] = {
    "nothing attempted": ("", 0.0),
    "all clean": ("dddd", 0.0),
    "one of five": ("ddddh", 0.2),
    "blocked ones do not count": ("ddhbb", 1 / 3),
    "what no prompt can mend does not count": ("ddhnn", 1 / 3),
    "only blocked": ("bb", 0.0),
    "only non-healable": ("nn", 0.0),
    "escalated ones count by their class": ("ddde", 0.25),
    "pending ones were not attempted": ("dhpp", 0.5),
}


@pytest.mark.parametrize("case", CASES)
def test_the_failure_rate_counts_healable_failures_against_what_was_really_attempted(case: str) -> None:
    """T11: clean tasks are in the denominator; none attempted is a rate of 0."""
    letters, rate = CASES[case]
    names = [f"t{n}" for n in range(len(letters))]
    model = Model(tuple(TaskSpec(name, max_attempts=1) for name in [*names, "other"]), OFF).begin()
    for name, letter in zip(names, letters, strict=True):
        end(model, name, letter)
    assert failure_rate(model.state, tuple(names)) == pytest.approx(rate)


def end(model: Model, name: str, letter: str) -> None:
    if letter == "p":
        return
    model.start(name)
    match letter:
        case "d":
            model.finish(name)
        case "b":
            model.record(ev.TaskSettled(name, TaskStatus.BLOCKED, "", BlockReason.EXTERNAL))
        case "n":
            model.fail(name, FailureClass.REAL_BUG)
        case _:
            model.fail(name, FailureClass.TEST_ERROR)
    if letter == "e":
        model.record(ev.TaskSettled(name, TaskStatus.ESCALATED, "again and again"))

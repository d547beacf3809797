"""A slice of the simulated worlds: whatever goes wrong in them, every rule holds and every run comes to an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.report import play_seed, told

SEEDS = [seed for seed in range(1, 28) if seed % 10 and seed != 25]


@pytest.mark.sample(4)
@pytest.mark.brief(12)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_breaks_in_a_world_full_of_faults(seed: int, tmp_path: Path) -> None:
    """G01 G04 G12 H04 H08 H09 H10 T03 T05 T12 T13 T19 T22 T23 W03 W07 Z02 Z06: lead, keeper, agents and store fail."""
    played = play_seed(seed, tmp_path)
    assert not played.wrong, "\n".join(told(played))


@pytest.mark.whole
def test_a_long_night_with_twenty_workers_breaks_no_rule(tmp_path: Path) -> None:
    """H09 G01 T04: hours of work, minutes to an hour per attempt."""
    played = play_seed(20, tmp_path)
    assert not played.wrong, "\n".join(told(played))
    assert played.run_hours > 1


@pytest.mark.brief(1)
@pytest.mark.parametrize("seed", [6, 13, 24])
def test_a_seed_played_twice_gives_the_same_events_bit_by_bit(seed: int, tmp_path: Path) -> None:
    """G07: a seed is enough to see a failure again."""
    assert not play_seed(seed, tmp_path, twice=True).wrong


def test_a_failure_is_told_with_its_rule_its_last_events_and_how_to_repeat_it(tmp_path: Path) -> None:
    """G07: nobody has to look for the way back to a failure."""
    played = play_seed(6, tmp_path, also=("planted: a rule that never holds",))
    text = "\n".join(told(played))
    assert "planted: a rule that never holds" in text and "run_started" in text
    assert text.endswith("make sim SEED=6")

"""Bugs planted on purpose: the simulator finds every one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.planted import PLANTED, Planted, caught

pytestmark = pytest.mark.whole

# They take the longest to show.
LATE = ("the pause is forgotten", "hold released", "a quota burns attempts", "all wake at once")
CASES = [pytest.param(bug, id=bug.name, marks=[pytest.mark.slow] if bug.name in LATE else []) for bug in PLANTED]


@pytest.mark.quick
@pytest.mark.sample(2)
@pytest.mark.parametrize("bug", CASES)
def test_a_planted_bug_is_found(bug: Planted, tmp_path: Path) -> None:
    """G01 T03 T12 T13 T19 W03 Z02: a simulator that cannot fail proves nothing."""
    assert caught(bug, tmp_path) is not None

"""Several tasks on one branch: real runs, real git, a forge that gives up older runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from scenario import Row, play, require
from train_rows import TRAINS


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.slow] if row.slow else []) for row in TRAINS]
)
def test_what_is_pushed_together_is_judged_together_and_mended_by_the_one_who_broke_it(
    tmp_path: Path, row: Row
) -> None:
    """D02 D06 D13: no innocent pays, no commit of nothing stands between own pushes."""
    outcome = play(row, tmp_path)
    require(row, outcome)

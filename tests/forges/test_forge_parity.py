"""No scene is played on one kind of forge and forgotten on another."""

from __future__ import annotations

import pytest

from tests.forges.parity import FLAVOURS, REASONS, empty_cells, group_of, played, table
from tests.forges.scenario_rows import ROWS


def test_every_scene_has_a_row_in_each_flavour_or_a_reason() -> None:
    """W02 D05: a cell that is empty says why."""
    assert [(scene, flavour) for scene, flavour, why in empty_cells() if not why] == []
    assert all(flavour in table().splitlines()[0] for flavour in FLAVOURS)


def test_a_reason_is_for_a_cell_that_is_empty() -> None:
    """W02: a row that was added since takes the excuse away."""
    empty = {(scene, flavour) for scene, flavour, _ in empty_cells()}
    assert REASONS.keys() - empty == set()


def test_a_scene_that_lost_its_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """W02: found by a planted gap."""
    gap = [row for row in ROWS if row.name != "merged by squash on gitlab"]
    monkeypatch.setattr("tests.forges.scenario_rows.ROWS", gap)
    assert ("merged by squash", "gitlab", "") in list(empty_cells())
    assert "merged by squash" in played() and "merged by squash" not in group_of()

"""The scenario table: real runs, real git, a forge on loopback; each ends as it must."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forges.scenario import Row, play, require
from tests.forges.scenario_rows import ROWS

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def printed(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """How much each row asked of the forge, shown at the end (where one process runs them all: `-n 0`)."""
    lines: list[str] = []
    yield lines
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("", *lines, sep="\n")


def test_the_table_is_wide_and_names_each_row_once() -> None:
    """D01–D05: sixty rows at least."""
    names = [row.name for row in ROWS]
    assert len(names) >= 60 and len(set(names)) == len(names)


# What the default slice shows by another row as well.
LATER = frozenset(
    {
        *("begun by hand, then retried", "token renewed, then retried", "no answer at all for a while"),
        *("a newer push is green, ours is red", "a run by hand is green, the push is red", "two workflows, one red"),
        *("the run comes late on github, and asking is free", "github refuses to run it again, an empty commit does"),
        *(
            "three tasks one after the other in a repository of a graph",
            "a webhook hastens the next look on forgejo-16",
        ),
        *("two workflows, the second comes late and red", "as recorded: broken, then green"),
    }
)


@pytest.mark.quick
@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "row", [pytest.param(r, id=r.name, marks=[pytest.mark.slow] if r.slow or r.name in LATER else []) for r in ROWS]
)
def test_each_scenario_ends_as_it_must_and_never_done_without_proof(
    tmp_path: Path, row: Row, printed: list[str]
) -> None:
    """D01 D02 D03 D04 D05 D06 D07 W02: the forge's own world bears out whatever the run says."""
    outcome = play(row, tmp_path)
    require(row, outcome)
    printed.append(f"{row.name}: {outcome.ended()}; {outcome.server.summary()}")

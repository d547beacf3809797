"""Keys of real agents: in the environment of their processes, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.agents.good_runs import good_run
from tests.agents.matrix import EVERY, Row

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.whole]
Note = Callable[[str, object], None]


@pytest.mark.brief(1)
@pytest.mark.parametrize("row", EVERY)
def test_a_key_is_in_no_argument_of_any_process(
    row: Row, tmp_path_factory: pytest.TempPathFactory, record_property: Note
) -> None:
    """D19: every process of the machine was looked at while the run went on."""
    ran = good_run(row.name, tmp_path_factory)
    assert ran.watch.looks > 10 and ran.watch.seen == set()
    record_property(f"{row.name}: keeps its key", "yes")


@pytest.mark.parametrize("row", EVERY)
def test_a_key_is_in_no_file_a_run_leaves(row: Row, tmp_path_factory: pytest.TempPathFactory) -> None:
    """D19: logs, prompts, events, state, report, store, workspaces, homes; the run's own output too."""
    ran = good_run(row.name, tmp_path_factory)
    assert (ran.project.folder.path / "ganger.db").exists()
    assert ran.project.leaks() == [] and row.key not in ran.output

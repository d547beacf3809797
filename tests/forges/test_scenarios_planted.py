"""The judge of the table catches planted bugs, and one poller serves everybody who waits on one repository."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.forges.loopback.script import GREEN, MIRROR, RED, by_tree, ci
from tests.forges.merge_rows import TOGETHER, merged
from tests.forges.merge_truth import wrong_merges
from tests.forges.planted_delivery import PLANTED
from tests.forges.scenario import POLL_SEC, Row, play, require
from tests.forges.truth import lies

pytestmark = pytest.mark.whole

NEWER = Row(
    "", ((RED,), (GREEN,)), meanwhile=((1, "push"),), others=(ci(dict.fromkeys(("check", "test", MIRROR), "ok")),)
)
SKIPPED = Row("", ((ci({MIRROR: "block block skip"}),), (GREEN,)))
PATIENT = "appear_sec = 300\nci_sec = 300\nci_most_sec = 300"
CASES = [
    ("newest run", NEWER, "but the forge had told"),
    ("skipped is success", SKIPPED, "never told so"),
    ("old commit", Row("", ((RED,), (GREEN,)), more="fixes = 1"), "red for"),
    ("the run's own word", SKIPPED, "mirrored"),
]


@pytest.mark.quick
@pytest.mark.sample(1)
@pytest.mark.parametrize(("bug", "row", "told"), CASES)
def test_a_planted_bug_is_caught_by_the_forge_s_own_truth(tmp_path: Path, bug: str, row: Row, told: str) -> None:
    """D02 D03 D17: and the same row without it holds no lie."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTED[bug](patch)
        outcome = play(row, tmp_path)
    found = lies(outcome.project.events(), outcome.scene.world, row.needs)
    assert any(told in lie for lie in found), found


MOVED = merged("", meanwhile=((2, "push"),), pushed=2, others=(by_tree(),))
MERGED = [
    ("untested head", MOVED, "had not told that it is green"),
    ("no update", MOVED, "does not hold what was in the target"),
    ("no update", merged("", TOGETHER, tasks=2, pushed=None), "the target is red since"),
]


@pytest.mark.parametrize(("bug", "row", "told"), MERGED)
def test_a_merge_of_what_was_not_tested_is_caught_by_what_the_forge_merged(
    tmp_path: Path, bug: str, row: Row, told: str
) -> None:
    """D02 D17 W02: another head, another target, or a target that is red after it."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTED[bug](patch)
        outcome = play(row, tmp_path)
    found = wrong_merges(outcome.project.events(), outcome.scene.world, row.needs)
    assert any(told in one for one in found), found


@pytest.mark.parametrize("tasks", [6, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_many_who_wait_cost_one_list_a_look_and_one_call_per_change_of_a_run(
    tmp_path: Path, tasks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """D02 D05: most of them share a tip; counted by the server."""
    row = Row("all wait at once", tasks=tasks, most=tasks, more=PATIENT, locks="shared")
    outcome = play(row, tmp_path)
    require(row, outcome)
    log, world = outcome.server.log, outcome.scene.world
    asked = Counter(found[1] for line in log.lines if (found := re.search(r"/runs/(\d+)/jobs", line.path)))
    for run in world.runs:
        # Who comes when the others are through with a tip asks once more.
        assert asked[str(run.id)] <= len(world.listed[run.id]) + 2, (run.id, world.listed[run.id])
    spent = log.lines[-1].at - log.lines[0].at
    assert log.count("runs") <= spent / POLL_SEC + 12 and log.count("user", "version", "settings") <= 4
    with capsys.disabled():
        changes = sum(map(len, world.listed.values()))
        print(f"\n{tasks} tasks: {outcome.server.summary()}; {sum(asked.values())} for {changes} changes")

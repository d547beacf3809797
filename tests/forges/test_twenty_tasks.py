"""Twenty tasks on one branch, and a forge that stops a branch's older run at each push and folds pushes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.engine.delivery import shared_push
from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import by_tree
from tests.forges.scenario import Outcome, Row, main_of, play, require

pytestmark = pytest.mark.whole

CI_SEC, FOLD_SEC = 12.0, 2.0
# CI of 12 s and pushes that fold within 2 s, as by a clock that goes so many times faster.
FASTER, FASTEST = 6.0, 12.0
GUILTY, EACH = "t7", 'pushes = "each"'


def batch(name: str, *, faster: float = 1.0, tasks: int = 20, red: str = "", more: str = "", **other: object) -> Row:
    """All pushes to main; `red` names the task whose first attempt breaks it."""
    run = by_tree(*([f"{red}.txt~bad"] if red else []), sec=CI_SEC / faster)
    work = {red: [{f"{red}.txt": "bad\n"}, {f"{red}.txt": "good\n"}]} if red else {}
    row = Row(
        name,
        ((run,),),
        tasks=tasks,
        concurrency=6,
        pushed=None,
        manners=Manners(cancels=True, folds_sec=FOLD_SEC / faster),
        work=work,
        fixes_of={red: 1} if red else {},
        more=f"appear_sec = {3 * FOLD_SEC / faster}\n{more}",
    )
    return replace(row, **other)  # type: ignore[arg-type]


def uneven(tasks: int) -> dict[str, float]:
    return {name: (0.1, 0.4, 1.2, 2.5)[n % 4] for n, name in enumerate(["a", *(f"t{n}" for n in range(1, tasks))])}


QUICK = [
    batch("twenty tasks", faster=FASTER),
    batch("twenty tasks, one is guilty", faster=FASTEST, red=GUILTY),
    batch("four tasks one by one", faster=FASTEST, tasks=4, more=EACH),
]
SLOW = [
    batch("twenty tasks in real time"),
    batch("twenty tasks in real time, one is guilty", red=GUILTY),
    batch("twenty tasks by one worker", faster=FASTER, concurrency=1),
    batch("twenty tasks by one worker, one is guilty", faster=FASTER, concurrency=1, red=GUILTY),
    batch("twenty tasks at once", faster=FASTER, concurrency=20),
    batch("twenty tasks at once, one is guilty", faster=FASTER, concurrency=20, red=GUILTY),
    batch("twenty tasks of uneven length", faster=FASTER, pace=uneven(20)),
    batch("twenty tasks of uneven length, one is guilty", faster=FASTER, pace=uneven(20), red=GUILTY),
    batch("six tasks one by one, one is guilty", faster=FASTER, tasks=6, more=EACH, red="t3"),
]


@pytest.mark.parametrize(
    "row",
    [*(pytest.param(r, id=r.name) for r in QUICK), *(pytest.param(r, id=r.name, marks=pytest.mark.slow) for r in SLOW)],
)
def test_twenty_tasks_share_a_branch_and_each_is_paid_once(tmp_path: Path, row: Row) -> None:
    """D02 D06 D13: every task is DONE, no commit is empty, and only the guilty one starts twice."""
    outcome = play(row, tmp_path)
    print(told(outcome))
    require_paid_once(row, outcome)


def require_paid_once(row: Row, outcome: Outcome) -> None:
    require(row, outcome)
    starts = Counter(e.task for e in outcome.project.find(ev.AttemptLaunched))
    assert starts == {name: 1 + row.fixes_of.get(name, 0) for name in outcome.project.state().tasks}, starts
    assert len(pushes(outcome, "main")) <= most(row), told(outcome)
    early = too_early(outcome)
    assert not early, f"pushed while CI had no verdict on the tip below: {early}"
    files = outcome.scene.ground.files(main_of(outcome))
    assert {f"{name}.txt" for name in starts} <= set(files)


@pytest.mark.slow
def test_a_train_that_waits_for_no_verdict_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D02: planted: each change is pushed at once. No job goes on before two are, so the first has no verdict then."""
    monkeypatch.setattr(shared_push, "under_way", lambda state, repo: [])
    row = batch("planted", faster=FASTEST, tasks=3, more=EACH, hold=2, manners=Manners())
    outcome = play(row, tmp_path)
    with pytest.raises(AssertionError, match="pushed while CI had no verdict on the tip below"):
        require_paid_once(row, outcome)


def most(row: Row) -> int:
    """Pushes to the branch: as few as the show asks for, and one for the mend."""
    together = row.tasks if EACH in row.more else 12
    return together + len(row.fixes_of)


def too_early(outcome: Outcome) -> list[str]:
    """Tips that took the place of one which CI had not judged, as recorded: a forge may stop the run of that."""
    tip, is_judged, found = "", True, []
    for one in outcome.project.events():
        match one.event:
            case ev.Pushed(commit=commit, how="pushed" | "found"):
                found += [commit] * (not is_judged)
                tip, is_judged = commit, False
            case ev.CiJudged(sha=sha):
                is_judged = is_judged or sha == tip
    return found


def pushes(outcome: Outcome, branch: str) -> list[str]:
    return [one.after for one in outcome.scene.ground.pushes() if one.branch == branch]


def told(outcome: Outcome) -> str:
    """For people: what it took."""
    halves = sum("/half-" in one.branch for one in outcome.scene.ground.pushes())
    launched = outcome.project.find(ev.AttemptLaunched)
    return f"{len(pushes(outcome, 'main'))} pushes, {halves} halves, {len(launched)} starts; {outcome.server.summary()}"

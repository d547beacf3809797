"""What stands in the way of every push of a branch is asked about once, and everybody goes on together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from checker.invariants import Seen, broken
from ganger.core import events as ev
from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import GREEN, MIRROR, by_tree, ci
from tests.forges.scenario import Outcome, Row, ended_of, play

pytestmark = pytest.mark.whole

CANCELS = Manners(cancels=True)
EACH = 'pushes = "each"'
OUT = "BLOCKED(external)"
CASES = {
    "refused": Row("refused", tasks=3, before=("refuse policy: not today",), manners=CANCELS),
    "taken out": Row("taken out", ((by_tree(sec=0.8),),), tasks=3, meanwhile=((3, "cut main 1"),), more=EACH,
                     manners=CANCELS),
    "red before": Row("red before", ((by_tree("theirs.txt", sec=0.3),),), tasks=3, before=("push theirs.txt",),
                      others=(by_tree("theirs.txt", sec=0.3),), manners=CANCELS),
}  # fmt: skip


def ends(outcome: Outcome) -> set[str]:
    return {ended_of(task) for task in outcome.project.state().tasks.values()}


@pytest.mark.parametrize("name", CASES)
def test_what_is_in_the_way_of_all_is_asked_once_and_nobody_pays(tmp_path: Path, name: str) -> None:
    """D06 D12 Z06: one question, and no worker is asked to mend what is none of its own."""
    outcome = play(CASES[name], tmp_path)
    assert ends(outcome) == {OUT} and not any(t.counters.ci_fixes for t in outcome.project.state().tasks.values())
    assert len(outcome.project.find(ev.QuestionAsked)) == 1


def test_what_was_taken_out_is_not_on_the_branch_again(tmp_path: Path) -> None:
    """D17: neither by itself nor below something else."""
    outcome = play(CASES["taken out"], tmp_path)
    first = next(e.commit for e in outcome.project.find(ev.Pushed))
    assert not outcome.scene.ground.holds("main", first) and outcome.scene.world.own == 1


def test_whoever_waits_for_the_same_goes_on_when_one_is_retried(tmp_path: Path) -> None:
    """D12 G12: the remote takes pushes again; it does not matter which of them a person names."""
    outcome = play(replace(CASES["refused"], retry="allow"), tmp_path)
    assert ends(outcome) == {"DONE"} and len(outcome.project.find(ev.AttemptLaunched)) == 3


STOPPED = ci({"test": "run cancel"}, sec=0.3)
PACE = {f"t{n}": 1.2 * n for n in range(1, 5)}
SPENT = {
    "cancelled": Row("cancelled", ((STOPPED,),), tasks=5, pace=PACE),
    "the mirror does not come": Row("mirror", ((ci({MIRROR: "block skip"}, sec=0.3),),), tasks=5, pace=PACE),
    "cancelled on github": Row("github", ((replace(STOPPED, again=({"test": "run cancel"},) * 9),),), "github", tasks=4,
                               pace={"t2": 1.0, "t3": 2.0}),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if n else name for n, name in
                                  enumerate(SPENT)])  # fmt: skip
def test_a_cause_that_a_second_run_did_not_cure_costs_one_commit_of_nothing_however_many_come(
    tmp_path: Path, name: str
) -> None:
    """D02 D04: who comes later does not try the same again; one question, and no run is said to be missing."""
    outcome = play(SPENT[name], tmp_path)
    assert ends(outcome) == {OUT} and len(outcome.project.find(ev.QuestionAsked)) == 1
    assert outcome.scene.ground.empty_commits() <= 1
    assert not [t for t in outcome.project.state().tasks.values() if "never started" in t.detail]


def test_who_was_asked_about_goes_on_when_a_later_tip_is_green(tmp_path: Path) -> None:
    """D02 D04: the later tip holds the change and is its proof; no person is needed any more."""
    pushes = ((STOPPED,), (STOPPED,), (GREEN,))
    outcome = play(Row("later green", pushes, tasks=2, pace={"t1": 3.0}), tmp_path)
    assert ends(outcome) == {"DONE"} and len(outcome.project.find(ev.QuestionAsked)) == 1
    assert outcome.scene.ground.empty_commits() == 1 and len(outcome.project.find(ev.AttemptLaunched)) == 2


# Its jobs are cancelled in every attempt.
NEVER = replace(STOPPED, again=({"test": "run cancel"},) * 9)


@pytest.mark.parametrize("then", [("rerun", "again"), ("again",)])
def test_what_a_person_runs_again_on_the_page_is_not_taken_for_a_rerun_of_this_run(
    tmp_path: Path, then: Sequence[str]
) -> None:
    """D04: after `ganger retry` it may ask for one more itself; the judge counts only what it asked for."""
    row = Row("by hand", ((NEVER,),), "github", then=then, then_again=then)
    outcome = play(row, tmp_path)
    asked = [e for e in outcome.project.find(ev.Retriggered) if e.how == "rerun"]
    assert len(asked) == outcome.server.log.count("rerun", status=201) == 3
    assert broken(outcome.project.events(), Seen()) == [] and ends(outcome) == {OUT}

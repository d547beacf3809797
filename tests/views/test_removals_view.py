"""Branches from which commits of the run were removed, as `ganger status` shows them."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.control.removals import REMOVED
from ganger.core.model.ledger import RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import HealSchedule, Mode
from ganger.views.run.removals import removals

AT, TIP = "2026-01-01T00:00:00.000000Z", "a" * 40
OFF = Policy(heal_schedule=HealSchedule.OFF)


def after(repo: str, *events: ev.Event) -> RunState:
    state, rules = RunState(), RepoRules(repo, completion=("verified", "pushed"), branch="main")
    begun = ev.RunStarted("r", "digest", OFF, (TaskSpec("a", repo=repo), TaskSpec("b", repo=repo)))
    for seq, event in enumerate(
        (begun, ev.LeadStarted(1, policy=OFF, mode=Mode.LOCAL_GIT, repos=(rules,)), *events), 1
    ):
        apply(state, ev.Recorded(seq, AT, event))
    return state


ASKED = ev.QuestionAsked("q-1", "a", REMOVED, "what now?")


def test_the_line_names_branch_tasks_and_question() -> None:
    """Where it stands without opening the inbox."""
    (row,) = removals(after("", ev.CommitsRemoved("", TIP, ("a", "b")), ASKED))
    assert row.line == (
        "main: commits of this run were removed (a, b); nothing is pushed there until you answer; ganger inbox: q-1"
    )
    assert row.as_json() == {
        "repo": "", "branch": "main", "tip": TIP, "tasks": ["a", "b"], "question": "q-1", "leaves_out": False,
    }  # fmt: skip


def test_a_branch_that_is_gone_is_told_with_its_repository() -> None:
    """Nothing is left to compare with."""
    (row,) = removals(after("app", ev.CommitsRemoved("app", "", ("a",)), ASKED))
    assert row.line.startswith("app: main: the branch was deleted (a); ")
    assert row.as_json()["tip"] is None


def test_what_stays_out_is_told_until_the_branch_is_set_back_and_what_is_put_back_is_not() -> None:
    """No line outlives its matter."""
    seen = ev.CommitsRemoved("", TIP, ("a",)), ASKED
    (row,) = removals(after("", *seen, ev.QuestionAnswered("q-1", "x"), ev.RemovalDecided("", "leave_out")))
    assert row.line.endswith("; they stay out; the next push goes on without them")
    assert removals(after("", *seen, ev.RemovalDecided("", "put_back"))) == []
    assert removals(after("")) == []

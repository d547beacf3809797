"""Changes on their way, as status, tasks and why show them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ganger.core import events as ev
from ganger.core.model.ci import Ci, JobFact, RunFact, Word
from ganger.core.model.ledger import Milestone, RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.times import stamp
from ganger.core.vocabulary import BlockReason, HealSchedule, Mode, TaskStatus
from ganger.views.run.board import task_row
from ganger.views.run.deliveries import delivery_row, delivery_rows, repo_rows
from ganger.views.run.why import why

OFF = Policy(heal_schedule=HealSchedule.OFF)
SHA, BEGUN = "a" * 40, 1_767_225_600.0
LIB = RepoRules(
    "lib", locks="exclusive", completion=("verified", "pushed", "ci"), branch="main", ci_sec=600, ci_most_sec=3600
)
APP = RepoRules("app", depends_on=("lib",), locks="exclusive", completion=("verified",))
URL = "http://forge/runs/7"


class Way:
    """Task `a` in lib on its way, task `b` in app behind it; a second passes with each event."""

    def __init__(self) -> None:
        self.state = RunState()
        specs = (TaskSpec("a", repo="lib", timeout_sec=300), TaskSpec("b", repo="app"))
        self.record(ev.RunStarted("r1", "digest", OFF, specs))
        self.record(ev.LeadStarted(1, policy=OFF, mode=Mode.LOCAL_GIT, repos=(LIB, APP)))
        self.record(ev.AttemptStarted("a", 1, "t1", "coder", "first", "logs/x", "work"))

    def record(self, *events: ev.Event) -> None:
        for event in events:
            seq = self.state.log.last_seq + 1
            apply(self.state, ev.Recorded(seq, stamp(BEGUN + seq), event))
        assert self.state.log.refused == []

    def pushed(self) -> Way:
        self.record(ev.PushIntended("a", 1, "lib", "main", SHA, "c" * 40), ev.Pushed("a", 1, SHA, "main"))
        return self

    def seen(self, ci: Ci, why: str, passed: int, current: str = "", *, word: Word = Word.RUNNING) -> Way:
        jobs = (JobFact("lint", Word.SUCCESS), JobFact("build", word))
        run = RunFact("7", SHA, word, workflow="ci", url=URL, jobs=jobs)
        self.record(ev.CiSeen("a", 1, SHA, (run,), ci.value, why, passed, 2, current, source="forge"))
        return self

    def after(self, sec: float) -> str:
        return stamp(BEGUN + self.state.log.last_seq + sec)


@pytest.fixture
def way() -> Way:
    return Way()


def test_a_worker_at_it_has_a_milestone_and_its_own_time(way: Way) -> None:
    """D14 D40: WORKING, and what is left of its limit."""
    row = delivery_row(way.state, "a", way.after(60))
    assert row is not None and (row.milestone, row.left_sec) == ("WORKING", 240)
    assert delivery_row(way.state, "b", way.after(60)) is None


def test_ci_shows_jobs_the_current_one_and_the_time_left(way: Way) -> None:
    """D14 D40: jobs passed of all, the job that runs, and the time CI has left since the push."""
    way.pushed().seen(Ci.RUNNING, "build is not finished yet", 1, "build")
    row = delivery_row(way.state, "a", way.after(99))
    assert row is not None and row.line() == (
        f"a in lib  PUSHED_TO_CI ci_running, 1 of 2 jobs, at build, 8 min 20 s left  {URL}"
    )
    assert json.loads(json.dumps(row.as_json()))["left_sec"] == 500


def test_ci_that_is_late_goes_on_until_its_last_limit(way: Way) -> None:
    """D14: CI at work is given more time, and then it is over time."""
    way.pushed().seen(Ci.RUNNING, "build is not finished yet", 1, "build")
    left = [row.left_sec for sec in (699, 3700) if (row := delivery_row(way.state, "a", way.after(sec)))]
    assert left == [2900, -101]


def test_a_mend_shows_which_of_how_many(way: Way) -> None:
    """D06 D40: fix attempt n of max, and no more of the old commit's jobs than CI said."""
    way.pushed().seen(Ci.RED, "build failed", 1, word=Word.FAILURE)
    way.record(ev.CiJudged("a", 1, SHA, "red", "build failed", signature="s", log="logs/a.ci.1.log"))
    way.record(ev.AttemptFailed("a", 1, "ci_error", "s", "CI is red", "ci_fixes"), ev.TaskRequeued("a", "CI is red"))
    way.record(ev.AttemptStarted("a", 2, "t2", "coder", "again", "logs/y", "work"))
    row = delivery_row(way.state, "a", way.after(0))
    assert row is not None and (row.milestone, row.substate) == (Milestone.FIXING_CI, "implementing_fix")
    assert "fix 1 of 5" in row.line()
    told = why(way.state, "a")
    assert "fixes what CI found" in told.sentence and told.counters["ci_fixes"] == "1 of 5"
    assert any("logs/a.ci.1.log" in line for line in told.evidence)


def test_who_holds_which_repository_is_shown(way: Way) -> None:
    """D11: repository, task, milestone; also what is halted or red."""
    way.pushed()
    lib, app = repo_rows(way.state)
    assert lib.line() == "lib: held by a (PUSHED_TO_CI push_complete)" and app.line() == "app: free"
    way.record(ev.ChainHalted("lib", "a", "a key is out"), ev.ChainPaused("app", "b", SHA, "red"))
    lib, app = repo_rows(way.state)
    assert "HALTED: a key is out; ganger unlock lib --why TEXT" in lib.line() and "turned red by b" in app.line()


def test_a_row_of_tasks_has_repository_and_milestone(way: Way) -> None:
    """D40: for programs too."""
    way.pushed()
    row = task_row(way.state, "a").as_json()
    assert (row["repo"], row["milestone"], row["substate"]) == ("lib", "PUSHED_TO_CI", "push_complete")


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([], "its agent is working"),
        (["push"], "CI has no run for it yet"),
        (["push", "running"], f"CI of {SHA[:12]} is running: build is not finished yet; 1 of 2 jobs passed, build is"),
        (["push", "green"], "CI is green"),
    ],
)
def test_why_says_what_a_change_on_its_way_waits_for(way: Way, steps: list[str], says: str) -> None:
    """G10: one sentence, with the run's address where there is one."""
    for step in steps:
        if step == "push":
            way.pushed()
        elif step == "running":
            way.seen(Ci.RUNNING, "build is not finished yet", 1, "build")
        else:
            way.seen(Ci.GREEN, "all required jobs succeeded", 2, word=Word.SUCCESS)
    told = why(way.state, "a")
    assert says in told.sentence and (URL in told.sentence or "running" not in steps)


@pytest.mark.parametrize(
    ("reason", "review", "step"),
    [
        (BlockReason.EXTERNAL, "", "ganger retry a"),
        (BlockReason.AWAITING_REVIEW, SHA, "ganger approve a, or ganger rework a TEXT"),
    ],
)
def test_why_names_the_command_that_goes_on(way: Way, reason: BlockReason, review: str, step: str) -> None:
    """G10 W08: needs approval, CI never started, awaiting review: what it is and what to type."""
    way.pushed()
    if review:
        way.record(ev.ReviewAsked("a", 1, "person", SHA))
    way.record(ev.TaskSettled("a", TaskStatus.BLOCKED, "CI never started for it", reason, final=False))
    told = why(way.state, "a")
    assert told.next_step == step and reason.value in told.sentence


def test_what_is_done_is_no_longer_on_its_way(way: Way) -> None:
    """D40: rows are of what is open."""
    way.pushed()
    assert len(delivery_rows(way.state, way.after(0))) == 1
    way.state.tasks["a"] = replace(way.state.tasks["a"], status=TaskStatus.DONE)
    assert delivery_rows(way.state, way.after(0)) == []

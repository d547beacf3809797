"""The ledger as it is shown: every fact with its commit, and nothing called proved that is not."""

from __future__ import annotations

import json

import pytest

from ganger.core import events as ev
from ganger.core.events import delivery as ci_ev
from ganger.core.model.ci import Ci, JobFact, RunFact, Word
from ganger.core.model.ledger import RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.times import stamp
from ganger.core.vocabulary import HealSchedule, Mode
from ganger.views.run.deliveries import delivered, ledger_json, ledger_lines

OFF = Policy(heal_schedule=HealSchedule.OFF)
RED, GREEN = "a" * 40, "b" * 40
RULES = RepoRules("lib", completion=("verified", "pushed", "ci", "mirrored"), branch="main", mirror_job="mirror")


def run_of(sha: str, word: Word, **words: Word) -> RunFact:
    jobs = tuple(JobFact(name.replace("_", "-"), one, f"exit \x1b[2J {one.value}") for name, one in words.items())
    return RunFact(sha[:12], sha, word, "completed", workflow="ci", url="file:///ci", jobs=jobs, number=7)


class Told:
    """A run whose events are recorded one second apart."""

    def __init__(self) -> None:
        self.state = RunState()
        specs = (TaskSpec("units", repo="lib"), TaskSpec("app"))
        self.record(
            ev.RunStarted("r1", "digest", OFF, specs),
            ev.LeadStarted(1, policy=OFF, mode=Mode.LOCAL_GIT, repos=(RULES,)),
        )
        self.record(ev.AttemptStarted("units", 1, "t1", "coder", "first", "logs/x", "work"))

    def record(self, *events: object) -> None:
        for event in events:
            seq = self.state.log.last_seq + 1
            apply(self.state, ev.Recorded(seq, stamp(1_767_225_600.0 + seq), event))  # type: ignore[arg-type]
        assert self.state.log.refused == []

    def push(self, sha: str) -> None:
        self.record(ci_ev.PushIntended("units", 1, "lib", "main", sha, "c" * 40))
        self.record(ci_ev.Pushed("units", 1, sha, "main"))

    def see(self, sha: str, ci: Ci, run: RunFact, mirror: str = "") -> None:
        why = "test failed" if ci is Ci.RED else "all required jobs succeeded"
        self.record(ci_ev.CiSeen("units", 1, sha, (run,), ci.value, why, 1, 1, mirror=mirror, source="forge x"))
        verdict = "red" if ci is Ci.RED else "green"
        self.record(ci_ev.CiJudged("units", 1, sha, verdict, why, "forge x", signature="s"))


@pytest.fixture
def told() -> Told:
    told = Told()
    told.push(RED)
    told.see(RED, Ci.RED, run_of(RED, Word.FAILURE, test=Word.FAILURE))
    told.push(GREEN)
    return told


def test_the_whole_way_of_a_commit_is_shown_with_times_and_sources(told: Told) -> None:
    """D01 D18: tree, commit, push, CI run, each job, mirror, verdict."""
    told.see(GREEN, Ci.GREEN, run_of(GREEN, Word.SUCCESS, test=Word.SUCCESS, mirror=Word.SUCCESS), "success")
    told.record(ci_ev.MirrorProved("units", 1, GREEN, "mirror", "success"))
    text = "\n".join(ledger_lines(told.state, "units"))
    for part in ("tree      cccc", f"commit    {GREEN}", "push      to main", "CI run    ci #7", "✓ test", "✓ mirror"):
        assert part in text
    assert f"mirror    proved for {GREEN[:12]}" in text
    assert f"red for {RED[:12]}" in text and f"green for {GREEN[:12]}" in text
    assert "forge x" in text and "2026-01-01 00:00:" in text and "\x1b" not in text


def test_what_has_no_proof_is_named(told: Told) -> None:
    """D01: a pushed commit is not green, and the red one's run is not shown as its."""
    lines = ledger_lines(told.state, "units")
    assert "no proof yet of" in lines[0] and "ci" in lines[0] and "mirrored" in lines[0] and "pushed" not in lines[0]
    assert not any("CI run" in line for line in lines)
    assert ledger_json(told.state, "units")["missing"] == ["verified", "ci", "mirrored"]


def test_programs_get_the_same_as_json(told: Told) -> None:
    """D18: everything the ledger holds, in plain values."""
    read = json.loads(json.dumps(ledger_json(told.state, "units")))
    assert read["delivery"]["commit"] == GREEN and read["delivery"]["milestone"] == "PUSHED_TO_CI"
    assert [(one["commit"], one["verdict"]) for one in read["verdicts"]] == [(RED, "red")]
    assert {fact["source"] for fact in read["delivery"]["facts"]} >= {"remote", "forge x", "ganger"}


def test_a_task_that_delivers_nothing_has_no_ledger(told: Told) -> None:
    """D01: its completion is its verification."""
    assert delivered(told.state) == ["units"]
    assert ledger_json(told.state, "app")["delivery"] is None and len(ledger_lines(told.state, "app")) == 1

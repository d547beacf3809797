"""Nights on simulated time: a quota that runs out twice, and agents that fall silent for good."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.times import seconds_between
from ganger.core.vocabulary import HealSchedule, TaskStatus
from sim.plan import Plan, Rates
from sim.play import Outcome, play
from sim.quota_run import quota_run
from sim.report import play_seed, told
from sim.worlds import plan_of


@pytest.mark.whole
@pytest.mark.parametrize("seed", [75])
def test_a_night_whose_quota_runs_out_twice_ends_with_everything_done(seed: int, tmp_path: Path) -> None:
    """W07 G04: nothing starts while the quota is out, no counter pays, and afterwards starts are spread."""
    assert plan_of(seed).kind == "quota"
    played = play_seed(seed, tmp_path)
    assert not played.wrong, "\n".join(told(played))
    assert played.status == "COMPLETED" and played.run_hours >= 1.75
    assert played.happened["accounts paused"] >= 2 and played.happened["attempts"] > len(quota_run(seed).specs) >= 205


def stalling(calm_at: float) -> Plan:
    """One task whose agents do nothing at all until then."""
    return Plan(
        seed=1,
        kind="stalls",
        specs=(TaskSpec("t", verify_profile="check", prompt_ref="prompts/t.md", timeout_sec=20_000),),
        policy=Policy(heal_schedule=HealSchedule.OFF),
        budget=Budget(),
        causes=(),
        needs={},
        rates=Rates(stall=1.0),
        calm_at=calm_at,
        files={"prompts/t.md": "Write out/t.txt.\n"},
    )


def of(outcome: Outcome, kind: type[ev.Event]) -> list[ev.Event]:
    return [row.event for row in outcome.events if isinstance(row.event, kind)]


def test_an_agent_that_falls_silent_is_asked_ended_at_its_limit_and_started_again(tmp_path: Path) -> None:
    """H02 H03 Z03: suspicious at half of the limit, a stall at the whole, and its own counter pays."""
    outcome = play(stalling(1000.0), tmp_path / "world")
    began = next(row.at for row in outcome.events if isinstance(row.event, ev.AttemptStarted))
    at = [
        round(seconds_between(began, row.at))
        for row in outcome.events
        if isinstance(row.event, ev.WorkerSuspected | ev.WorkerEnding)
    ]
    assert at[:2] == [300, 600] and outcome.status == "COMPLETED" and not outcome.wrong
    failed = [event.counter for event in of(outcome, ev.AttemptFailed) if isinstance(event, ev.AttemptFailed)]
    assert failed == ["stalls"] * len(failed) and 1 <= len(failed) <= 2


def test_a_task_under_which_everybody_stalls_goes_to_another_worker_and_then_to_a_person(tmp_path: Path) -> None:
    """Z03 Z06: two restarts, another worker, an escalation; no worker attempt pays."""
    outcome = play(stalling(1e6), tmp_path / "world")
    failed = [event.counter for event in of(outcome, ev.AttemptFailed) if isinstance(event, ev.AttemptFailed)]
    settled = [event.status for event in of(outcome, ev.TaskSettled) if isinstance(event, ev.TaskSettled)]
    assert failed == ["stalls"] * 4 and settled == [TaskStatus.ESCALATED] and not outcome.wrong
    assert len(of(outcome, ev.QuestionAsked)) == 1 and outcome.simulated_sec < 4 * 700


def test_an_agent_that_works_is_never_ended_however_silent(tmp_path: Path) -> None:
    """H02: used processor time is work."""
    quiet = replace(stalling(1e6), rates=Rates(), work_sec=(9000.0, 10_000.0), tick_sec=10.0)
    outcome = play(quiet, tmp_path / "world")
    assert outcome.status == "COMPLETED" and not of(outcome, ev.WorkerEnding) and not outcome.wrong
    assert of(outcome, ev.LimitExtended)

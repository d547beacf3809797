"""Budgets: set aside before a launch, settled after it, never exceeded; and a question when one is used up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Budget, Policy, Spending
from ganger.core.model.run_state import Money, RunState
from ganger.core.model.task_state import TaskState
from ganger.core.money import budgets
from ganger.core.money.budgets import Purse, Reservation, reservation, run_refusal, task_refusal, time_limit
from ganger.core.vocabulary import HealSchedule, RunStatus
from tests.core.heal_runs import GAP, RIGHT, Ailment, HealRun, in_turn, tasks

AT = "2026-01-01T00:00:00+00:00"


def heal_run(budget: Budget, count: int = 10, at_once: int = 1, **more: Any) -> HealRun:
    policy = Policy(heal_schedule=HealSchedule.OFF, concurrency=at_once)
    return replace(HealRun(tasks(count), policy=policy, budget=budget), **more).begin()


def most_committed(run: HealRun) -> tuple[float, int, int]:
    """The most that was ever spent and set aside, read again from the events."""
    usd, tokens, attempts = 0.0, 0, 0
    most = (0.0, 0, 0)
    held: dict[tuple[str, int], tuple[float, int]] = {}
    for entry in run.events:
        event = entry.event
        if isinstance(event, ev.AttemptStarted):
            held[event.task, event.attempt] = event.reserved_usd, event.reserved_tokens
            attempts += 1
        elif isinstance(event, ev.HealStarted):
            held["", event.round] = event.reserved_usd, event.reserved_tokens
        elif isinstance(event, ev.CostSettled):
            held.pop((event.task, event.attempt))
            usd, tokens = usd + event.usd, tokens + event.input_tokens + event.output_tokens
        committed = (usd + sum(u for u, _ in held.values()), tokens + sum(t for _, t in held.values()), attempts)
        most = (max(most[0], committed[0]), max(most[1], committed[1]), max(most[2], committed[2]))
    return most


LIMITS: dict[str, tuple[Budget, str]] = {
    "attempts": (Budget(attempts=4), "budget.attempts: 4 of 4 attempts are used"),
    "usd": (Budget(usd=2.2, attempt_usd=0.5), "budget.usd: $2.00 of $2.20 are spent or reserved"),
    "usd, learned": (Budget(usd=2.2), "budget.usd: $2.00 of $2.20 are spent or reserved"),
    "tokens": (Budget(tokens=450, attempt_tokens=100), "budget.tokens: 400 of 450 tokens are used or reserved"),
    "tokens, learned": (Budget(tokens=450), "budget.tokens: 400 of 450 tokens are used or reserved"),
}


@pytest.mark.parametrize("at_once", [1, 3, 8])
@pytest.mark.parametrize("case", LIMITS)
def test_a_run_stops_before_it_overspends(case: str, at_once: int) -> None:
    """G04: whatever is limited and however many run at once; four attempts of $0.50 and 100 tokens fit."""
    budget, reason = LIMITS[case]
    run = heal_run(budget, at_once=at_once, usd=0.5, tokens=100).run()
    usd, tokens, attempts = most_committed(run)
    assert usd <= (budget.usd or 99) and tokens <= (budget.tokens or 9999) and attempts == 4
    assert run.state.status is RunStatus.ABORTED and reason in (run.state.abort_reason or "")


@pytest.mark.parametrize("case", LIMITS)
def test_a_used_up_budget_is_a_question_and_a_larger_one_goes_on(case: str) -> None:
    """G04 Z07: nothing is lost; the same run finishes with more."""
    run = heal_run(LIMITS[case][0], count=6, usd=0.5, tokens=100).run()
    assert [q.kind for q in run.state.inbox.questions.values()] == ["budget"]
    run.budget = Budget(attempts=99, usd=99, tokens=9999)
    assert run.begin().run().state.status is RunStatus.COMPLETED and len(run.started) == 6


def test_an_unknown_cost_counts_as_what_was_set_aside() -> None:
    """G04: an agent that does not say what it costs cannot spend without end."""
    run = heal_run(Budget(usd=1.0, attempt_usd=0.3), usd=None).run()
    assert len(run.started) == 3 and run.state.money.spent.usd == pytest.approx(0.9)
    settled = [e for e in run.of(ev.CostSettled) if isinstance(e, ev.CostSettled)]
    assert {(e.usd, e.known) for e in settled} == {(0.3, False)}


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("budget", [Budget(usd=0.01), Budget(task_usd=5.0)], ids=["run", "task"])
def test_a_budget_in_dollars_stops_where_nobody_knows_the_price(budget: Budget, at_once: int) -> None:
    """G04: tokens are told and have no price; one attempt shows it, and an estimate lets the rest go on."""
    alone = replace(budget, usd=budget.usd or 99.0)
    run = heal_run(alone, count=4, at_once=at_once, usd=None).run()
    assert len(run.started) == 1 and run.state.status is RunStatus.ABORTED
    (question,) = run.state.inbox.questions.values()
    assert question.kind == "budget" and "prices." in question.text and "budget.attempt_usd" in question.text
    run.budget = Budget(usd=99, attempt_usd=0.5)
    assert run.begin().run().state.status is RunStatus.COMPLETED and len(run.started) == 4


def test_what_attempts_cost_so_far_raises_what_is_set_aside() -> None:
    """G04: an estimate that is too low holds for no longer than one attempt."""
    run = heal_run(Budget(usd=10, attempt_usd=0.1), usd=2.0)
    assert reservation(run.state) == Reservation(0.1, 0)
    while not run.of(ev.CostSettled):
        run.step()
    assert reservation(run.state) == Reservation(2.0, 0)


def test_without_any_estimate_the_first_attempt_shows_alone_what_one_costs() -> None:
    """G04: eight at once could spend eight times what nobody knows yet."""
    run = heal_run(Budget(usd=3.0), count=8, at_once=8, usd=0.5)
    run.step()
    assert len(run.state.index.running) == 1
    assert most_committed(run.run())[0] <= 3.0
    assert len(run.started) == 6


def test_a_reservation_ends_when_its_attempt_does() -> None:
    """G04: nothing stays set aside, also for an attempt that ended with its lead."""
    run = heal_run(Budget(usd=10, attempt_usd=1), count=3, at_once=3)
    run.step()
    assert run.state.money.spent.reserved_usd == 3
    run.record(ev.AttemptInterrupted("t01", 1, "stopped"))
    assert run.state.money.spent.reserved_usd == 2 and run.state.tasks["t01"].spent.reserved_usd == 0
    assert run.run().state.money.spent.reserved_usd == 0


TASK_LIMITS = {
    "usd": Budget(task_usd=1.2, attempt_usd=0.5),
    "tokens": Budget(task_tokens=250, attempt_tokens=100),
    "time": Budget(task_wall_sec=20),
}


@pytest.mark.parametrize("case", TASK_LIMITS)
def test_a_tasks_own_budget_stops_that_task_and_no_other(case: str) -> None:
    """G04: a task that fails dearly ends, and says why; the others are DONE."""
    world = {"t01": [Ailment(cls=GAP)]}
    run = heal_run(TASK_LIMITS[case], count=3, world=world, usd=0.5, tokens=100, takes_sec=10.0)
    run.policy = Policy(heal_schedule=HealSchedule.OFF, max_worker_attempts_per_task=9)
    run.begin().run()
    assert run.started.count("t01") == 2 and run.status("t02", "t03") == ["DONE", "DONE"]
    assert f"t01: budget.task_{ {'time': 'wall_sec'}.get(case, case) }" in (run.state.abort_reason or "")


def test_wall_time_is_what_the_run_was_led_over_all_leads() -> None:
    """G04: the time between two leads costs nothing."""
    run = heal_run(Budget(wall_sec=30), takes_sec=10.0)
    assert "budget.wall_sec: the run has worked for 30 of 30 s" in (run.run().state.abort_reason or "")
    assert len(run.started) == 3
    run.now += 10_000
    run.budget = Budget(wall_sec=50)
    assert len(run.begin().run().started) == 5


def test_an_attempt_gets_no_more_time_than_the_budgets_leave() -> None:
    """G04: its own limit, the run's rest or the task's rest, whichever is least."""
    run = heal_run(Budget(wall_sec=100, task_wall_sec=40), takes_sec=10.0, world={"t01": [Ailment(times=1)]})
    assert time_limit(run.state, "t01", run.state.log.last_at) == 40
    while run.state.tasks["t01"].attempts < 2:
        run.step()
    assert time_limit(run.state, "t01", run.state.log.last_at) == 30
    run.state.money.budget = Budget(wall_sec=15)
    assert time_limit(run.state, "t01", run.state.log.last_at) == pytest.approx(5)


def test_a_healer_is_paid_from_the_same_budget() -> None:
    """G04: set aside before it starts; without room for it there is no round."""
    policy = Policy(heal_schedule=HealSchedule.BATCH, concurrency=9)
    run = HealRun(
        tasks(5), {"t01": [Ailment("cure")]}, in_turn(RIGHT), policy, Budget(usd=4.0, attempt_usd=0.5), usd=0.5
    )
    run.begin().run()
    assert run.state.status is RunStatus.COMPLETED and run.state.money.spent.usd == pytest.approx(3.5)
    poor = replace(run, budget=Budget(usd=2.6, attempt_usd=0.5), state=RunState(), events=[], texts={}, suffered={})
    poor.begin().run()
    assert poor.of(ev.HealStarted) == [] and most_committed(poor)[0] <= 2.6


REFUSALS: dict[str, tuple[Budget, Spending, Purse, bool]] = {
    "no limit": (Budget(), Spending(usd=9, tokens=9, attempts=9), Purse(), False),
    "the last cent": (Budget(usd=1, attempt_usd=0.5), Spending(usd=0.5, attempts=1), Purse(), False),
    "one cent too much": (Budget(usd=1, attempt_usd=0.5), Spending(usd=0.51, attempts=2), Purse(), True),
    "set aside by others": (Budget(usd=1, attempt_usd=0.5), Spending(reserved_usd=1, attempts=2), Purse(), True),
    "set aside just now": (Budget(usd=1, attempt_usd=0.5), Spending(), Purse(usd=1, attempts=2), True),
    "nothing left": (Budget(usd=1), Spending(usd=1, attempts=9), Purse(), True),
    "no money at all": (Budget(usd=0), Spending(), Purse(), True),
    "the last attempt": (Budget(attempts=3), Spending(attempts=2), Purse(), False),
    "the last one given away": (Budget(attempts=3), Spending(attempts=2), Purse(attempts=1), True),
    "tokens set aside": (Budget(tokens=10, attempt_tokens=5), Spending(reserved_tokens=6), Purse(), True),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_the_edges_of_a_budget(case: str) -> None:
    """G04: exactly the limit may be used, nothing beyond it."""
    budget, spent, purse, refused = REFUSALS[case]
    assert bool(run_refusal(RunState(money=Money(budget=budget, spent=spent)), AT, purse)) == refused


def test_a_refusal_names_the_setting_to_raise() -> None:
    """G04: for a person who reads it in the morning."""
    task = TaskState(spent=Spending(usd=0.8, tokens=50, wall_sec=61))
    assert task_refusal(Budget(task_usd=1), task, Reservation(0.5)) == "budget.task_usd: $0.80 of $1.00 are spent"
    assert task_refusal(Budget(task_wall_sec=60), task, Reservation()) == "budget.task_wall_sec: 61 of 60 s are used"
    assert task_refusal(Budget(task_tokens=50), task, Reservation()).startswith("budget.task_tokens: 50 of 50")


def test_the_recount_notices_a_budget_that_forgets_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """G04: a planted bug: money set aside for running attempts is not counted."""
    monkeypatch.setattr(budgets, "_total", lambda spent: spent.usd)
    monkeypatch.setattr(Purse, "add", lambda self, reservation: None)
    run = heal_run(Budget(usd=2.2, attempt_usd=0.5), at_once=8, usd=0.5).run()
    assert most_committed(run)[0] > 2.2

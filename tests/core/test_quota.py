"""Quota: one clock per account, shared by all its workers; fewer at once after a rate limit, and more again later."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Budget, Policy
from ganger.core.model.run_state import Indexes, RunState
from ganger.core.model.task_state import CurrentAttempt, TaskState
from ganger.core.scheduling import choosing
from ganger.core.scheduling.quota import after_quota, after_success, has_room, paused_until, spread_after
from ganger.core.scheduling.windows import Start, Wait, decide, starts_after
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, RunStatus, TaskStatus
from tests.core.heal_runs import RIGHT, Ailment, HealRun, in_turn, names, tasks

LIMITED = Ailment(signal="429 too many requests", cls=FailureClass.QUOTA, times=1)
ACCOUNTS = {"worker": "first", "tester": "second"}


def heal_run(count: int, limited: tuple[str, ...], schedule: HealSchedule = HealSchedule.OFF, **more: Any) -> HealRun:
    """`count` tasks, the even ones of the other account; `limited` hit their account's limit once."""
    specs = tuple(replace(s, role="worker" if n % 2 == 0 else "tester") for n, s in enumerate(tasks(count)))
    policy = Policy(heal_schedule=schedule, concurrency=4, quota_wait_sec=300)
    world = {name: [LIMITED] for name in limited}
    return replace(HealRun(specs, world, in_turn(RIGHT), policy, accounts=ACCOUNTS), **more).begin()


def until_blocked(run: HealRun) -> HealRun:
    while not run.state.index.counts[TaskStatus.BLOCKED]:
        run.step()
    return run


def starts_while_paused(run: HealRun) -> set[str]:
    """Accounts of the attempts that began between a pause and its end."""
    until, found = 0.0, set()
    for entry in run.events:
        if isinstance(entry.event, ev.AccountPaused):
            until = entry.event.until
        if isinstance(entry.event, ev.AttemptStarted) and datetime.fromisoformat(entry.at).timestamp() < until:
            found.add(entry.event.account)
    return found


def test_a_quota_blocks_the_task_and_it_comes_back_by_itself() -> None:
    """W07 G04: BLOCKED(quota_wait) until the account's clock, then DONE without a person."""
    run = until_blocked(heal_run(1, ("t01",)))
    now = run.state.tasks["t01"]
    assert (now.block_reason, now.not_before) == (BlockReason.QUOTA_WAIT, run.now + 300)
    assert run.run().state.status is RunStatus.COMPLETED and run.state.inbox.questions == {}


@pytest.mark.parametrize("schedule", list(HealSchedule))
def test_every_task_of_the_account_waits_and_other_accounts_go_on(schedule: HealSchedule) -> None:
    """G04 W07: not only the one that hit the limit; no healer is asked."""
    run = heal_run(12, ("t01",), schedule).run()
    assert starts_while_paused(run) <= {"second"}
    assert run.state.status is RunStatus.COMPLETED and run.of(ev.HealStarted) == []
    if schedule is HealSchedule.OFF:
        assert starts_while_paused(run) == {"second"}


def test_no_counter_pays_for_a_quota() -> None:
    """W07: not a worker attempt, nor any retry; only the log is numbered on."""
    run = heal_run(1, ("t01",), world={"t01": [replace(LIMITED, times=5)]}).run()
    now = run.state.tasks["t01"]
    assert (
        now.attempts,
        now.counters.worker_attempts,
        now.counters.transient_retries,
        now.counters.format_retries,
    ) == (6, 1, 0, 0)
    assert now.status is TaskStatus.DONE and now.counters.healer_attempts == 0


def test_dependents_wait_with_a_task_instead_of_being_blocked() -> None:
    """W07 T03: it will come back."""
    specs = (*tasks(1), replace(tasks(1)[0], id="after", depends_on=("t01",)))
    run = until_blocked(heal_run(1, ("t01",), specs=specs))
    assert run.status("after") == ["PENDING"] and run.run().state.status is RunStatus.COMPLETED


def test_a_quota_wait_survives_its_lead() -> None:
    """G04 H09: the account's clock is in the events; a new lead waits for the same moment."""
    run = until_blocked(heal_run(2, ("t01",)))
    due = run.state.tasks["t01"].not_before
    run.record(ev.StopRequested("signal"), *(ev.AttemptInterrupted(t, 1, "") for t in sorted(run.state.index.running)))
    run.run().begin().run()
    assert run.state.status is RunStatus.COMPLETED and run.now >= due


def test_concurrency_of_the_account_is_halved_and_grows_with_every_success() -> None:
    """G04: 4 at once, then 2, then 3, then no limit any more."""
    run = heal_run(30, ("t01",), accounts={"worker": "one", "tester": "one"}).run()
    limits = [e.at_once for e in run.of(ev.AccountLimited) if isinstance(e, ev.AccountLimited)]
    assert limits[:3] == [2, 3, 0] and run.state.quota.limited == {}


def busy(running: int, **more: Any) -> RunState:
    made = {name: TaskState(TaskStatus.RUNNING, attempt=CurrentAttempt(account="a")) for name in names(1, running)}
    state = RunState(tasks=made, index=Indexes(running=set(made)), policy=Policy(concurrency=8, quota_wait_sec=60))
    for name, value in more.items():
        setattr(state.quota if hasattr(state.quota, name) else state, name, value)
    return state


CUTS: dict[str, tuple[RunState, list[int]]] = {
    "half of what runs": (busy(8), [4]),
    "never below one": (busy(1), [1]),
    "one of three": (busy(3), [1]),
    "once per pause": (busy(8, paused={"a": 150.0}), []),
    "again after the pause": (busy(4, paused={"a": 90.0}, limited={"a": 4}), [2]),
    "not upwards": (busy(8, limited={"a": 2}), []),
    "another account's limit": (busy(8, limited={"b": 1}), [4]),
    "one at a time anyway": (busy(1, policy=Policy(concurrency=1)), []),
}


@pytest.mark.parametrize("case", CUTS)
def test_how_far_a_rate_limit_cuts(case: str) -> None:
    """G04: a burst of refusals is one rate limit."""
    state, cuts = CUTS[case]
    events = after_quota(state, "a", 100.0, None)
    assert [event.at_once for event in events if isinstance(event, ev.AccountLimited)] == cuts


@pytest.mark.parametrize(("reset_at", "until"), [(None, 160.0), (500.0, 500.0), (90.0, 160.0)])
def test_a_reset_time_the_agent_names_counts_unless_it_is_over(reset_at: float | None, until: float) -> None:
    """G04 W07: else quota_wait_sec."""
    events = after_quota(busy(1), "a", 100.0, reset_at)
    assert [event.until for event in events if isinstance(event, ev.AccountPaused)] == [until]


def test_a_pause_is_never_shortened() -> None:
    """G04: a second worker that knows less does not wake the others."""
    state = busy(4, paused={"a": 1000.0})
    assert after_quota(state, "a", 100.0, None) == [] and paused_until(state, "a", 100.0) == 1000.0
    assert paused_until(state, "a", 1000.0) == 0.0 and paused_until(state, "b", 100.0) == 0.0


def test_room_is_counted_per_account() -> None:
    """G04: the limit of one account says nothing about another."""
    state = busy(4, limited={"a": 4})
    assert not has_room(state, "a", {"a": 4}) and has_room(state, "a", {"a": 3}) and has_room(state, "b", {"a": 4})
    assert after_success(state, "b") == []
    assert after_success(state, "a") == [ev.AccountLimited("a", 5, "a success since the cut")]


def test_server_trouble_never_cuts_concurrency() -> None:
    """G04 D12: transient_infra waits and retries on its own counter."""
    trouble = Ailment(signal="502 bad gateway", cls=FailureClass.TRANSIENT_INFRA, times=3)
    run = heal_run(8, (), world={name: [trouble] for name in names(1, 8)}).run()
    assert run.of(ev.AccountLimited) == [] and run.of(ev.AccountPaused) == []
    assert run.state.status is RunStatus.COMPLETED
    assert {run.state.tasks[name].counters.transient_retries for name in names(1, 8)} == {3}


def test_a_time_budget_ends_a_run_that_only_waits() -> None:
    """G04: quota has no counter; the budget decides."""
    run = heal_run(1, (), world={"t01": [replace(LIMITED, times=99)]}, budget=Budget(wall_sec=1000)).run()
    assert run.state.status is RunStatus.ABORTED and "budget.wall_sec" in (run.state.abort_reason or "")
    assert [q.kind for q in run.state.inbox.questions.values()] == ["budget"]


def test_while_an_account_rests_the_lead_waits_for_its_clock_and_nothing_else() -> None:
    """H12 G04: one wait until the moment, no polling."""
    run = until_blocked(heal_run(1, ("t01",)))
    while run.state.windows.current is not None or run.state.index.running:
        run.step()
    assert [type(d).__name__ for d in decide(run.state, run.now)] == ["Wait"]


def started_after_rest(schedule: HealSchedule, spread: float) -> list[float]:
    """How long after their account's rest twenty of forty tasks began, of which five had hit its limit."""
    policy = Policy(heal_schedule=schedule, concurrency=20, batch_size=20, quota_spread_sec=spread)
    run = HealRun(tasks(40), policy=policy, accounts={"worker": "one"}).begin()
    rest = run.now + 300
    run.record(ev.AccountPaused("one", rest, "quota"))
    for name in names(1, 5):
        run.record(ev.AttemptStarted(name, 1, name, "", "", "log", account="one"))
        run.record(ev.TaskSettled(name, TaskStatus.BLOCKED, "", BlockReason.QUOTA_WAIT, final=False, not_before=rest))
    began: dict[str, float] = {}
    while len(began) < 20:
        for decision in decide(run.state, run.now):
            run.carry_out(decision)
            if isinstance(decision, Start):
                began[decision.task] = run.now - rest
    assert schedule is not HealSchedule.BATCH or began.keys() > set(names(1, 5))
    return sorted(began.values())


def most_within_a_second(moments: list[float]) -> int:
    return max(sum(1 for other in moments if at <= other < at + 1.0) for at in moments)


@pytest.mark.parametrize("schedule", [HealSchedule.OFF, HealSchedule.BATCH, HealSchedule.EPOCH])
def test_after_a_rest_the_tasks_of_an_account_start_one_after_another(schedule: HealSchedule) -> None:
    """W07 G04: those that hit the limit and those that waited behind it, within the spread and the same each time."""
    began = started_after_rest(schedule, 20.0)
    assert began[0] > 0 and 15 < began[-1] < 20
    assert most_within_a_second(began) <= 2 and began == started_after_rest(schedule, 20.0)


def test_however_many_wait_the_places_fill_one_by_one() -> None:
    """W07 G04: a thousand tasks behind one account start no faster than twenty."""
    state, began, now = resting(1000), [], 1000.0
    while now < 1020.0:
        for decision in decide(state, now):
            if isinstance(decision, Start):
                began.append(now)
                claim = ev.AttemptStarted(decision.task, 1, decision.task, "", "", "log", account="one")
                apply(state, ev.Recorded(state.log.last_seq + 1, "", claim))
            elif isinstance(decision, Wait):
                assert now < decision.until
        waits = [one.until for one in decide(state, now) if isinstance(one, Wait)]
        now = min(waits, default=1020.0)
    assert len(began) == 7 and most_within_a_second(began) == 1


def test_without_a_spread_they_start_as_one() -> None:
    """W07: 0 is off; and the count above would notice it."""
    assert most_within_a_second(started_after_rest(HealSchedule.OFF, 0.0)) == 20


def test_the_moment_that_is_told_is_the_moment_of_the_start() -> None:
    """W07 Z09: for a blocked task and for one that only waits; the same in every process."""
    run = until_blocked(heal_run(2, ("t01",), accounts={"worker": "one", "tester": "one"}))
    run.record(ev.SettingsChanged(replace(run.state.policy, quota_spread_sec=20.0), Budget()))
    rest = run.state.quota.paused["one"]
    told = {name: starts_after(run.state, name, run.now) for name in names(1, 2)}
    assert told["t01"] == spread_after(run.state, rest, "t01") and rest < told["t01"] < rest + 20
    while run.now < told["t01"]:
        run.step()
    assert run.now == told["t01"] and decide(run.state, run.now) == [Start("t01")]


def resting(count: int, **more: Any) -> RunState:
    specs = tuple(replace(spec, id=f"task-{n}") for n, spec in enumerate(tasks(count)))
    policy = Policy(heal_schedule=HealSchedule.OFF, concurrency=8, quota_spread_sec=20.0)
    run = HealRun(specs, policy=policy, accounts={"worker": "one"})
    apply(run.state, ev.Recorded(1, "", ev.RunStarted("run", "digest", policy, specs)))
    apply(run.state, ev.Recorded(2, "", ev.LeadStarted(1, policy=policy, accounts={"worker": "one"}, **more)))
    apply(run.state, ev.Recorded(3, "", ev.AttemptStarted("task-0", 1, "t", "", "", "log", account="one")))
    apply(run.state, ev.Recorded(4, "", ev.AccountPaused("one", 1000.0, "quota")))
    return run.state


@pytest.mark.parametrize(("now", "budget_sec"), [(500.0, 0.02), (1010.0, 0.3), (1021.0, 0.02)])
def test_ten_thousand_tasks_behind_an_account_are_decided_about_at_once(now: float, budget_sec: float) -> None:
    """W07: while it rests, while they start, and after it; the bounds are ten times what it takes."""
    state = resting(10_000)
    began = time.process_time()
    decisions = decide(state, now)
    assert time.process_time() - began < budget_sec
    assert isinstance(decisions[0], Wait if now < 1000 else Start)


def test_the_ward_notices_a_pause_that_holds_one_task_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """G04: a planted bug: the account's clock is not looked at."""
    monkeypatch.setattr(choosing, "paused_until", lambda *_: 0.0)
    assert "first" in starts_while_paused(heal_run(12, ("t01",)).run())

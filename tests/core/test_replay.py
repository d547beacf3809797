"""Recorded runs held against today's core: the same core agrees with itself, another one is found out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ganger.contracts.parser import Refused, parse_heal, parse_result
from ganger.core import events as ev, replay as replay_module
from ganger.core.control.commands import Refusal
from ganger.core.failures.classes import failure
from ganger.core.failures.retries import Then, after_failure
from ganger.core.healing.policy import healing_on
from ganger.core.model.counters import counted
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.planning.dependents import blocked_behind
from ganger.core.replay import Log, amendment, replay, reread
from ganger.core.scheduling.windows import (
    CloseWindow,
    Decision,
    Finish,
    OpenWindow,
    Start,
    Wait,
    closing_events,
    decide,
)
from ganger.core.state.apply import apply
from ganger.core.vocabulary import FailureClass, HealSchedule, RunStatus, TaskStatus

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
D = TaskStatus.DONE
CLASSES = (FailureClass.TEST_ERROR, FailureClass.CONTRACT_ERROR, FailureClass.CRASH, FailureClass.REAL_BUG)
SPECS = tuple(TaskSpec(f"t{n}", tuple(f"t{m}" for m in range(n) if (n * m) % 5 == 3)) for n in range(14))


class Play:
    """The core plays a run with itself, and keeps what is recorded; some claims come later than they were decided."""

    def __init__(self, seed: int, policy: Policy, healer: str = "", specs: Sequence[TaskSpec] = SPECS) -> None:
        self.chance, self.state, self.rows = random.Random(seed), RunState(), list[ev.Recorded]()
        self.clock = datetime(2026, 1, 1, tzinfo=UTC)
        self.commit(ev.RunStarted("r", "d", policy, tuple(specs)), ev.LeadStarted(1, policy=policy, healer=healer))

    def commit(self, *events: ev.Event) -> None:
        self.clock += timedelta(seconds=1)
        for event in events:
            self.rows.append(ev.Recorded(len(self.rows) + 1, self.clock.isoformat(), event))
            apply(self.state, self.rows[-1])
        assert self.state.log.refused == []

    def run(self) -> list[ev.Recorded]:
        while not self.state.finished:
            decisions = decide(self.state, self.clock.timestamp())
            running = sorted(self.state.index.running)
            if running and (not decisions or (isinstance(decisions[0], Start) and self.chance.random() < 0.5)):
                self.commit(*self.ended(self.chance.choice(running)))
            self.clock += timedelta(seconds=1)
            for decision in decisions:
                self.carry_out(decision, together=self.clock)
        return self.rows

    def carry_out(self, decision: Decision, together: datetime) -> None:
        match decision:
            case Start(task):
                self.clock = together - timedelta(seconds=1)
                number = self.state.tasks[task].attempts + 1
                self.commit(ev.AttemptStarted(task, number, f"{task}.{number}", "agent", "", f"{task}.{number}.log"))
            case OpenWindow(size, tasks, retry_of):
                self.commit(ev.WindowOpened(self.state.windows.opened + 1, size, tasks, retry_of))
            case CloseWindow():
                self.close(decision)
            case Finish(status, reason, why):
                self.commit(ev.RunFinished(status, reason, {}, why))
            case Wait(until):
                self.clock = datetime.fromtimestamp(until, UTC)

    def close(self, close: CloseWindow) -> None:
        window, verdict = self.state.windows.current, close.verdict
        assert window is not None
        self.commit(*closing_events(self.state, close))
        if verdict.heal and not verdict.abandon:
            self.heal(window.index, window.tasks, verdict.heal, window.lineage)

    def heal(self, window: int, tasks: tuple[str, ...], failed: tuple[str, ...], lineage: int) -> None:
        number = len(self.state.healing.rounds) + 1
        self.commit(ev.HealStarted(number, window, tasks, failed, "healer", "heal.log", "token", lineage=lineage))
        again = [ev.TaskRequeued(name, "healed", granted=1) for name in failed]
        self.commit(ev.HealFinished(number, "RETRY", "test_error", "x", retry=failed), *again)

    def ended(self, task: str) -> list[ev.Event]:
        number = self.state.tasks[task].attempts
        if self.chance.random() < 0.6:
            return [ev.VerifyFinished(task, number, True, "log", 0.0, ()), ev.TaskSettled(task, D, "verified")]
        cls = self.chance.choice(CLASSES)
        now, policy = self.state.tasks[task], self.state.policy
        problem = failure(cls, "boom", "boom", own_id=task)
        chosen = after_failure(self.state.specs[task], now, policy, problem, healing=healing_on(self.state))
        mark = ev.AttemptFailed(task, number, cls.value, problem.signature, "boom", chosen.counter)
        if chosen.then is Then.AGAIN_NOW:
            return [mark, ev.TaskRequeued(task, chosen.why)]
        final = chosen.then is Then.SETTLE
        settled = ev.TaskSettled(task, chosen.status, "", chosen.block_reason, final=final)
        if final:
            return [mark, settled, *blocked_behind(self.state, [task])]
        off = policy.heal_schedule is HealSchedule.OFF
        return [mark, settled, ev.TaskRequeued(task, "again")] if off else [mark, settled]


def golden(name: str) -> list[ev.Recorded]:
    rows = [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]
    return [ev.Recorded(r["seq"], r["at"], ev.decode(r["type"], json.dumps(r["data"]))) for r in rows]


def differences(rows: Sequence[ev.Recorded], *settings: tuple[str, str]) -> list[tuple[str, str]]:
    found = replay(rows, amendment(settings) if settings else None)
    return [(d.recorded, d.today) for d in found.divergences]


@pytest.mark.brief(3)
@pytest.mark.parametrize("healer", ["", "healer"])
@pytest.mark.parametrize("schedule", HealSchedule)
def test_a_core_that_has_not_changed_decides_everything_again(schedule: HealSchedule, healer: str) -> None:
    """G07: also where a claim was decided before the end of another attempt was seen."""
    compared = 0
    for seed in range(12):
        rows = Play(seed, Policy(heal_schedule=schedule, concurrency=3, batch_size=4), healer).run()
        assert differences(rows) == []
        compared += replay(rows).decisions
    assert compared > 12 * len(SPECS)


# Later journals were composed to hold every type of event; at these the composer decided, not the core.
COMPOSED = {
    # What stands outside a task no longer uses up an attempt of it.
    "journal-1": {58},
    "journal-2": {16, 61, 75, 90, 91, 93, 120, 123},
    "journal-3": {32, 49},
}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("journal-*.jsonl")), ids=lambda path: path.stem)
def test_journals_of_the_past_replay_without_difference(path: Path) -> None:
    """G07: whoever changes a decision on purpose names the difference here."""
    found = replay(golden(path.name))
    assert {d.seq for d in found.divergences} <= COMPOSED.get(path.stem, set())
    assert found.decisions > 1 and not any(d.today.startswith("refuse it") for d in found.divergences)


PLANTED: dict[str, tuple[str, Callable[..., Any]]] = {
    "another order": ("decide", lambda state, now: decide(state, now)[::-1]),
    "one too few": ("decide", lambda state, now: decide(state, now)[:-1]),
    "never ends": ("decide", lambda state, now: [d for d in decide(state, now) if not isinstance(d, Finish)]),
    "no format retry": (
        "after_failure",
        lambda spec, task, policy, failed, **more: after_failure(
            spec, task, replace(policy, format_retries=0), failed, **more
        ),
    ),
    "an attempt more": (
        "after_failure",
        lambda spec, task, policy, failed, **more: after_failure(
            spec, replace(task, counters=counted(task.counters, "worker_attempts", -1)), policy, failed, **more
        ),
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_core_with_a_planted_bug_is_found_out(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """G07: each of them, on an ordinary run."""
    runs = [Play(seed, Policy(heal_schedule=HealSchedule.OFF, concurrency=3)).run() for seed in range(12)]
    monkeypatch.setattr(replay_module, *PLANTED[bug])
    assert any(differences(rows) for rows in runs)


def test_a_window_that_grows_otherwise_is_found_out() -> None:
    """G07 T12: sizes are decisions too."""
    rows = Play(1, Policy()).run()
    place = next(n for n, row in enumerate(rows) if isinstance(row.event, ev.WindowClosed))
    closed = rows[place].event
    assert isinstance(closed, ev.WindowClosed)
    rows[place] = replace(rows[place], event=replace(closed, next_size=closed.next_size + 4))
    assert f"next size {closed.next_size + 4}" in differences(rows)[0][0]


def test_another_setting_shows_the_first_place_where_it_matters() -> None:
    """G07: a policy is tried on what really happened."""
    rows = Play(5, Policy(heal_schedule=HealSchedule.OFF)).run()
    recorded, today = differences(rows, ("concurrency", "3"))[0]
    assert recorded == "start t0" and today == "start t0, t1, t2"


def test_the_budget_can_be_tried_too() -> None:
    """G04 G07: a run that would have stopped for want of attempts."""
    rows = Play(5, Policy(heal_schedule=HealSchedule.OFF)).run()
    assert ("start t1", "end the run as ABORTED") in differences(rows, ("budget.attempts", "1"))


def test_healing_that_would_not_have_been_tried_is_found_out() -> None:
    """G07 T13: the record heals, the other policy gives up or goes on."""
    rows = next(
        rows
        for seed in range(20)
        for rows in [Play(seed, Policy(heal_schedule=HealSchedule.BATCH), "healer").run()]
        if any(isinstance(row.event, ev.HealStarted) for row in rows)
    )
    found = differences(rows, ("max_total_heal_rounds", "0"))
    assert any(recorded.startswith("heal ") for recorded, _ in found)


@pytest.mark.parametrize(("key", "text"), [("policy.colour", "1"), ("concurrency", "0"), ("heal_schedule", "never")])
def test_a_setting_that_makes_no_sense_is_refused(key: str, text: str) -> None:
    """G07: before anything is compared."""
    with pytest.raises(Refusal):
        amendment([(key, text)])


def test_an_event_todays_core_would_refuse_is_a_difference() -> None:
    """G07: such as DONE without a verification."""
    rows = [row for row in Play(1, Policy()).run() if not isinstance(row.event, ev.VerifyFinished)]
    assert differences(rows)[0] == ("take it", "refuse it: DONE without passed verification of this attempt")


def test_a_run_that_was_killed_and_continued_is_followed() -> None:
    """G01 G07: what the dead lead had expected is forgotten."""
    play = Play(2, Policy(heal_schedule=HealSchedule.OFF, concurrency=2))
    play.commit(*(ev.AttemptStarted(n, 1, n, "agent", "", "log") for n in ("t0", "t1")))
    play.commit(ev.ResultRefused("t0", 1, "NO_SENTINEL", "x"))
    play.commit(ev.LeadStarted(2, policy=play.state.policy))
    play.commit(*(ev.AttemptInterrupted(n, 1, "the lead died") for n in ("t0", "t1")))
    assert differences(play.run()) == []


def test_a_start_in_the_very_microsecond_its_wait_ended_is_followed() -> None:
    """G07: recorded times are cut to microseconds, waits are not."""
    play = Play(0, Policy(heal_schedule=HealSchedule.OFF), specs=[TaskSpec("a")])
    play.commit(ev.AttemptStarted("a", 1, "t", "agent", "", "log"))
    due = play.clock.timestamp() + 2.0000004
    failed = ev.AttemptFailed("a", 1, "transient_infra", "s", "x", "transient_retries")
    play.commit(failed, ev.TaskRequeued("a", "later", not_before=due))
    play.commit(ev.AttemptStarted("a", 2, "u", "agent", "", "log"))
    assert differences(play.rows) == []


# --- answers -----------------------------------------------------------------------------------------------------

RESULT = {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "x"}
DECISION = {"contract_version": "2.0", "scope": "task", "decision": "RETRY", "failure_class": "x", "root_cause": "y"}
LOGS = {
    "a.1.log": b"nothing",
    "a.2.log": f"<<<TASK_RESULT_V2>>>\n{json.dumps(RESULT)}\n<<<END_TASK_RESULT_V2>>>\n".encode(),
    "heal.log": b"nothing",
    "logs/healer.1.2.log": f"<<<HEAL_DECISION_V2>>>\n{json.dumps(DECISION | {'patches': []})}\n"
    "<<<END_HEAL_DECISION_V2>>>\n".encode(),
}
HEAL = ev.HealStarted(1, 1, ("a",), ("a",), "healer", "heal.log", "token")
ANSWERS: list[ev.Event] = [
    ev.AttemptStarted("a", 1, "t", "agent", "", "a.1.log"),
    ev.ResultRefused("a", 1, "NO_SENTINEL", "none"),
    ev.AttemptStarted("a", 2, "t", "agent", "", "a.2.log"),
    ev.ResultAccepted("a", 2, "DONE", "x"),
    HEAL,
    ev.HealRefused(1, "NO_SENTINEL", "none"),
    ev.HealFinished(1, "RETRY", "x", "y"),
]


def read(log: Log) -> Any:
    data = LOGS.get(log.path)
    return None if data is None else parse_result(data, task_id=log.task) if log.task else parse_heal(data)


def rows_of(events: Sequence[ev.Event]) -> list[ev.Recorded]:
    return [ev.Recorded(seq, "2026-01-01T00:00:00Z", event) for seq, event in enumerate(events, 1)]


def test_answers_are_read_again_and_are_the_same() -> None:
    """G07: of workers and of a healer that was asked twice."""
    found = reread(rows_of(ANSWERS), read)
    assert (found.answers, found.missing, found.divergences) == (4, (), ())


def test_a_parser_that_changed_is_found_out() -> None:
    """G07: an answer that is refused now, and one that is taken now."""
    taken = reread(rows_of(ANSWERS), lambda log: replace(read(Log("", "a.2.log", "a")), repaired=True))
    refused = reread(rows_of(ANSWERS[:4]), lambda log: Refused("INVALID_JSON", ""))
    assert [d.today for d in taken.divergences][:2] == ["DONE with 0 writes, after a repair"] * 2
    assert [(d.recorded, d.today) for d in refused.divergences] == [
        ("refused: NO_SENTINEL", "refused: INVALID_JSON"),
        ("DONE with 0 writes", "refused: INVALID_JSON"),
    ]


def test_a_log_that_is_gone_is_named_and_is_no_difference() -> None:
    """G07: nothing can be said about it."""
    found = reread(rows_of([ev.AttemptStarted("a", 1, "t", "agent", "", "gone.log"), ANSWERS[1]]), read)
    assert (found.missing, found.divergences) == (("gone.log",), ())


def test_the_end_of_a_run_is_compared_by_its_status() -> None:
    """G07: the words of a reason may be put better."""
    rows = Play(0, Policy(heal_schedule=HealSchedule.OFF), specs=[TaskSpec("a")]).run()
    end = rows[-1].event
    assert isinstance(end, ev.RunFinished)
    assert differences([*rows[:-1], replace(rows[-1], event=replace(end, why="other words"))]) == []
    other = RunStatus.ABORTED if end.run_status is RunStatus.COMPLETED else RunStatus.COMPLETED
    assert len(differences([*rows[:-1], replace(rows[-1], event=replace(end, run_status=other))])) == 1

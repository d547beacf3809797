"""Healing driven by chance: whatever fails and whatever a healer answers, every run ends, and within its limits."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from checker.invariants import Seen, broken
from ganger.core import events as ev
from ganger.core.healing import policy as healing
from ganger.core.model.records import Budget, HealRound, Policy, TaskSpec
from ganger.core.state.allowed import open_round
from ganger.core.vocabulary import FailureClass, HealSchedule, RunStatus, TaskStatus
from tests.core.heal_runs import CONTEXT, Ailment, Heal, Healer, HealRun, Proposed, answer, context, prompt, tasks
from tests.core.run_model import picture, replayed

HEALABLE = (FailureClass.PROMPT_GAP, FailureClass.TEST_ERROR, FailureClass.BUILD_ERROR)
OTHERS = (
    *(FailureClass.REAL_BUG, FailureClass.BLOCKED_EXTERNAL, FailureClass.CONTRACT_ERROR, FailureClass.CRASH),
    *(FailureClass.QUOTA, FailureClass.TRANSIENT_INFRA),
)
WORDS = ("cure", "salve", "never")
seeds = st.integers(0, 2**32)


def random_specs(chance: random.Random) -> tuple[TaskSpec, ...]:
    made: list[TaskSpec] = []
    for spec in tasks(chance.randint(1, 14)):
        earlier = [one.id for one in made]
        needs = chance.sample(earlier, k=min(len(earlier), chance.choice((0, 0, 0, 1, 2))))
        most, retried = chance.choice((None, None, 1, 2, 3)), chance.choice((None, None, None, ("prompt_gap",)))
        refs = chance.choice(((CONTEXT,), (CONTEXT,), ()))
        made.append(replace(spec, depends_on=tuple(needs), max_attempts=most, retry_on=retried, context_refs=refs))
    return tuple(made)


def random_ailment(chance: random.Random) -> Ailment:
    cls = chance.choice(HEALABLE * 4 + OTHERS)
    times = chance.randint(1, 3) if cls is FailureClass.QUOTA else chance.choice((None, None, None, 1, 2))
    return Ailment(chance.choice(WORDS), chance.choice(("one fault", "two faults")), cls, times)


def random_healer(chance: random.Random) -> Healer:
    def heal(round_: HealRound) -> Heal:
        kind = chance.random()
        if kind < 0.15:
            return None
        if kind < 0.2:
            return answer(decision=chance.choice(("NOT_FIXABLE", "ESCALATE")))
        some: list[Proposed] = [context(chance.choice(WORDS[:2])) for _ in range(chance.randint(0, 1))]
        some += [prompt(chance.choice(round_.failed), chance.choice(WORDS[:2])) for _ in range(chance.randint(0, 2))]
        more: dict[str, Any] = {}
        if chance.random() < 0.2:
            more["escalations"] = [{"task_id": chance.choice(round_.failed), "reason": "no"}]
        if chance.random() < 0.3:
            chosen = chance.sample(round_.failed, chance.randint(0, len(round_.failed)))
            window = chance.choice(("same_window", "next_epoch", "shrink_window"))
            more["retry_policy"] = {"reset_tasks": chosen, "retry_window": window}
        return answer(*some, **more)

    return heal


def random_ward(seed: int) -> HealRun:
    chance = random.Random(seed)
    specs = random_specs(chance)
    sick = [spec.id for spec in specs if chance.random() < 0.6]
    policy = Policy(
        heal_schedule=chance.choice(list(HealSchedule)),
        batch_size=chance.randint(1, 5),
        failure_threshold=chance.choice((0.0, 0.2, 0.2, 1.0)),
        max_worker_attempts_per_task=chance.randint(1, 3),
        max_heal_rounds_per_window=chance.randint(0, 3),
        max_total_heal_rounds=chance.randint(0, 8),
        signature_repeat_limit=chance.randint(1, 3),
        concurrency=chance.randint(1, 5),
    )
    budget = Budget(usd=chance.choice((None, None, 4.0)), attempt_usd=chance.choice((0.0, 0.25)))
    world = {name: [random_ailment(chance) for _ in range(chance.randint(1, 2))] for name in sick}
    return HealRun(specs, world, random_healer(chance), policy, budget, usd=0.25)


def require_sound(run: HealRun) -> None:
    """Ended, nothing left hanging, nothing overspent, and the events alone tell it all."""
    state = run.state
    assert broken(run.events, Seen(finished=True)) == []
    assert (state.status is RunStatus.COMPLETED) == (set(run.status()) == {"DONE"})
    assert state.abort_reason or state.status is not RunStatus.ABORTED
    assert state.index.held == {} and not [
        t for t in state.tasks.values() if t.status is TaskStatus.FAILED and not t.final
    ]
    assert not state.index.counts[TaskStatus.PENDING] or state.healing.abandoned or state.inbox.questions
    asked = {question.task for question in state.inbox.questions.values()}
    assert {name for name, now in state.tasks.items() if now.status is TaskStatus.ESCALATED} <= asked
    assert picture(replayed(run.events)) == picture(state)


@given(seeds)
def test_every_run_with_a_healer_ends_soundly(seed: int) -> None:
    """T12 T13 T22: and no window, run or task uses more heal rounds or attempts than it may."""
    run = random_ward(seed).begin().run()
    require_sound(run)
    policy, state = run.policy, run.state
    per_window = Counter(round_.lineage for round_ in state.healing.rounds)
    assert len(state.healing.rounds) <= policy.max_total_heal_rounds
    assert all(count <= policy.max_heal_rounds_per_window for count in per_window.values())
    for name, spec in state.specs.items():
        assert spec.max_attempts is None or state.tasks[name].counters.worker_attempts <= spec.max_attempts


@pytest.mark.whole
@given(seeds, st.integers(1, 60))
def test_a_run_stopped_anywhere_in_its_healing_goes_on_to_a_sound_end(seed: int, steps: int) -> None:
    """T20 T23: also between a patch and its canary, or while the healer works."""
    run = random_ward(seed).begin()
    for _ in range(steps):
        if not run.state.finished:
            run.step()
    if not run.state.finished:
        run.record(ev.StopRequested("signal"))
        running = sorted(run.state.index.running)
        run.record(*(ev.AttemptInterrupted(name, run.state.tasks[name].attempts, "stopped") for name in running))
        run.run()
    require_sound(run.begin().run())


@given(seeds)
@settings(max_examples=40)
def test_held_tasks_are_not_started_before_their_canary_has_passed(seed: int) -> None:
    """T12: whoever is held starts only after it was released, promoted or its canary is DONE."""
    run = random_ward(seed).begin()
    while not run.state.finished:
        held = {name for names in run.state.index.held.values() for name in names}
        run.step()
        assert not held & run.state.index.running or open_round(run.state) is None
        assert not {name for name in run.state.index.running if run.state.tasks[name].waits_for_canary}


def test_a_policy_that_forgets_its_heal_budget_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """T13: a planted bug, found by the judge that every harness shares."""
    monkeypatch.setattr(healing, "may_heal_again", lambda *_: True)
    world = {"t01": [Ailment(signal=f"fault {chr(97 + n)}", times=1) for n in range(6)]}
    run = HealRun(tasks(1), world, lambda _: answer(context("no"))).begin().run()
    assert any(problem.startswith("heal rounds") for problem in broken(run.events, Seen(finished=True)))

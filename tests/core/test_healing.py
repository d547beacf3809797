"""Progressive batch healing: what follows every kind of window, round and answer, to the end of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from checker.invariants import Seen, broken
from ganger.core import events as ev
from ganger.core.healing import policy as healing
from ganger.core.healing.policy import clusters
from ganger.core.vocabulary import FailureClass, HealSchedule, RunStatus
from tests.core.heal_runs import (
    CONTEXT,
    GAP,
    RIGHT,
    SICK,
    WRONG,
    Ailment,
    Heal,
    Healer,
    HealRun,
    answer,
    context,
    heal_run,
    in_turn,
    names,
    policy,
    prompt,
    rounds,
    tasks,
)

AUTO, TASK, BATCH, EPOCH = HealSchedule.AUTO, HealSchedule.TASK, HealSchedule.BATCH, HealSchedule.EPOCH
GAP_SIGN = "prompt_gap:the header is missing"


def next_sizes(run: HealRun) -> list[int]:
    return [event.next_size for event in run.of(ev.WindowClosed) if isinstance(event, ev.WindowClosed)]


# --- windows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "sizes"),
    [(AUTO, [1, 2, 3, 5, 8, 13, 21, 7]), (TASK, [1] * 60), (BATCH, [5] * 12), (EPOCH, [60]), (HealSchedule.OFF, [])],
)
def test_every_schedule_has_its_window_sizes(schedule: HealSchedule, sizes: list[int]) -> None:
    """T10 T28 pbh-growth: on stable windows; only `auto` grows."""
    assert heal_run(60, (), in_turn(RIGHT), policy(schedule)).sizes == sizes


@pytest.mark.parametrize(("schedule", "sizes"), [(TASK, {1}), (BATCH, {5}), (EPOCH, {8})])
def test_a_fixed_schedule_neither_grows_nor_shrinks(schedule: HealSchedule, sizes: set[int]) -> None:
    """T10: also when every task fails at first."""
    run = heal_run(8, names(1, 8), in_turn(RIGHT), policy(schedule))
    assert set(next_sizes(run)) == sizes and run.state.status is RunStatus.COMPLETED


def test_a_bad_window_shrinks_by_one_level_and_one_stays_one() -> None:
    """T12 T28 pbh-shrink: on instability. 1 2 3 5, then 5 fail: 3; its canary fails too: 2; it passes: 3 again."""
    run = heal_run(20, names(7, 11), in_turn(WRONG, RIGHT))
    assert next_sizes(run)[:7] == [2, 3, 5, 3, 2, 3, 5]
    assert next_sizes(heal_run(1, ("t01",), in_turn(RIGHT))) == [1, 2]


RATES = {1: (0.2, False), 2: (0.4, True), 5: (1.0, True)}


@pytest.mark.parametrize("failing", RATES)
def test_a_rate_of_exactly_the_threshold_is_still_moderate(failing: int) -> None:
    """T11 T12: 1 of 5 is 0.2 and isolates nothing."""
    run = heal_run(5, names(1, failing), in_turn(RIGHT), policy(BATCH))
    first = run.of(ev.WindowClosed)[0]
    assert isinstance(first, ev.WindowClosed)
    assert (first.failure_rate, run.state.healing.rounds[0].isolate) == RATES[failing]


NO_HEALER = {
    "blocked": Ailment(cls=FailureClass.BLOCKED_EXTERNAL),
    "a real bug": Ailment(cls=FailureClass.REAL_BUG),
    "crashed twice": Ailment(cls=FailureClass.CRASH),
    "an answer that breaks the contract once": Ailment(cls=FailureClass.CONTRACT_ERROR, times=1),
    "trouble that passes": Ailment(cls=FailureClass.TRANSIENT_INFRA, times=3),
}


@pytest.mark.parametrize("case", NO_HEALER)
def test_what_no_prompt_can_mend_asks_no_healer_and_pays_no_heal_budget(case: str) -> None:
    """T08 T11: with nothing healable attempted the rate is 0."""
    run = HealRun(tasks(3), {name: [NO_HEALER[case]] for name in names(1, 3)}, in_turn(RIGHT), policy(BATCH))
    run.begin().run()
    assert run.of(ev.HealStarted) == []
    assert {e.failure_rate for e in run.of(ev.WindowClosed) if isinstance(e, ev.WindowClosed)} == {0.0}


def test_a_format_retry_pays_with_nothing_but_itself() -> None:
    """T08 T28 format-retry: neither a worker attempt nor a heal round."""
    run = (
        HealRun(tasks(1), {"t01": [NO_HEALER["an answer that breaks the contract once"]]}, in_turn(RIGHT)).begin().run()
    )
    now = run.state.tasks["t01"]
    assert (now.attempts, now.counters.worker_attempts, now.counters.format_retries, now.counters.healer_attempts) == (
        2,
        1,
        1,
        0,
    )


# --- moderate failures ---------------------------------------------------------------------------------------------


def test_a_moderate_window_is_healed_once_and_only_its_failed_tasks_run_again() -> None:
    """T12 T28 pbh-retry: on moderate failures; clean tasks are not paid twice."""
    run = heal_run(10, ("t03",), in_turn(RIGHT), policy(BATCH))
    assert run.windows == [names(1, 5), ("t03",), names(6, 10)]
    assert rounds(run) == [("t03",)] and run.state.status is RunStatus.COMPLETED


def test_a_retried_window_shares_the_heal_rounds_of_the_one_it_retries() -> None:
    """T13: two rounds per window, whatever it is called the second time."""
    run = heal_run(5, ("t03",), in_turn(WRONG, answer(context("nothing new"))), policy(BATCH))
    assert [r.lineage for r in run.state.healing.rounds] == [1, 1]
    assert run.windows == [names(1, 5), ("t03",), ("t03",)]


# --- clusters and canaries ------------------------------------------------------------------------------------------


def test_a_bad_window_is_healed_once_and_one_canary_runs_before_the_rest() -> None:
    """T12: failures that share a signature are one cluster; the rest is released when the canary passes."""
    run = heal_run(5, names(1, 4), in_turn(RIGHT), policy(BATCH))
    assert rounds(run) == [names(1, 4)]
    assert run.windows == [names(1, 5), ("t01",), names(2, 4)]
    assert run.state.status is RunStatus.COMPLETED and run.state.index.held == {}


def test_every_cluster_has_a_canary_of_its_own() -> None:
    """T12 T21: the larger cluster first; the same fault with another id and path is one cluster."""
    world = {name: [Ailment("cure", f"no header in /srv/{name}/a.py of {name}")] for name in names(3, 5)}
    world |= {name: [Ailment("cure", "no footer")] for name in names(1, 2)}
    run = HealRun(tasks(5), world, in_turn(RIGHT), policy(BATCH)).begin().run()
    assert run.windows == [names(1, 5), ("t03", "t01"), ("t02", "t04", "t05")]


def test_clusters_are_ordered_by_size_and_keep_the_order_of_tasks() -> None:
    """T12: so that a healer reads the largest first."""
    found = clusters({"a": "x", "b": "y", "c": "y", "d": "z"})
    assert found == [("y", ("b", "c")), ("x", ("a",)), ("z", ("d",))]


def test_a_failing_canary_protects_the_rest_and_is_tried_again_after_another_patch() -> None:
    """T12: a wrong first patch costs one attempt, not the whole cluster."""
    run = heal_run(5, names(1, 5), in_turn(WRONG, RIGHT), policy(BATCH))
    assert run.windows == [names(1, 5), ("t01",), ("t01",), names(2, 5)]
    assert len(run.started) == 5 + 2 + 4 and run.state.status is RunStatus.COMPLETED


def test_a_canary_that_meets_another_failure_keeps_its_cluster_behind_it() -> None:
    """T12 T22: the next one runs when the canary has passed for good."""
    world = {name: [SICK, Ailment("salve", "tests fail", FailureClass.TEST_ERROR)] for name in names(1, 5)}
    run = HealRun(tasks(5), world, in_turn(RIGHT, answer(context("salve"))), policy(BATCH)).begin().run()
    assert run.windows == [names(1, 5), ("t01",), ("t01",), names(2, 5)]
    assert run.state.status is RunStatus.COMPLETED


def test_a_canary_that_cannot_tell_hands_its_place_to_the_next() -> None:
    """T12: one that is blocked says nothing about the patch."""
    world = {name: [SICK] for name in names(1, 4)}
    world["t01"] = [SICK, Ailment(cls=FailureClass.BLOCKED_EXTERNAL)]
    run = HealRun(tasks(5), world, in_turn(RIGHT), policy(BATCH)).begin().run()
    assert run.windows == [names(1, 5), ("t01",), ("t02",), ("t03", "t04")]
    assert run.status() == ["BLOCKED", "DONE", "DONE", "DONE", "DONE"]


def test_whoever_takes_a_canarys_place_is_granted_its_attempt() -> None:
    """T12 T13: also where tasks have one attempt each."""
    world = {name: [SICK] for name in names(1, 4)}
    world["t01"] = [SICK, Ailment(cls=FailureClass.BLOCKED_EXTERNAL)]
    run = HealRun(tasks(5), world, in_turn(RIGHT), policy(BATCH, max_worker_attempts_per_task=1)).begin().run()
    assert broken(run.events, Seen(finished=True)) == []


def test_a_run_continued_with_schedule_off_lets_go_of_what_was_held() -> None:
    """T10 T20: without windows nobody would ever release it."""
    run = HealRun(tasks(5), {name: [SICK] for name in names(1, 5)}, in_turn(RIGHT), policy(BATCH)).begin()
    while not run.state.index.held:
        run.step()
    run.record(ev.StopRequested("signal"))
    run.run()
    run.policy = policy(HealSchedule.OFF)
    assert run.begin().run().state.status is RunStatus.COMPLETED


def test_without_a_healer_what_was_held_stands_on_its_own_again() -> None:
    """T12 T20: a run continued without the role leaves nobody held for ever."""
    run = HealRun(tasks(5), {name: [SICK] for name in names(1, 5)}, in_turn(WRONG), policy(BATCH)).begin()
    while not run.state.index.held:
        run.step()
    run.record(ev.StopRequested("signal"))
    run.run()
    run.healer = None
    run.begin().run()
    assert run.state.index.held == {} and run.status() == ["FAILED"] * 5
    assert run.started.count("t02") == 2


# --- attempts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "status", "started"), [(1, "FAILED", 1), (2, "FAILED", 2), (3, "DONE", 3)])
def test_the_manifests_max_attempts_is_the_last_word(most: int, status: str, started: int) -> None:
    """T13: no patch grants more than `retry_policy` allows."""
    run = heal_run(1, ("t01",), in_turn(WRONG, RIGHT), max_attempts=most)
    assert (run.status(), run.started.count("t01")) == ([status], started)


def test_a_class_the_manifest_does_not_retry_is_not_healed() -> None:
    """T13: `retry_on` narrows healing too."""
    run = heal_run(1, ("t01",), in_turn(RIGHT), retry_on=("timeout",))
    assert run.of(ev.HealStarted) == [] and run.started == ["t01"]


def test_each_round_that_touches_a_task_grants_one_more_attempt() -> None:
    """T13: beyond the two of the policy, and only to tasks a patch touches."""
    given = policy(BATCH, max_heal_rounds_per_window=3, signature_repeat_limit=9)
    run = heal_run(5, ("t01",), in_turn(WRONG, WRONG, RIGHT), given)
    now = run.state.tasks["t01"]
    assert (now.status.value, now.counters.worker_attempts, now.counters.granted) == ("DONE", 4, 3)
    assert run.state.tasks["t02"].counters.granted == 0


def test_a_task_no_patch_touches_runs_again_only_with_attempts_of_its_own() -> None:
    """T13: a round grants nothing to those it did not reach."""
    mine = policy(EPOCH, max_worker_attempts_per_task=1)
    run = heal_run(5, ("t01", "t02"), in_turn(answer(prompt("t01", "cure"))), mine)
    assert run.status("t01", "t02") == ["DONE", "FAILED"] and run.started.count("t02") == 1
    assert "no patch touches it, and its attempts are used up" in run.state.tasks["t02"].detail


# --- answers of the healer ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", ["NOT_FIXABLE", "ESCALATE"])
def test_a_healer_that_gives_up_hands_the_tasks_to_a_person(decision: str) -> None:
    """T12 T14: nothing is patched, nothing runs again, the others go on."""
    run = heal_run(5, ("t02",), in_turn(answer(context("cure"), decision=decision)), policy(BATCH))
    assert run.status("t02", "t03") == ["ESCALATED", "DONE"] and run.state.healing.patches == {}
    assert len(rounds(run)) == 1 and run.started.count("t02") == 1
    assert run.state.tasks["t02"].detail == "the header rule is not written down"


def test_a_healer_may_give_up_single_tasks_and_heal_the_others() -> None:
    """T12: `escalations` counts for tasks of the scope, with the healer's own words."""
    lost = [{"task_id": "t02", "reason": "needs a licence"}, {"task_id": "t05", "reason": "not asked about"}]
    run = heal_run(5, ("t02", "t03"), in_turn(answer(context("cure"), escalations=lost)), policy(BATCH))
    assert run.status() == ["DONE", "ESCALATED", "DONE", "DONE", "DONE"]
    assert run.state.tasks["t02"].detail == "needs a licence"


def test_reset_tasks_chooses_what_runs_again() -> None:
    """T14: the rest ends FAILED and says so; a choice outside the scope is no choice."""
    some = {"reset_tasks": ["t03", "t05"]}
    run = heal_run(5, ("t02", "t03"), in_turn(answer(context("cure"), retry_policy=some)), policy(BATCH))
    assert run.status("t02", "t03") == ["FAILED", "DONE"]
    assert "the healer does not reset it" in run.state.tasks["t02"].detail


def test_next_epoch_puts_healed_tasks_into_an_ordinary_window() -> None:
    """T14: instead of a window of their own."""
    later = {"retry_window": "next_epoch"}
    run = heal_run(7, ("t02",), in_turn(answer(context("cure"), retry_policy=later)), policy(BATCH))
    assert run.windows == [names(1, 5), ("t02", "t06", "t07")]


SMALLER = answer(context("cure"), retry_policy={"retry_window": "shrink_window"})


@pytest.mark.parametrize(
    ("schedule", "windows"),
    [
        # 3 is a level below the five that failed; the rest follows in ordinary windows.
        (BATCH, [names(1, 5), names(1, 3), ("t04", "t06", "t07")]),
        (EPOCH, [names(1, 7), names(1, 4)]),
    ],
)
def test_shrink_window_makes_the_retry_a_smaller_window(schedule: HealSchedule, windows: list[tuple[str, ...]]) -> None:
    """T09 T14: the healer's word of the heal decision 2.0 acts under every schedule."""
    run = heal_run(7, names(1, 4), in_turn(SMALLER), replace(policy(schedule), failure_threshold=1.0))
    assert run.windows == windows
    assert run.state.status is RunStatus.COMPLETED


def test_shrink_window_makes_the_next_windows_of_auto_smaller() -> None:
    """T09 T10 T12: 1 2 3 5, one of five fails moderately: 3 follows instead of another 5."""
    calm = in_turn(answer(context("cure")))
    same, smaller = (heal_run(20, ("t07",), healer) for healer in (calm, in_turn(SMALLER)))
    assert same.sizes[:6] == [1, 2, 3, 5, 1, 8] and smaller.sizes[:6] == [1, 2, 3, 5, 1, 5]
    assert [round_.isolate for round_ in smaller.state.healing.rounds] == [False]


def test_a_window_that_failed_too_much_is_shrunk_once() -> None:
    """T12: by its failure rate; the healer's word for it changes nothing more."""
    sizes = [heal_run(20, names(7, 11), in_turn(healer)).sizes for healer in (RIGHT, SMALLER)]
    assert sizes[0] == sizes[1]


NOTHING: dict[str, Heal] = {
    "no readable answer": None,
    "no patches": answer(),
    "none that is allowed": answer(prompt("t05", "cure")),
}


@pytest.mark.parametrize("case", NOTHING)
def test_a_window_without_a_patch_has_its_rounds_and_then_runs_unhealed(case: str) -> None:
    """T12 T13: two rounds per window, then the attempts that are left, then FAILED; the others go on."""
    run = heal_run(5, ("t02",), in_turn(NOTHING[case]), policy(BATCH))
    assert set(Counter(round_.lineage for round_ in run.state.healing.rounds).values()) == {2}
    assert run.status("t02", "t03") == ["FAILED", "DONE"] and run.started.count("t02") == 2
    assert run.state.healing.patches == {} and not run.state.healing.abandoned


def test_the_second_round_may_bring_what_the_first_did_not() -> None:
    """T13: without another worker attempt in between."""
    run = heal_run(5, ("t02",), in_turn(None, RIGHT), policy(BATCH))
    assert run.windows == [names(1, 5), ("t02",)] and run.state.status is RunStatus.COMPLETED


def test_schedule_task_heals_one_task_and_touches_no_other() -> None:
    """T10 T14: a patch to shared context stays with the failing task."""
    run = heal_run(3, names(1, 3), in_turn(RIGHT), policy(TASK))
    assert rounds(run) == [("t01",), ("t02",), ("t03",)]
    assert [patch.tasks for patch in run.state.healing.patches.values()] == [("t01",), ("t02",), ("t03",)]


def test_shared_context_mends_tasks_that_have_not_run_yet() -> None:
    """T14: applicability comes from schedule and target; one round is enough for all who read the file."""
    run = heal_run(60, names(20, 59), in_turn(RIGHT))
    assert len(rounds(run)) == 1 and run.state.status is RunStatus.COMPLETED
    assert len(run.started) <= 60 + 21


def test_a_runtime_patch_moves_the_window_size_of_auto_alone() -> None:
    """T14: within the operator's limits; a number beyond them is refused and the rest still counts."""
    size = {"target": "runtime_patch", "operation": "merge", "content": {"current_batch_size": 13}}
    huge = {"target": "runtime_patch", "operation": "merge", "content": {"current_batch_size": 99}}
    run = heal_run(40, ("t01",), in_turn(answer(size, huge, context("cure"))))
    assert run.sizes[:3] == [1, 1, 21] and len(run.state.healing.patches) == 2
    assert set(next_sizes(heal_run(10, ("t01",), in_turn(answer(size, context("cure"))), policy(BATCH)))) == {5}


# --- the sixty tasks ------------------------------------------------------------------------------------------------


@pytest.mark.brief(6)
@pytest.mark.parametrize("healer", [in_turn(RIGHT), in_turn(WRONG, RIGHT)], ids=["right", "wrong first"])
@pytest.mark.parametrize("schedule", [AUTO, BATCH, EPOCH])
@pytest.mark.parametrize("first", [1, 11, 21])
def test_one_missing_sentence_in_shared_context_costs_three_rounds_at_most(
    first: int, schedule: HealSchedule, healer: Healer
) -> None:
    """T12 T13: 40 of 60 tasks broken, wherever they stand; at most 60 + 40 + 3 worker attempts."""
    run = heal_run(60, names(first, first + 39), healer, policy(schedule, concurrency=4))
    assert run.state.status is RunStatus.COMPLETED
    assert len(rounds(run)) <= 3 and len(run.started) <= 60 + 40 + 3


def test_the_ward_notices_a_policy_without_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """T12: a planted bug: a wrong patch is then paid by the whole cluster."""
    monkeypatch.setattr(healing, "_isolated", lambda _state, again, cure, events: healing._spread(again, cure, events))
    run = heal_run(60, names(1, 40), in_turn(WRONG, RIGHT), policy(EPOCH))
    assert len(run.started) > 60 + 40 + 3


def test_the_names_used_here_are_those_of_the_taxonomy() -> None:
    """T21: the run's signature is the one the core makes."""
    run = heal_run(1, ("t01",), None)
    assert run.state.tasks["t01"].failure.signature == GAP_SIGN
    assert run.state.tasks["t01"].failure.failure_class == GAP.value and CONTEXT in run.specs[0].context_refs

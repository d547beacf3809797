"""When healing no longer helps: what is progress, who escalates, when a run ends and what it says."""

from __future__ import annotations

import json

import pytest

from ganger.core import events as ev
from ganger.core.healing.policy import converging
from ganger.core.model.records import TaskSpec
from ganger.core.state.projection import state_data
from ganger.core.vocabulary import FailureClass, HealSchedule, RunStatus, TaskStatus
from ganger.engine.output.report import report_text
from tests.core.heal_runs import (
    RIGHT,
    SICK,
    WRONG,
    Ailment,
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

TASK, BATCH, EPOCH = HealSchedule.TASK, HealSchedule.BATCH, HealSchedule.EPOCH
GAP_SIGN = "prompt_gap:the header is missing"


def test_a_cluster_whose_canary_fails_twice_alike_ends_the_run() -> None:
    """T12 T22 T28 pbh-abort: with recorded non-convergence reason, after two rounds and two canary runs."""
    run = heal_run(30, names(4, 30), in_turn(WRONG))
    assert run.status("t04", "t05", "t06") == ["ESCALATED"] * 3 and run.status("t07") == ["PENDING"]
    assert len(run.started) == 6 + 2 and len(rounds(run)) == 2
    assert (run.state.abort_reason or "").startswith(
        f"healing does not converge: 3 tasks fail with {GAP_SIGN!r}, unchanged after 2 heal rounds; 27 of 30 tasks"
    )


def test_a_single_hopeless_task_escalates_and_independent_ones_go_on() -> None:
    """T12 T22 T28 repeated-signature: it escalates; its dependents are blocked."""
    specs = (*tasks(6), TaskSpec("after", ("t03",)))
    run = HealRun(specs, {"t03": [SICK]}, in_turn(WRONG)).begin().run()
    assert run.state.tasks["t03"].counters.repeats == 2 and run.started.count("t03") == 3
    assert run.status() == ["DONE", "DONE", "ESCALATED", "DONE", "DONE", "DONE", "BLOCKED"]
    assert run.state.status is RunStatus.ABORTED and not run.state.healing.abandoned
    assert [(q.task, q.kind) for q in run.state.inbox.questions.values()] == [("t03", "escalated")]


def test_a_failure_that_healing_could_not_mend_ends_the_run_where_nothing_else_works() -> None:
    """T22: going on would only repeat the same failure; no further round is paid for it."""
    every = tuple(f"t{n:02}" for n in range(1, 9))
    run = heal_run(8, every, in_turn(WRONG))
    assert run.state.healing.abandoned == (
        f"healing does not converge: t02 fails with {GAP_SIGN!r}, which healing could not fix in t01"
    )
    assert rounds(run) == [("t01",), ("t01",)] and run.started.count("t02") == 1


def test_unrelated_tasks_that_fail_alike_escalate_one_by_one_while_others_work() -> None:
    """T12: an escalated task never stops independent ones; a coarse signature is no proof of one cause."""
    run = heal_run(20, ("t01", "t05", "t09"), in_turn(WRONG))
    assert run.status("t01", "t05", "t09") == ["ESCALATED"] * 3 and run.state.healing.abandoned == ""
    assert run.state.index.counts[TaskStatus.DONE] == 17


def test_two_tasks_that_keep_one_failure_without_a_canary_end_the_run_too() -> None:
    """T22: a cluster is a cluster, also while windows fail moderately."""
    given = policy(EPOCH, signature_repeat_limit=1)
    run = heal_run(20, ("t03", "t07"), in_turn(WRONG), given)
    assert run.state.healing.abandoned.startswith("healing does not converge: 2 tasks fail with")
    assert run.status("t03", "t07") == ["ESCALATED"] * 2


@pytest.mark.parametrize(("limit", "attempts", "healed"), [(1, 2, 1), (2, 3, 2), (3, 4, 3)])
def test_a_task_escalates_after_as_many_equal_failures_as_the_limit_says(
    limit: int, attempts: int, healed: int
) -> None:
    """T12 T13: signature_repeat_limit, counted after healing."""
    given = policy(BATCH, signature_repeat_limit=limit, max_heal_rounds_per_window=9)
    run = heal_run(5, ("t02",), in_turn(WRONG), given)
    assert run.status("t02") == ["ESCALATED"]
    assert (run.started.count("t02"), len(rounds(run))) == (attempts, healed)


def test_a_new_failure_starts_the_count_of_equal_ones_anew() -> None:
    """T12: a task that gets further is not given up."""
    world = {"t01": [SICK, Ailment("salve", "tests fail", FailureClass.TEST_ERROR)]}
    healer = in_turn(WRONG, RIGHT, WRONG, answer(context("salve")))
    run = HealRun(tasks(1), world, healer, policy(max_heal_rounds_per_window=9)).begin().run()
    assert run.state.status is RunStatus.COMPLETED and len(rounds(run)) == 4


def changing(count: int) -> list[Ailment]:
    """Another signature each time, and never a cure."""
    return [Ailment(signal=f"fault {chr(97 + n)}", times=1) for n in range(count)]


def test_the_heal_budget_of_a_window_is_its_own() -> None:
    """T13: then its tasks are FAILED, and later windows have rounds of their own."""
    world = {name: changing(9) for name in ("t01", "t02")}
    run = HealRun(tasks(2), world, in_turn(WRONG), policy(TASK)).begin().run()
    assert rounds(run) == [("t01",), ("t01",), ("t02",), ("t02",)]
    assert run.status() == ["FAILED", "FAILED"] and not run.state.healing.abandoned


def test_a_total_budget_used_up_without_improvement_ends_the_run() -> None:
    """T13 T22: eight rounds at most."""
    world = {name: changing(20) for name in names(1, 9)}
    run = HealRun(tasks(9), world, in_turn(WRONG), policy(TASK)).begin().run()
    assert len(rounds(run)) == 8 and run.state.status is RunStatus.ABORTED
    assert run.state.healing.abandoned == (
        "the total healing budget of 8 rounds is used up without improvement; still failing: t04 (prompt_gap:fault c)"
    )


def test_a_total_budget_used_up_with_improvement_lets_the_run_go_on_unhealed() -> None:
    """T22: what is left is tried as it is, as often as worker attempts allow."""
    run = heal_run(
        4, ("t01", "t03"), lambda r: answer(prompt(r.failed[0], "cure")), policy(TASK, max_total_heal_rounds=1)
    )
    assert run.status() == ["DONE", "DONE", "FAILED", "DONE"] and run.started.count("t03") == 2
    assert rounds(run) == [("t01",)] and not run.state.healing.abandoned


@pytest.mark.parametrize("none", ["max_heal_rounds_per_window", "max_total_heal_rounds"])
def test_a_heal_budget_of_nothing_is_no_healing(none: str) -> None:
    """T13: worker attempts alone decide."""
    run = heal_run(2, ("t01",), in_turn(RIGHT), policy(HealSchedule.AUTO, **{none: 0}))
    assert run.of(ev.HealStarted) == [] and run.started.count("t01") == 2
    assert run.status() == ["FAILED", "DONE"]


SAME = {"a": "test_error:x", "b": "test_error:x"}
SIGNS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "fewer tasks": (SAME, {"a": "test_error:x"}, "fewer tasks fail"),
    "none left": (SAME, {}, "fewer tasks fail"),
    "fewer repeated": (SAME, {"a": "test_error:x", "b": "test_error:y"}, "fewer tasks share a failure"),
    "narrower": ({"a": "prompt_gap:x"}, {"a": "test_error:x"}, "the failure became narrower"),
    "the same set": (SAME, SAME, ""),
    "another fault of the same kind": ({"a": "test_error:x"}, {"a": "test_error:y"}, ""),
    "broader": ({"a": "test_error:x"}, {"a": "build_error:x"}, ""),
    "one narrower, one not": (SAME | {"c": "prompt_gap:z"}, SAME | {"c": "prompt_gap:z"}, ""),
    "more tasks": ({"a": "test_error:x"}, SAME, ""),
    "more repeated": ({"a": "test_error:x", "b": "build_error:y"}, SAME | {}, "the failure became narrower"),
}


@pytest.mark.parametrize("case", SIGNS)
def test_the_signs_of_convergence(case: str) -> None:
    """T22: fewer failing, fewer repeated, or narrower; nothing else is progress."""
    before, after, sign = SIGNS[case]
    assert converging(before, after) == sign


ROAD = ["contract_error", "prompt_gap", "build_error", "test_error", "smoke_error"]


@pytest.mark.parametrize(("broad", "narrow"), [(a, b) for n, a in enumerate(ROAD) for b in ROAD[n + 1 :]])
def test_a_failure_further_down_the_road_is_narrower(broad: str, narrow: str) -> None:
    """T22: readable, landed, built, tested, running: in that order."""
    assert converging({"a": f"{broad}:x"}, {"a": f"{narrow}:x"}) == "the failure became narrower"
    assert converging({"a": f"{narrow}:x"}, {"a": f"{broad}:x"}) == ""


def test_an_aborted_run_says_why_and_what_fails_everywhere() -> None:
    """T22: status, reason, failing set with signatures, and the same reason in the report."""
    run = heal_run(8, names(1, 8), in_turn(WRONG), policy(BATCH))
    data = json.loads(json.dumps(state_data(run.state)))
    assert data["run_status"] == "ABORTED" and GAP_SIGN in data["abort_reason"]
    failing = {name for name, now in data["tasks"].items() if now["last_failure_signature"] == GAP_SIGN}
    assert failing == set(names(1, 5))
    assert f"- Why it ended: {data['abort_reason'][:500]}" in report_text(run.state)
    last = run.events[-1].event
    assert isinstance(last, ev.RunFinished) and last.abort_reason == data["abort_reason"]

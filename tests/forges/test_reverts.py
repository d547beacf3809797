"""A change that keeps its branch red is reverted because a person chose that: real git, a forge that counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Question
from tests.forges.revert_rows import (
    ALONE,
    BEFORE,
    BEFORE_ALONE,
    BRANCHES,
    BUILT_ON,
    LANDED,
    LEAKS,
    NEEDED_BY_CHECK,
    NOT_LANDED,
    OTHERS,
    REVERT,
    STILL_RED,
)
from tests.forges.scenario import Outcome, Row, ended_of, merges_of, play, require_bounded, require_no_secret
from tests.forges.truth import lies

pytestmark = pytest.mark.whole

LEFT_OUT = "BLOCKED(paused)"


def played(row: Row, folder: Path) -> Outcome:
    """To its end; nothing that is told is untrue, nothing is pushed twice, and nobody works for a revert."""
    outcome = play(row, folder)
    assert lies(outcome.project.events(), outcome.scene.world, row.needs) == []
    pushed = [(e.branch, e.commit) for e in outcome.project.find(ev.Pushed) if e.how == "pushed"]
    assert len(pushed) == len(set(pushed)), pushed
    assert outcome.project.state().log.refused == []
    if 'history = "rebase"' in row.more:
        assert merges_of(outcome.project, outcome.scene.world) == []
    require_bounded(outcome)
    require_no_secret(outcome)
    return outcome


def on_main(outcome: Outcome) -> dict[str, str]:
    return outcome.scene.ground.files(outcome.scene.ground.tip("main"))


def ends(outcome: Outcome) -> dict[str, str]:
    return {name: ended_of(task) for name, task in outcome.project.state().tasks.items()}


def asked(outcome: Outcome, name: str = "a") -> Question:
    """The newest question about it that is open."""
    found = [q for q in outcome.project.state().inbox.questions.values() if q.task == name and q.answer is None]
    assert found, outcome.detail()
    return found[-1]


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.name, marks=[pytest.mark.slow] if row.slow else []) for row in BRANCHES]
)
def test_after_the_last_fix_a_person_can_have_the_change_reverted(tmp_path: Path, row: Row) -> None:
    """D06 D09: the branch is green without it, the others are DONE by that, and no worker was started for it."""
    outcome = played(row, tmp_path)
    now, found = outcome.project.state().tasks["a"], ends(outcome)
    assert found.pop("a") == LEFT_OUT and now.detail.startswith("reverted as "), (now.detail, outcome.detail())
    assert "CI green" in now.detail and outcome.code == 3 and not now.locked
    assert set(found.values()) <= {"DONE"}, (found, outcome.detail())
    assert "a.txt" not in on_main(outcome) and {f"{name}.txt" for name in found} <= on_main(outcome).keys()
    launched = [e.task for e in outcome.project.find(ev.AttemptLaunched)]
    assert launched.count("a") == 2 and all(launched.count(name) == 1 for name in found), launched


def test_what_depends_on_it_stays_blocked_until_a_person_takes_it_in_again(tmp_path: Path) -> None:
    """D06: as with a task that was skipped; a retry does it again, on a branch without it."""
    row = replace(OTHERS, tasks=3, behind={"t2": ("a",)})
    outcome = played(row, tmp_path / "one")
    assert ends(outcome) == {"a": LEFT_OUT, "t1": "DONE", "t2": "BLOCKED(dependency_failed)"}
    again = played(replace(row, then_again=("take a",)), tmp_path / "two")
    assert set(ends(again).values()) == {"DONE"}, again.detail()
    assert again.project.state().tasks["a"].delivery.reverted == "" and "a.txt" in on_main(again)  # type: ignore[union-attr]


def test_a_revert_that_conflicts_is_told_and_asked_about_with_what_is_left(tmp_path: Path) -> None:
    """D06: another task changed the same lines since; nothing is pushed, and a worker does it only if told to."""
    outcome = played(BUILT_ON, tmp_path)
    question = asked(outcome)
    assert ends(outcome)["a"] == "ESCALATED" and "conflicts with what came later in a.txt" in question.text
    assert question.options[:2] == ("revert it", "have its worker revert it")
    assert not outcome.project.find(ev.Reverted) and "red.txt" in on_main(outcome)


def test_a_worker_reverts_it_where_a_person_says_so(tmp_path: Path) -> None:
    """D06: what it leaves is verified, pushed and green, and the task is left out and not DONE."""
    attempts = [*BUILT_ON.attempts[:2], {"red.txt": "taken back by hand\n"}]
    row = replace(BUILT_ON, attempts=attempts, then_again=("answer a have its worker revert it",))
    outcome = played(row, tmp_path)
    assert ends(outcome) == {"a": LEFT_OUT, "t1": "DONE"}, outcome.detail()
    assert on_main(outcome)["red.txt"] == "taken back by hand"
    last = outcome.project.find(ev.AttemptLaunched)[-1]
    assert last.task == "a" and "decided to revert your change" in outcome.project.prompt("a", last.attempt)


def test_checks_that_are_red_without_the_change_stop_the_revert(tmp_path: Path) -> None:
    """D06: the revert is verified like any change, nothing of it leaves the machine, and a person is asked."""
    outcome = played(NEEDED_BY_CHECK, tmp_path)
    assert ends(outcome)["a"] == "ESCALATED" and "revert it" in asked(outcome).options
    assert "a.txt" in on_main(outcome) and not outcome.project.find(ev.Reverted)
    assert [e.task for e in outcome.project.find(ev.RevertFailed)] == ["a"]


def test_ci_that_is_red_without_the_change_is_told_and_asked_about(tmp_path: Path) -> None:
    """D01 D06: a revert is proved by CI of exactly its commit or not at all."""
    outcome = played(STILL_RED, tmp_path)
    assert ends(outcome)["a"] == "ESCALATED", outcome.detail()
    assert asked(outcome).options == ("try again", "leave it as it is")
    assert len(outcome.project.find(ev.RevertFailed)) == 1


def test_after_a_leaked_key_the_revert_goes_out_and_the_halt_stays(tmp_path: Path) -> None:
    """D12: only a person lifts a halt, and is told that a revert takes no key out of the history."""
    outcome = played(replace(LEAKS, then=()), tmp_path / "one")
    question = asked(outcome)
    assert question.options == ("revert it", "leave it as it is") and "history: replace that key" in question.context
    outcome = played(LEAKS, tmp_path / "two")
    assert ends(outcome) == {"a": LEFT_OUT} and "a.txt" not in on_main(outcome), outcome.detail()
    assert list(outcome.project.state().chains.halted) == [""]


def test_a_halt_holds_a_revert_with_which_others_would_go(tmp_path: Path) -> None:
    """D12: nothing but what the person chose passes a halt; the rest goes when that is lifted."""
    row = replace(LEAKS, tasks=3, pace={"t1": 1.0, "t2": 1.5})
    outcome = played(row, tmp_path / "one")
    assert ends(outcome)["a"] == "BLOCKED(paused)" and "is halted" in outcome.project.state().tasks["a"].detail
    outcome = played(replace(row, then_again=("unlock",)), tmp_path / "two")
    assert ends(outcome) == {"a": LEFT_OUT, "t1": "DONE", "t2": "DONE"}, outcome.detail()
    assert "a.txt" not in on_main(outcome)


def test_what_landed_by_a_request_is_reverted_by_a_request_of_its_own(tmp_path: Path) -> None:
    """D06 W02: tested, merged and followed where it lands."""
    outcome = played(replace(LANDED, then=(REVERT,)), tmp_path)
    assert ends(outcome) == {"a": LEFT_OUT} and len(outcome.scene.world.asked) == 2, outcome.detail()
    assert "a.txt" not in on_main(outcome) and len(outcome.project.find(ev.AttemptLaunched)) == 1


def test_where_nothing_landed_nothing_can_be_reverted(tmp_path: Path) -> None:
    """D06: its request is red and shut in itself."""
    assert asked(played(NOT_LANDED, tmp_path)).options == ("try again", "leave it as it is")


def test_try_again_grants_new_fixes_and_the_question_is_answered_once(tmp_path: Path) -> None:
    """D06: as ganger retry does."""
    outcome = played(replace(ALONE, more="fixes = 2", then=("answer a try again",), attempts=ALONE.attempts), tmp_path)
    assert ends(outcome) == {"a": "DONE"}, outcome.detail()
    question = next(q for q in outcome.project.state().inbox.questions.values() if q.kind == "escalated")
    assert "already answered" in outcome.project.ganger("answer", question.id, "revert it").stderr


def test_left_as_it_is_the_task_waits_and_nothing_is_asked(tmp_path: Path) -> None:
    """D06: a person may see to it by other ways."""
    outcome = played(replace(ALONE, then=("answer a leave it as it is",)), tmp_path)
    assert ends(outcome) == {"a": "ESCALATED"} and outcome.code == 4
    assert all(q.answer for q in outcome.project.state().inbox.questions.values())


def test_what_was_reverted_by_hand_where_it_landed_is_left_out_without_a_request(tmp_path: Path) -> None:
    """D06 W02: nothing empty is opened; CI of the branch as it is proves that it is reverted."""
    outcome = played(replace(LANDED, then=("undo a.txt", REVERT)), tmp_path)
    assert ends(outcome) == {"a": LEFT_OUT} and len(outcome.scene.world.asked) == 1, outcome.detail()
    assert "already reverted" in outcome.project.state().tasks["a"].detail


def test_a_fix_that_someone_made_by_hand_where_it_landed_opens_no_request(tmp_path: Path) -> None:
    """D06 W02: the worker's fix adds nothing, so CI of what is there is the proof."""
    attempts = ({"a.txt": "attempt 1\n"}, {"a.txt": "theirs\n"})
    outcome = played(replace(LANDED, attempts=attempts, then=("push a.txt", "answer a try again")), tmp_path)
    assert ends(outcome) == {"a": "DONE"} and len(outcome.scene.world.asked) == 1, outcome.detail()
    assert "someone did the same by hand" in outcome.project.state().tasks["a"].detail


def test_what_was_red_before_the_run_is_fixed_once_and_not_by_the_revert(tmp_path: Path) -> None:
    """D06 D12: the older fault is nobody's own, so bisecting does not blame whoever came before its fix."""
    outcome = played(BEFORE, tmp_path)
    assert ends(outcome) == {"a": LEFT_OUT, "t1": "DONE", "t2": "DONE"}, outcome.detail()
    tasks = outcome.project.state().tasks
    assert sum(tasks[name].counters.ci_fixes for name in ("t1", "t2")) == 1 and "a.txt" not in on_main(outcome)


def test_a_revert_on_a_branch_that_was_red_before_waits_for_the_branch(tmp_path: Path) -> None:
    """D01 D06: nothing of the task is left; once someone fixes what was there before, that is proved."""
    outcome = played(BEFORE_ALONE, tmp_path / "one")
    assert ends(outcome) == {"a": "BLOCKED(external)"} and "before this run's changes came" in outcome.detail()
    again = played(replace(BEFORE_ALONE, then_again=("push fix.txt", "take a")), tmp_path / "two")
    assert ends(again) == {"a": LEFT_OUT} and "a.txt" not in on_main(again), again.detail()

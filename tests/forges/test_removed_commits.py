"""A maintainer takes commits of the run out of the branch: one question, and every option does what it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from checker.invariants import Seen, broken
from ganger.core import events as ev
from ganger.ports.forge import PushOutcome
from ganger.ports.store import Entry
from ganger.stores.sqlite import SqliteStore
from ganger.workspaces.remotes.remote import GitRemote
from tests.engine.git_runs import GitProject
from tests.forges import scenario
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.manners import Manners
from tests.forges.loopback.script import by_tree
from tests.forges.loopback.server import LoopbackForge
from tests.forges.loopback.world import World
from tests.forges.scenario import Outcome, Row, ended_of, merges_of, play
from tests.forges.truth import lies
from tests.patience import Patience

pytestmark = pytest.mark.whole

CANCELS = Manners(cancels=True)
SLOW = ((by_tree(sec=0.8),),)
EACH = 'pushes = "each"'
LEAVE, PUT_BACK = "decide leave it out", "decide put it back"
LEFT = "BLOCKED(paused)"
# The first commit is taken out while CI looks at it; two more wait behind it.
ONE = Row("one of three", SLOW, tasks=3, meanwhile=((3, "cut main 1"),), more=EACH, manners=CANCELS,
          others=(by_tree(sec=0.2),))  # fmt: skip


def ends(outcome: Outcome) -> dict[str, str]:
    return {name: ended_of(task) for name, task in outcome.project.state().tasks.items()}


def removed(outcome: Outcome) -> tuple[str, ...]:
    return next(e.tasks for e in outcome.project.find(ev.CommitsRemoved))


def before_removal(outcome: Outcome, task: str) -> list[type[ev.Event]]:
    """What had happened to the task when the removal was noticed."""
    events = [one.event for one in outcome.project.events()]
    end = next(place for place, event in enumerate(events) if isinstance(event, ev.CommitsRemoved))
    return [type(event) for event in events[:end] if getattr(event, "task", "") == task]


def require_sound(outcome: Outcome, *, asked: int = 1) -> None:
    """One question for all, an honest ledger, nobody paid twice, nothing refused by the state."""
    project = outcome.project
    told = lies(project.events(), outcome.scene.world, outcome.scene.row.needs)
    # Who was DONE, and was taken out and left out afterwards, was on the branch then.
    was_done = tuple(f"{name}: DONE, and " for name, end in ends(outcome).items() if end == LEFT)
    # Nor does what was proved, and is the same commit in the branch again, wait for a second run of it.
    proved = tuple(f"{name}: DONE with " for name in removed(outcome) if ev.CiJudged in before_removal(outcome, name))
    assert [one for one in told if not one.startswith((*was_done, *proved))] == []
    assert len(project.find(ev.QuestionAsked)) == asked, [e.text for e in project.find(ev.QuestionAsked)]
    assert len(project.find(ev.AttemptLaunched)) == outcome.scene.row.tasks
    assert not any(task.counters.ci_fixes for task in project.state().tasks.values())
    assert project.state().log.refused == [] and broken(project.events(), Seen()) == []


def test_the_status_has_a_line_for_the_branch_until_it_is_decided(tmp_path: Path) -> None:
    """D17: in words and as data."""
    outcome = play(ONE, tmp_path)
    (asked,), gone = outcome.project.find(ev.QuestionAsked), ", ".join(removed(outcome))
    said = outcome.project.ganger("status").stdout
    assert f"main: commits of this run were removed ({gone}); nothing is pushed there until you answer" in said
    (row,) = json.loads(outcome.project.ganger("status", "--json").stdout)["removals"]
    assert (row["branch"], row["tasks"], row["question"]) == ("main", list(removed(outcome)), asked.question)


def in_branches(outcome: Outcome, name: str) -> list[bool]:
    """Whether a file of the task is anywhere in the history of the remote's branch, and in that of the run's."""
    words = ("log", "--format=%h", "--", f"{name}.txt")
    theirs = outcome.scene.ground.git(words[0], "main", *words[1:])
    ours = outcome.project.in_store(words[0], "refs/heads/ganger/r1", *words[1:])
    return [bool(theirs), bool(ours)]


@pytest.mark.parametrize("more", [EACH, "", f'{EACH}\nhistory = "rebase"', 'history = "rebase"'])
def test_what_is_left_out_is_in_no_history_and_the_others_go_on_to_done(tmp_path: Path, more: str) -> None:
    """D17 D12 D18: nobody works again, and the next push does not hold the commit."""
    outcome = play(replace(ONE, more=more, then=(LEAVE,)), tmp_path)
    left = removed(outcome)
    assert {name for name, end in ends(outcome).items() if end == LEFT} == set(left) and left, ends(outcome)
    assert {end for name, end in ends(outcome).items() if name not in left} <= {"DONE"}
    assert [in_branches(outcome, name) for name in left] == [[False, False]] * len(left)
    assert "rebase" not in more or merges_of(outcome.project, outcome.scene.world) == []
    require_sound(outcome)


@pytest.mark.parametrize("more", [EACH, "", f'{EACH}\nhistory = "rebase"'])
def test_what_is_put_back_is_pushed_again_and_all_are_done(tmp_path: Path, more: str) -> None:
    """D17: only after a person said so."""
    outcome = play(replace(ONE, more=more, then=(PUT_BACK,)), tmp_path)
    assert set(ends(outcome).values()) == {"DONE"}, ends(outcome)
    assert all(in_branches(outcome, name)[0] for name in ends(outcome))
    require_sound(outcome)


def test_what_a_person_put_back_by_hand_goes_on_with_words_of_their_own(tmp_path: Path) -> None:
    """D17: as for any other question."""
    outcome = play(replace(ONE, then=("uncut main", "decide it is there again")), tmp_path)
    assert set(ends(outcome).values()) == {"DONE"}, ends(outcome)
    require_sound(outcome)


MORE = {
    # The first is DONE, CI looks at the second one, the third waits.
    "two at once": replace(ONE, meanwhile=((1, "when 2 cut main 2"),)),
    # One push holds three, and the middle one of them is taken out by a rebase.
    "in the middle of a train": replace(ONE, tasks=4, more="", pace={"t1": 0.5, "t2": 0.5, "t3": 0.5},
                                        meanwhile=((1, "when 2 drop main 1"),)),
    # The other two stay in the branch, and are proved by what it is at now.
    "the tip of a train": replace(ONE, tasks=4, more="", pace={"t1": 0.5, "t2": 0.5, "t3": 0.5},
                                  meanwhile=((1, "when 2 cut main 1"),)),
    "by someone who goes on": replace(ONE, meanwhile=((3, "cut main 1"), (3, "push"))),

}  # fmt: skip


@pytest.mark.parametrize("then", [LEAVE, PUT_BACK])
@pytest.mark.parametrize("name", MORE)
def test_what_was_removed_together_is_decided_together(tmp_path: Path, name: str, then: str) -> None:
    """D17 D12: whoever else shared the push goes on."""
    outcome = play(replace(MORE[name], then=(then,)), tmp_path)
    gone = set(removed(outcome)) if then == LEAVE else set()
    assert {n for n, end in ends(outcome).items() if end == LEFT} == gone, ends(outcome)
    assert {end for n, end in ends(outcome).items() if n not in gone} <= {"DONE"}, ends(outcome)
    assert len(removed(outcome)) == {"two at once": 2}.get(name, 1)
    for task in ends(outcome):
        assert in_branches(outcome, task) == [task not in gone] * 2, task
    require_sound(outcome)


def test_restored_by_hand_and_then_left_out_all_the_same_is_delivered(tmp_path: Path) -> None:
    """D17: the branch tells what is in it; nothing is ever taken out of it by the run."""
    outcome = play(replace(ONE, then=("uncut main", LEAVE)), tmp_path)
    assert set(ends(outcome).values()) == {"DONE"}, ends(outcome)
    require_sound(outcome)


def test_a_lead_that_is_at_work_goes_on_when_the_answer_comes(tmp_path: Path) -> None:
    """D17: no second command is needed."""
    row = replace(ONE, tasks=4, pace={"t3": 6.0}, timed=((0.5, "await leave it out"),))
    outcome = play(row, tmp_path)
    left = removed(outcome)
    assert {end for n, end in ends(outcome).items() if n not in left} == {"DONE"}, ends(outcome)
    assert [in_branches(outcome, name) for name in left] == [[False, False]] * len(left)
    require_sound(outcome)


def test_who_does_not_fit_without_it_is_done_again(tmp_path: Path) -> None:
    """D17: as after any conflict, with what it is in; the others pay nothing."""
    work = {"t1": [{"shared.txt": "A1\n"}, {"shared.txt": "B1\n"}], "a": [{"shared.txt": "A\n"}]}
    row = replace(ONE, tasks=3, concurrency=1, attempts=work["a"], work={"t1": work["t1"]}, then=(LEAVE,))
    outcome = play(row, tmp_path)
    assert ends(outcome) == {"a": LEFT, "t1": "DONE", "t2": "DONE"}, ends(outcome)
    assert outcome.scene.ground.files(outcome.scene.ground.tip("main"))["shared.txt"].strip() == "B1"
    assert "A1" not in outcome.scene.ground.git("log", "-p", "main", "--", "shared.txt")
    failed = {(e.task, e.failure_class) for e in outcome.project.find(ev.AttemptFailed)}
    assert failed == {("t1", "merge_conflict")}


def test_a_branch_that_is_gone_can_only_be_put_back(tmp_path: Path) -> None:
    """D17: without a branch there is nothing that the rest could be put on."""
    outcome = play(replace(ONE, meanwhile=((3, "delete main"),), then=(PUT_BACK,)), tmp_path)
    (asked,) = outcome.project.find(ev.QuestionAsked)
    assert asked.options == ("put it back",) and set(ends(outcome).values()) == {"DONE"}, ends(outcome)


def test_what_builds_on_it_waits(tmp_path: Path) -> None:
    """D17 D13: also what was begun, merged or queued already; `ganger retry` of the one takes all in again."""
    row = replace(ONE, tasks=4, meanwhile=((1, "when 2 cut main 2"),), behind={"t1": ("a",), "t3": ("t1",)})
    outcome = play(replace(row, then=(LEAVE,)), tmp_path)
    found = ends(outcome)
    assert found["a"] == LEFT and found["t2"] in ("DONE", LEFT), found
    assert found["t1"] in (LEFT, "BLOCKED(dependency_failed)") and found["t3"] == "BLOCKED(dependency_failed)", found


def test_a_verdict_from_before_the_branch_was_cut_back_to_that_commit_stays_true(tmp_path: Path) -> None:
    """D02 D17: the forge runs CI of it again then, which nobody had seen when the task was DONE."""
    outcome = play(replace(ONE, meanwhile=((1, "when 2 cut main 1"),)), tmp_path)
    world, (done,) = outcome.scene.world, [name for name, end in ends(outcome).items() if end == "DONE"]
    sha = next(e.sha for e in outcome.project.find(ev.CiJudged) if e.task == done)
    assert len([run for run in world.runs if run.sha == sha]) == 2
    assert lies(outcome.project.events(), world, outcome.scene.row.needs) == []


# Only the fix is taken out of the branch: what it was to fix is still there.
FIX = replace(ONE, concurrency=1, pushes=((by_tree("a.txt~bad", sec=0.5),),), others=(by_tree("a.txt~bad"),),
              attempts=({"a.txt": "bad\n"}, {"a.txt": "good\n"}),
              meanwhile=((1, "once a.txt~good cut main"),))  # fmt: skip


def require_sound_after_a_fix(outcome: Outcome) -> None:
    """As `require_sound`, of a run in which one fix was paid."""
    project = outcome.project
    assert lies(project.events(), outcome.scene.world, outcome.scene.row.needs) == []
    assert [e.task for e in project.find(ev.AttemptLaunched)].count("a") == 2
    assert project.state().log.refused == [] and broken(project.events(), Seen()) == []


# The red commit came with others in one push, so CI judges it again once the rest is pushed.
FIX_OF_TRAIN = replace(FIX, concurrency=3, pace={"a": 0.3, "t1": 0.3, "t2": 2.0})


@pytest.mark.parametrize("row", [replace(FIX, more=EACH), FIX, FIX_OF_TRAIN], ids=["each", "train", "several"])
def test_where_only_a_fix_was_removed_the_revert_of_the_rest_is_offered(tmp_path: Path, row: Row) -> None:
    """D17 D06 D12: the red commit is the run's own, and only the task that made it is blamed."""
    outcome = play(replace(row, then=(LEAVE,)), tmp_path)
    assert ends(outcome).items() >= {"a": LEFT, "t2": "BLOCKED(dependency_failed)"}.items()
    assert {e.task for e in outcome.project.find(ev.CulpritFound)} <= {"a"}
    require_sound_after_a_fix(outcome)
    first, asked = outcome.project.state().inbox.questions.values()
    assert "a commit of a is gone, and an earlier one stays" in first.text and asked.answer is None
    assert (asked.task, asked.options[0]) == ("a", "revert it") and "before this run" not in outcome.detail()


# The fix was green, and is removed together with what came after it.
FIX_WAS_GREEN = replace(FIX, tasks=4, concurrency=4, pace={"t2": 5.0, "t3": 9.0},
                        meanwhile=((1, "once t2.txt cut main 2"),))  # fmt: skip


def test_a_green_tip_that_was_removed_proves_nothing_of_what_stays(tmp_path: Path) -> None:
    """D17 D06: no other task is charged with the fault that is back."""
    outcome = play(replace(FIX_WAS_GREEN, then=(LEAVE,)), tmp_path)
    launched = [e.task for e in outcome.project.find(ev.AttemptLaunched)]
    assert launched.count("t3") == 1 and ends(outcome)["t3"] in ("DONE", "BLOCKED(dependency_failed)"), ends(outcome)
    assert {e.task for e in outcome.project.find(ev.CulpritFound)} <= {"a"}


@pytest.mark.parametrize("row", [replace(FIX, more=EACH), FIX, FIX_OF_TRAIN], ids=["each", "train", "several"])
def test_the_rest_of_a_removed_fix_is_reverted_and_the_others_are_done(tmp_path: Path, row: Row) -> None:
    """D17 D06: without a worker."""
    outcome = play(replace(row, then=(LEAVE,), then_again=("answer a revert it",)), tmp_path)
    assert ends(outcome) == {"a": LEFT, "t1": "DONE", "t2": "DONE"}, outcome.detail()
    assert "a.txt" not in outcome.scene.ground.files(outcome.scene.ground.tip("main"))
    require_sound_after_a_fix(outcome)


def test_a_blamed_tip_that_is_tracked_again_does_not_hold_up_its_revert(tmp_path: Path) -> None:
    """D17 D06: the others wait for the revert, so the tip is not waited for before that is pushed."""
    # All are merged while the forge is away, and go in one push.
    row = replace(FIX, more="", concurrency=3, over_http=True, before=("outage 2",))
    outcome = play(replace(row, then=(LEAVE,), then_again=("decide revert it",)), tmp_path)
    assert ends(outcome) == {"a": LEFT, "t1": "DONE", "t2": "DONE"}, outcome.detail()


def test_a_push_that_is_under_way_does_not_bring_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D17: the remote compares, in the moment in which it takes the push."""
    real = GitRemote.push
    done: list[str] = []

    async def push(self: GitRemote, commit: str, branch: str, onto: str = "") -> PushOutcome:
        ground = Ground(Path(self.address))
        if branch == "main" and not done and ground.files(ground.tip("main")).keys() & {"a.txt", "t1.txt", "t2.txt"}:
            done.append(ground.tip("main"))
            ground.cut("main", 1)
        return await real(self, commit, branch, onto)

    monkeypatch.setattr(GitRemote, "push", push)
    outcome = play(replace(ONE, meanwhile=(), then=(LEAVE,)), tmp_path)
    assert done and not outcome.scene.ground.holds("main", done[0])
    assert sorted(ends(outcome).values()) == [LEFT, "DONE", "DONE"], ends(outcome)
    require_sound(outcome)


def removed_once_green(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    """A commit is removed once others wait as well, so that several tasks look at the branch. The question that the
    first one asks is answered while the second one looks. Returns the looks."""
    append, fetch, put_up = SqliteStore.append, GitRemote.fetch, scenario.Scene.project
    worlds: list[World] = []
    looks: list[str] = []
    told: list[type[ev.Event]] = []
    cut: list[str] = []
    answers: list[Callable[[], int]] = []

    def act(self: SqliteStore, entries: Sequence[Entry]) -> list[ev.Recorded]:
        done = append(self, entries)
        for one in done:
            if isinstance(one.event, ev.CiJudged) and not cut and told.count(ev.Merged) > told.count(ev.Pushed) + 1:
                cut.append(worlds[0].cut("main"))
            if isinstance(one.event, ev.QuestionAsked):
                answers.append(partial(self.send, one.at, "answer", {"question": one.event.question, "text": text}))
            told.append(type(one.event))
        return done

    async def slow(self: GitRemote, branch: str) -> str:
        looks.append(branch)
        patience = Patience(20)
        while len(looks) == 2 and ev.QuestionAnswered not in told and not patience.is_over():
            if answers:
                answers.pop()()
            await asyncio.sleep(0.01)
        return await fetch(self, branch)

    def project(self: scenario.Scene, server: LoopbackForge) -> GitProject:
        worlds.append(self.world)
        return put_up(self, server)

    monkeypatch.setattr(scenario.Scene, "project", project)
    monkeypatch.setattr(SqliteStore, "append", act)
    monkeypatch.setattr(GitRemote, "fetch", slow)
    return looks


@pytest.mark.parametrize("then", [LEAVE, PUT_BACK])
def test_what_was_decided_while_another_task_looked_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """D17: one question for the branch, however late a look at it comes back."""
    looks = removed_once_green(monkeypatch, then.removeprefix("decide "))
    outcome = play(replace(ONE, tasks=4, meanwhile=()), tmp_path)
    gone = set(removed(outcome)) if then == LEAVE else set()
    assert {n: end for n, end in ends(outcome).items() if end != "DONE"} == dict.fromkeys(gone, LEFT), ends(outcome)
    assert len(looks) > 1
    require_sound(outcome)


def test_whoever_waits_is_told_which_question_to_answer(tmp_path: Path) -> None:
    """D17 D12: `ganger why` of any of them, and the inbox with all that wait."""
    outcome = play(ONE, tmp_path)
    assert set(ends(outcome).values()) == {"BLOCKED(external)"}
    for name in ends(outcome):
        said = outcome.project.ganger("why", name).stdout
        assert "no longer in main" in said and "ganger answer q-1 NUMBER_OR_TEXT" in said, said
    said = outcome.project.ganger("inbox").stdout
    assert "leave it out" in said and "put it back" in said and "2 tasks wait" in said, said


class Died(BaseException):
    """Stands for the end of a lead at one commit of its store."""


def deadly(monkeypatch: pytest.MonkeyPatch, name: str, *, told: bool) -> list[str]:
    """Once an answer was given, the first lead that records this event dies: before that is durable, or (`told`) after;
    the next one goes on. Returns who died."""
    append, act, lead = SqliteStore.append, scenario.Scene.act, scenario._lead
    armed: list[str] = []
    died: list[str] = []

    def append_or_die(self: SqliteStore, entries: Sequence[Entry]) -> Sequence[ev.Recorded]:
        is_due = bool(armed) and not died and any(ev.type_name(one.event) == name for one in entries)
        if is_due and not told:
            died.append(name)
            raise Died
        done = append(self, entries)
        if is_due:
            died.append(name)
            raise Died
        return done

    def act_and_arm(self: scenario.Scene, what: str, server: LoopbackForge) -> None:
        armed.extend([what] if what.startswith("decide") else [])
        act(self, what, server)

    def lead_on(project: GitProject, most_sec: float) -> int:
        try:
            return lead(project, most_sec)
        except Died:
            return lead(project, most_sec)

    monkeypatch.setattr(SqliteStore, "append", append_or_die)
    monkeypatch.setattr(scenario.Scene, "act", act_and_arm)
    monkeypatch.setattr(scenario, "_lead", lead_on)
    return died


STEPS = ("removal_decided", "set_back_intended", "head_moved", "merge_queued", "head_intended", "pushed")


@pytest.mark.slow
@pytest.mark.parametrize("told", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_lead_that_dies_while_it_is_left_out_is_followed_by_one_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, told: bool
) -> None:
    """D17 D18: no second question, no second push, nobody works again."""
    died = deadly(monkeypatch, step, told=told)
    outcome = play(replace(ONE, then=(LEAVE,)), tmp_path)
    left = removed(outcome)
    assert died == [step] and sorted(ends(outcome).values()) == [LEFT, "DONE", "DONE"], ends(outcome)
    assert [in_branches(outcome, name) for name in left] == [[False, False]]
    require_sound(outcome)

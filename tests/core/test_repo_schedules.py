"""Schedules over repositories that build on each other: what holds for every graph, outcome, restart and person."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from ganger.core import events as ev
from ganger.core.model.ledger import RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.planning import repos
from ganger.core.planning.repos import RepoGraph, RepoLocks, graph_of, is_guarded, registry, why_not
from ganger.core.scheduling.windows import Finish, OpenWindow, Start, Wait, decide
from ganger.core.state import apply
from ganger.core.state.indexes import index_tasks
from ganger.core.vocabulary import FailureClass, HealSchedule, RunStatus, TaskStatus
from ganger.views.run.why import why
from tests.core.repo_runs import RepoRun, repo_run

P, R, D, F = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE, TaskStatus.FAILED
OFF = Policy(heal_schedule=HealSchedule.OFF, concurrency=9, max_worker_attempts_per_task=1)
CORE = RepoRules("core", (), "exclusive")
LIB = RepoRules("lib", ("core",), "exclusive")
APP = RepoRules("app", ("lib",), "exclusive")
SIDE = RepoRules("side", ("core",), "exclusive")
OWN = RepoRules("own", (), "shared")


def small(*tasks: str, rules: tuple[RepoRules, ...] = (CORE, LIB, APP, SIDE, OWN), policy: Policy = OFF) -> RepoRun:
    """A task is `repo` or `repo-anything`, with what it needs behind `<`."""
    specs = []
    for task in tasks:
        name, *needs = task.split("<")
        specs.append(TaskSpec(name, tuple(needs), repo=name.partition("-")[0]))
    return RepoRun(tuple(specs), policy, repos=rules).begin()


def started(state: RunState) -> list[str]:
    return [decision.task for decision in decide(state, 0.0) if isinstance(decision, Start)]


# --- by chance -------------------------------------------------------------------------------------------------------


def check_end(made: RepoRun) -> None:
    """Whatever is left waits for somebody who needs a person, and the reason says what that person can do."""
    state = made.state
    assert made.wrong == [] and state.log.refused == [] and state.finished
    left = [name for name, task in state.tasks.items() if task.status is P and not state.index.unmet[name]]
    assert all(why_not(state, name) for name in left) and not state.index.running
    assert (state.status is RunStatus.COMPLETED) == all(task.status is D for task in state.tasks.values())
    if left and state.status is RunStatus.ABORTED:
        assert "ganger unlock" in (state.abort_reason or "") and "held by" in (state.abort_reason or "")
    assert {holding.task: holding.repo for holding in registry(state)} == made.held


@pytest.mark.brief(40)
@pytest.mark.parametrize("seed", range(400))
def test_no_two_are_active_in_one_chain_and_every_run_ends(seed: int) -> None:
    """D08 D09: failures and red CI included; a lock ends with proof alone, and no schedule waits for ever."""
    check_end(repo_run(seed, 40).run())


@pytest.mark.brief(40)
@pytest.mark.parametrize("seed", range(400))
def test_persons_and_restarts_at_any_moment_bring_no_deadlock(seed: int) -> None:
    """D09 D11 G12: unlock, skip, retry, retry --force and stop; nobody runs in the chain of another that runs."""
    made = repo_run(seed, 30)
    for _ in range(30):
        for _ in range(made.chance.randrange(12)):
            made.step()
        if made.state.finished:
            made.begin()
        made.meddle()
    made.run()
    state = made.state
    assert made.wrong == [] and state.finished and not state.index.running
    left = [name for name, task in state.tasks.items() if task.status is P and not state.index.unmet[name]]
    assert all(why_not(state, name) for name in left)


@pytest.mark.brief(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_tasks_on_random_graphs(seed: int) -> None:
    """D08 D09 D11: to the last of them, over as many leads as it takes; siblings did run side by side."""
    policy = Policy(HealSchedule.OFF, concurrency=8)
    made = repo_run(1000 + seed, 1000, checked=False, fail_rate=0.05, red_rate=0.1, policy=policy)
    check_end(made.run())
    while made.state.status is not RunStatus.COMPLETED:
        made.begin().bring_back()
        check_end(made.run())
    names = [rules.name for rules in made.repos]
    assert made.starts >= 1000 and (made.together > 0) == any(made.may_meet(a, b) for a in names for b in names)


@pytest.mark.parametrize("repo", ["", "core"])
def test_ten_thousand_tasks_are_decided_on_quickly(repo: str) -> None:
    """D08: without repositories no gate is asked; with them, a queue that only waits is not gone through each time."""
    specs = tuple(TaskSpec(f"t{n}", repo=repo) for n in range(10_000))
    made = RepoRun(specs, OFF, repos=(CORE,) if repo else (), checked=False).begin()
    assert is_guarded(made.state) == bool(repo) and len(started(made.state)) == (1 if repo else 9)
    made.step()
    began = time.perf_counter()
    assert decide(made.state, 0.0) == [] and time.perf_counter() - began < 0.1


# --- planted faults --------------------------------------------------------------------------------------------------


def test_the_judge_sees_a_lock_that_ends_with_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """D09: planted."""
    whole = apply._put

    def put(state: RunState, name: str, before: TaskState, after: TaskState) -> None:
        whole(state, name, before, after)
        if after.status is F:
            state.index.locks.get(state.specs[name].repo, set()).discard(name)

    monkeypatch.setattr(apply, "_put", put)
    assert any(repo_run(seed, 40, fail_rate=0.3).run().wrong for seed in range(10))


def test_the_judge_sees_a_chain_that_ends_at_the_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    """D08: planted, transitivity forgotten."""

    def near(rules: Mapping[str, RepoRules]) -> RepoGraph:
        needs = {name: rule.depends_on for name, rule in rules.items()}
        below = {name: tuple(n for n, found in needs.items() if name in found) for name in needs}
        return RepoGraph(needs, below, dict.fromkeys(needs, 0))

    monkeypatch.setattr(repos, "graph_of", near)
    assert any(repo_run(seed, 40, fail_rate=0.0).run().wrong for seed in range(10))


def test_the_judge_sees_two_chosen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """D08: planted, what one decision has taken is forgotten; the second start is refused, and that is recorded."""
    monkeypatch.setattr(RepoLocks, "take", lambda *_: None)
    made = small("core-1", "core-2")
    made.step()
    assert made.wrong or made.state.log.refused


# --- one by one ------------------------------------------------------------------------------------------------------


def test_roots_start_first_and_siblings_side_by_side() -> None:
    """D08 D10"""
    made = small("app", "lib", "side", "core", "own-1", "own-2")
    assert made.state.index.by_rank[0] == "core" and started(made.state) == ["core", "own-1", "own-2"]
    made.step()
    made.finish("core")
    assert started(made.state) == ["lib", "side"]


def test_a_lock_outlives_a_failure_and_the_reason_says_what_to_do() -> None:
    """D09 G12: the run ends, naming lock, holder and the ways out."""
    made = small("core", "lib", "app")
    made.step()
    made.fail("core", FailureClass.REAL_BUG)
    (end,) = decide(made.state, 0.0)
    assert isinstance(end, Finish) and end.run_status is RunStatus.ABORTED
    said = end.abort_reason or ""
    assert "lib waits: lib builds on core, which is held by core (FAILED)" in said
    assert "ganger retry core" in said and "ganger skip core" in said and "ganger unlock core --why TEXT" in said


@pytest.mark.parametrize("how", ["unlock", "skip", "retry"])
def test_a_person_frees_what_a_failure_holds(how: str) -> None:
    """D09 G12"""
    made = small("core", "lib")
    made.step()
    made.fail("core", FailureClass.REAL_BUG)
    data = {"repo": "core", "why": "reverted by hand"} if how == "unlock" else {"task": "core"}
    made.tell(how, **data)
    assert started(made.state) == (["core"] if how == "retry" else ["lib"])
    assert any(isinstance(entry.event, ev.RepoUnlocked) for entry in made.events) == (how != "retry")


WORDS = {
    "": "it names no repository",
    "nope": "there is no repository nope; there are app, core, lib, own, side",
    "lib": "lib is neither locked nor halted; nothing to do",
    "core": "core is free: core no longer holds it; core still runs",
}


@pytest.mark.parametrize("repo", WORDS)
def test_unlock_says_what_came_of_it(repo: str) -> None:
    """D09 G12"""
    made = small("core", "lib")
    made.step()
    assert WORDS[repo] in made.tell("unlock", repo=repo, why="so it is")
    assert ("core" in made.held) == (repo != "core")


def test_unlock_without_a_reason_is_refused() -> None:
    """D09"""
    made = small("core")
    made.step()
    assert "gives no reason" in made.tell("unlock", repo="core", why="  ") and made.state.index.locks["core"] == {
        "core"
    }


def test_a_halt_stops_the_whole_chain_until_a_person_lifts_it() -> None:
    """D12: up and down; siblings above which nothing was halted go on. A skip does not lift it."""
    made = small("lib-1", "core", "app", "side", "own", "lib-2")
    made.record(ev.ChainHalted("lib", "lib-1", "a key leaked"))
    assert started(made.state) == ["own", "side"]
    assert "lib is halted: a key leaked; ganger unlock lib --why TEXT" in why_not(made.state, "app")
    made.tell("skip", task="lib-1")
    assert "lib" in made.state.chains.halted
    made.tell("unlock", repo="lib", why="the key was revoked")
    assert started(made.state)[0] == "core" and why_not(made.state, "app") == ""


def test_the_project_itself_can_be_halted_and_freed() -> None:
    """D12: without any graph."""
    made = RepoRun((TaskSpec("a"),), OFF).begin()
    made.record(ev.ChainHalted("", "a", "a key leaked"))
    assert started(made.state) == [] and "the project is halted" in why_not(made.state, "a")
    assert "the project is free" in made.tell("unlock", repo=".", why="revoked") and started(made.state) == ["a"]


def test_what_builds_on_a_red_repository_waits_and_who_mends_it_does_not() -> None:
    """D13: a task below, paused with its lock, gives way to whoever makes the repository green again."""
    made = small("core", "lib", "app")
    made.start("lib")
    made.record(ev.ChainPaused("core", "core", "0" * 40, "red", ("lib", "app")))
    assert "held by lib" in why_not(made.state, "core")
    made.interrupt_all()
    assert started(made.state) == ["core"]
    assert "core turned red" in why_not(made.state, "lib")
    made.record(ev.ChainCleared("core", "1" * 40))
    assert started(made.state) == ["lib"]


def test_a_root_that_waits_is_not_overtaken_for_ever() -> None:
    """D10: while it waits for one that runs, nobody else starts in its chain."""
    made = small(
        "own", "core<own", "lib-1", "lib-2", "side-1", "side-2", policy=Policy(HealSchedule.OFF, concurrency=3)
    )
    made.step()
    assert made.state.index.running == {"own", "lib-1", "side-1"}
    made.finish("own")
    made.finish("lib-1")
    assert started(made.state) == []
    made.finish("side-1")
    assert started(made.state) == ["core"]


def test_a_task_that_another_holder_needs_is_not_held_up_by_it() -> None:
    """D08 G12: a DONE task is run again while what needs it holds its chain."""
    made = small("lib", "core<lib")
    made.step()
    made.finish("lib")
    made.step()
    made.interrupt_all()
    made.tell("retry", task="lib", force=True)
    assert made.state.index.locks["core"] == {"core"} and started(made.state) == ["lib"]


SENTENCES = {
    "core": "app builds on core, which is held by core (PUSHED_TO_CI); it is free when core is DONE with proof",
    "lib": "app builds on lib, which is held by lib (WORKING); it is free when lib is DONE with proof",
    "app-2": "app is held by app-2 (WORKING)",
}


@pytest.mark.parametrize("holder", SENTENCES)
def test_the_sentence_names_repository_holder_milestone_and_way_out(holder: str) -> None:
    """D08 D11 G10"""
    rules = (RepoRules("core", (), "exclusive", ("verified", "pushed", "ci")), LIB, APP)
    made = small(holder, "app", rules=rules)
    made.delivers = True
    made.start(holder)
    if holder == "core":
        made.finish(holder)
    assert SENTENCES[holder] in why_not(made.state, "app")


WAYS_OUT = {"RUNNING": "", "FAILED": "ganger retry core", "halted": "ganger unlock core --why TEXT"}


@pytest.mark.parametrize("how", WAYS_OUT)
def test_why_says_what_a_task_waits_for_and_what_to_type(how: str) -> None:
    """G10 D08"""
    made = small("core", "lib")
    made.step()
    if how == "FAILED":
        made.fail("core", FailureClass.REAL_BUG)
    if how == "halted":
        made.record(ev.ChainHalted("core", "core", "a key leaked"))
    told = why(made.state, "lib")
    assert told.sentence.startswith("lib waits for its repository: ") and told.next_step == WAYS_OUT[how]


def test_the_registry_survives_a_restart() -> None:
    """D11: who works where, in which milestone."""
    made = small("core", "own-1", "own-2")
    made.step()
    made.restart()
    rows = [(row.repo, row.task, row.doing, row.active) for row in registry(made.state)]
    assert rows == [
        (repo, task, "WORKING", True) for repo, task in [("core", "core"), ("own", "own-1"), ("own", "own-2")]
    ]


# --- windows ---------------------------------------------------------------------------------------------------------

BATCH = Policy(HealSchedule.BATCH, batch_size=4, concurrency=4, max_worker_attempts_per_task=1)


def test_a_window_takes_what_can_start_then_what_follows_it() -> None:
    """T10 D08: places that are left go to tasks that wait for those in front of them alone."""
    made = small("core-1", "core-2", "own", "lib", "app", policy=BATCH)
    (opened,) = decide(made.state, 0.0)
    assert isinstance(opened, OpenWindow) and opened.tasks == ("core-1", "core-2", "own", "lib")
    made.fail_rate = 0.0
    assert made.run().state.status is RunStatus.COMPLETED and made.wrong == []


def test_nothing_waits_in_a_window_for_what_is_being_delivered() -> None:
    """T10 D08: CI may take long, and siblings need not wait for it; the run waits, and does not end."""
    rules = (RepoRules("core", (), "exclusive", ("verified", "pushed", "ci")), LIB, OWN)
    made = small("core", "lib", "own-1", "own-2<own-1", rules=rules, policy=BATCH)
    made.delivers = True
    (opened,) = decide(made.state, 0.0)
    assert isinstance(opened, OpenWindow) and opened.tasks == ("core", "own-1")
    made.step()
    made.step()
    made.finish("core")
    made.record(ev.VerifyFinished("own-1", 1, True, "log", 0.0, ()), ev.Merged("own-1", 1, "", "h"))
    made.record(ev.TaskSettled("own-1", D, "merged"))
    made.step()
    assert decide(made.state, 0.0) == [OpenWindow(1, ("own-2",))]


def test_a_run_waits_for_a_delivery_that_others_wait_for() -> None:
    """T10 D09: no window can open, and the run is not over."""
    rules = (RepoRules("core", (), "exclusive", ("verified", "pushed", "ci")), LIB)
    made = small("core", "lib", rules=rules, policy=BATCH)
    made.delivers, made.red_rate = True, 0.0
    made.step()
    made.step()
    made.finish("core")
    made.step()
    assert made.state.windows.current is None and decide(made.state, 0.0) == []
    made.judge_ci("core")
    assert decide(made.state, 0.0) == [OpenWindow(1, ("lib",))]


def test_a_delivery_taken_up_again_needs_no_slot_and_no_window() -> None:
    """D18: no worker is running; it goes on beside as many workers as may run."""
    rules = (RepoRules("core", (), "exclusive", ("verified", "pushed", "ci")), OWN)
    made = small("core", "own", rules=rules, policy=Policy(HealSchedule.OFF, concurrency=1))
    made.delivers = True
    made.start("core")
    made.finish("core")
    made.start("own")
    made.record(ev.AttemptInterrupted("core", 1, "the forge refused the token"))
    assert decide(made.state, 0.0) == [Start("core")]
    made.start("core")
    assert made.state.index.delivering == {"core"} and decide(made.state, 0.0) == []


def test_the_files_of_a_delivery_are_free_for_the_fix_that_it_waits_for() -> None:
    """D18 D12: a delivery writes no file, so no task with the same files waits for it, and it waits for none."""
    rules = RepoRules("own", (), "shared", ("verified", "pushed", "ci"))
    specs = tuple(TaskSpec(name, writes=("a.txt",), repo="own") for name in ("own-1", "own-2"))
    made = RepoRun(specs, Policy(HealSchedule.OFF, concurrency=1), repos=(rules,)).begin()
    made.delivers = True
    made.start("own-1")
    assert made.state.index.busy_files == {"own:a.txt": "own-1"} and started(made.state) == []
    made.finish("own-1")
    assert made.state.index.busy_files == {} and started(made.state) == ["own-2"]
    made.start("own-2")
    made.record(ev.AttemptInterrupted("own-1", 1, "the lead died"))
    assert started(made.state) == ["own-1"]
    made.start("own-1")
    assert made.state.index.busy_files == {"own:a.txt": "own-2"}


def test_a_file_of_an_earlier_conflict_is_busy_until_the_delivery() -> None:
    """D18: as a declared one; the index that a new lead makes says the same."""
    rules = RepoRules("own", (), "shared", ("verified", "pushed", "ci"))
    made = small("own-1", "own-2", rules=(rules,), policy=Policy(HealSchedule.OFF, concurrency=2))
    made.delivers = True
    made.start("own-1")
    made.record(ev.AttemptFailed("own-1", 1, "merge_conflict", "x", "y", "none", files=("a.txt",)))
    made.record(ev.TaskRequeued("own-1", "again"))
    made.start("own-1")
    assert made.state.index.busy_files == {"own:a.txt": "own-1"}
    made.finish("own-1")
    index_tasks(made.state)
    assert made.state.index.busy_files == {} and made.state.index.delivering == {"own-1"}


def test_a_window_whose_rest_waits_for_a_failure_closes_and_no_other_opens() -> None:
    """T10 D09: neither a window that never closes nor windows without an end."""
    made = small("core-1", "core-2", "core-3", policy=BATCH)
    made.step()
    made.step()
    made.fail("core-1", FailureClass.REAL_BUG)
    made.run(20)
    assert made.state.status is RunStatus.ABORTED and made.state.windows.opened == 1
    assert made.state.tasks["core-2"].status is P and "ganger unlock core" in (made.state.abort_reason or "")


def test_a_holder_that_waits_for_its_quota_is_waited_for() -> None:
    """T10 A09: time brings it back, and with it whoever waits for its lock."""
    made = small("core", "lib")
    made.step()
    made.record(ev.AttemptInterrupted("core", 1, "again later", not_before=50.0))
    assert decide(made.state, 0.0) == [Wait(50.0)] and graph_of(made.state.chains.rules).phase["lib"] == 1

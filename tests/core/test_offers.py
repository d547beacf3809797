"""Sessions that ask for tasks: they get them by the rules by which agents are started, and a run waits for them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core import events as ev
from ganger.core.model.records import Budget, Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.scheduling import choosing, windows
from ganger.core.scheduling.windows import Decision, Finish, Start, Wait, decide, offer, starts_after
from ganger.core.vocabulary import BlockReason, HealSchedule, Mode, RunStatus, TaskStatus
from tests.core.run_model import Model, random_specs

P, D, B = TaskStatus.PENDING, TaskStatus.DONE, TaskStatus.BLOCKED
OFF = Policy(heal_schedule=HealSchedule.OFF, concurrency=2)


@dataclass
class SessionRun(Model):
    """A run in which tasks of the role `handed` go to sessions that ask, and any other may."""

    askers: int = 2
    most_spawned: int = 0

    def begin(self, only: tuple[str, ...] | None = None, max_tasks: int | None = None) -> SessionRun:
        self.record(ev.RunStarted("run", "digest", self.policy, self.specs))
        self.record(ev.LeadStarted(1, policy=self.policy, only=only, max_tasks=max_tasks, pull_roles=("handed",)))
        return self

    def record(self, *events: ev.Event) -> None:
        for event in events:
            if isinstance(event, ev.AttemptStarted):
                handed = self.state.specs[event.task].role == "handed"
                assert event.worker or not handed, "only a session that asks may have it"
            super().record(event)
        self.most_spawned = max(
            self.most_spawned, len(self.state.index.running - self.state.index.pulled - self.state.index.in_merge_queue)
        )

    def ask(self, roles: tuple[str, ...] | None = None, worker: str = "") -> str | None:
        task = offer(self.state, 0.0, roles)
        if task is not None:
            name = worker or f"session-{self.chance.randrange(10**9)}"
            number = self.state.tasks[task].attempts + 1
            self.record(ev.AttemptStarted(task, number, f"{task}.{number}", "pull", "", "log", worker=name))
        return task

    def step(self) -> bool:
        decisions: list[Decision] = [one for one in decide(self.state, 0.0) if not isinstance(one, Wait)]
        for one in decisions:
            if isinstance(one, Finish):
                assert self.stuck(), "it ends although something can still happen"
        self.carry_out(decisions)
        asked = self.chance.random() < 0.7 and len(self.state.index.pulled) < self.askers and self.ask() is not None
        if self.state.index.running and not decisions and not asked:
            self.end_one(self.chance.choice(sorted(self.state.index.running)))
        return not self.state.finished

    def stuck(self) -> bool:
        waits = [
            name for name, task in self.state.tasks.items() if task.status is P and not self.state.index.unmet[name]
        ]
        return not self.state.index.running and not waits


@st.composite
def session_runs(draw: st.DrawFn) -> SessionRun:
    chance = random.Random(draw(st.integers(0, 2**32)))
    policy = Policy(
        heal_schedule=draw(st.sampled_from(HealSchedule)),
        concurrency=draw(st.integers(1, 3)),
        batch_size=draw(st.integers(1, 4)),
    )
    share = draw(st.sampled_from((0.0, 0.5, 1.0)))
    specs = tuple(
        replace(spec, role="handed" if chance.random() < share else "worker")
        for spec in random_specs(chance, draw(st.integers(1, 12)))
    )
    return SessionRun(specs, policy, chance, draw(st.sampled_from((0.0, 0.3, 0.9))), askers=draw(st.integers(1, 3)))


@given(session_runs())
@settings(max_examples=120)
def test_a_run_with_sessions_that_ask_ends_exactly_when_nothing_can_happen(run: SessionRun) -> None:
    """W03 T03 T04: no task has two holders, none is left lying, agents keep to their places."""
    run.begin().run()
    assert run.state.log.refused == [] and run.state.finished
    assert run.most_spawned <= run.policy.concurrency
    done = {task.status for task in run.state.tasks.values()} == {D}
    assert (run.state.status is RunStatus.COMPLETED) == done


@given(session_runs())
def test_what_is_offered_could_be_started_by_nobody_else_at_the_same_moment(run: SessionRun) -> None:
    """W03 Z08: an offer is a task that is ready, in the window, and whose files are free."""
    run.begin()
    for _ in range(12):
        task = offer(run.state, 0.0)
        if task is not None:
            busy = run.state.index.busy_files
            assert task not in run.state.index.running and not run.state.index.unmet[task]
            assert run.state.windows.current is None or task in run.state.windows.open
            assert not any(file in busy for file in run.state.specs[task].writes)
        run.step()


def handed(*names: str, **more: str) -> tuple[TaskSpec, ...]:
    return tuple(TaskSpec(name, role=more.get(name, "handed")) for name in names)


@pytest.mark.parametrize("schedule", list(HealSchedule))
def test_a_run_waits_for_somebody_to_ask_and_its_window_stays_open(schedule: HealSchedule) -> None:
    """H12 W03: one far wait, no end, no closed window, nothing started."""
    run = SessionRun(handed("a", "b"), replace(OFF, heal_schedule=schedule)).begin()
    for _ in range(4):
        decisions = decide(run.state, 0.0)
        if isinstance(decisions[0], Wait):
            break
        run.carry_out(decisions)
    assert decide(run.state, 0.0) == [Wait(3600.0)] and not run.state.index.running
    assert run.ask() == "a" and decide(run.state, 0.0) == []


def test_sessions_take_no_place_from_agents() -> None:
    """W03 T04: concurrency counts what is started here."""
    run = SessionRun(handed("a", "b", "c", "d", c="worker", d="worker"), OFF).begin()
    assert (run.ask(), run.ask()) == ("a", "b")
    assert decide(run.state, 0.0) == [Start("c"), Start("d")]


def test_a_session_may_have_any_task_unless_it_names_roles() -> None:
    """W03: in the order of the plan, and of its roles alone when it names some."""
    run = SessionRun(handed("a", "b", "c", a="worker", b="tester"), OFF).begin()
    state = run.state
    assert (offer(state, 0.0), offer(state, 0.0, ("tester", "handed")), offer(state, 0.0, ())) == ("a", "b", None)


def held(run: SessionRun, *events: ev.Event) -> RunState:
    run.record(*events)
    return run.state


REFUSED: dict[str, tuple[ev.Event, ...]] = {
    "the run is paused": (ev.RunPaused("a person"),),
    "the run drains": (ev.DrainRequested("a person"),),
    "the run stops": (ev.StopRequested("a person"),),
    "the run has ended": (ev.RunFinished(RunStatus.ABORTED, "why", {}),),
    "its budget is spent": (ev.SettingsChanged(OFF, Budget(attempts=0)),),
    "it is to be tried later": (
        ev.TaskSettled("a", B, "", BlockReason.PAUSED),
        ev.TaskRequeued("a", "", not_before=9.0),
    ),
    "it is DONE already": (
        ev.AttemptStarted("a", 1, "t", "", "", "log", worker="me"),
        ev.VerifyFinished("a", 1, True, "log", 0.0, ()),
        ev.TaskSettled("a", D, ""),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_offered_when(case: str) -> None:
    """W03 G04 T20: the rules of a start."""
    run = SessionRun(handed("a"), OFF).begin()
    assert offer(run.state, 5.0) == "a"
    assert offer(held(run, *REFUSED[case]), 5.0) is None


def test_only_and_max_tasks_hold_for_sessions_too() -> None:
    """T04: and a run that is limited to what is done ends."""
    run = SessionRun(handed("a", "b"), OFF).begin(only=("b",))
    assert run.ask() == "b" and offer(run.state, 0.0) is None
    run.finish("b")
    assert isinstance(decide(run.state, 0.0)[0], Finish)


def test_a_resting_account_does_not_keep_a_task_from_a_session_that_pays_for_itself() -> None:
    """W03 G04: agents of the account wait, the session works."""
    run = SessionRun(handed("a", a="worker"), OFF).begin()
    run.record(ev.AccountPaused("", 100.0, "quota"))
    assert decide(run.state, 0.0) == [Wait(100.0)] and offer(run.state, 0.0) == "a"


def test_a_session_is_not_counted_to_its_roles_account() -> None:
    """G04: a limit of two at once is for two agents."""
    run = SessionRun(handed(*"abc", a="worker", b="worker", c="worker"), OFF).begin()
    run.state.mode = Mode.LOCAL_GIT
    run.record(ev.AccountLimited("", 2, "cut"))
    assert run.ask() == "a" and decide(run.state, 0.0) == [Start("b"), Start("c")]


def test_a_session_that_edits_the_projects_own_folder_has_it_for_itself() -> None:
    """W02: in direct mode nobody is started beside it, and it gets nothing beside others; sessions that only hand in
    what is to be written work side by side."""
    run = SessionRun(handed(*"abcd", a="worker", b="worker"), OFF).begin()
    assert run.ask(("worker",)) == "a"
    assert decide(run.state, 0.0) == [] and offer(run.state, 0.0) is None
    beside = SessionRun(handed(*"abcd", a="worker", b="worker"), OFF).begin()
    assert beside.ask(("handed",), "ada") == "c" and beside.ask(("handed",), "bob") == "d"
    assert offer(beside.state, 0.0, ("worker",)) is None and Start("a") in decide(beside.state, 0.0)


def test_a_task_of_a_role_nobody_starts_is_not_waited_for_behind_an_account() -> None:
    """W03 G04: its time is its own."""
    run = SessionRun(handed("a"), OFF).begin()
    run.record(ev.AccountPaused("", 100.0, "quota"))
    assert starts_after(run.state, "a", 0.0) == 0.0 and decide(run.state, 0.0) == [Wait(3600.0)]


@pytest.mark.parametrize(
    ("default", "deadline", "status", "waits"),
    [("yes", 50.0, B, True), ("", 50.0, B, False), ("yes", 0.0, B, False), ("yes", 50.0, D, False)],
)
def test_a_run_waits_for_a_question_that_answers_itself(
    default: str, deadline: float, status: TaskStatus, waits: bool
) -> None:
    """Z06: a default with a deadline brings the task back; anything else needs a person, who may come later."""
    run = SessionRun(handed("a", a="worker"), OFF).begin()
    run.start("a")
    run.record(ev.QuestionAsked("q-1", "a", "ambiguous_spec", "which?", default=default, deadline=deadline))
    if status is D:
        run.finish("a")
    else:
        run.record(ev.TaskSettled("a", B, "", BlockReason.EXTERNAL))
    (decision,) = decide(run.state, 10.0)
    assert isinstance(decision, Wait if waits else Finish)
    assert not isinstance(decision, Wait) or decision.until > deadline
    assert isinstance(decide(run.state, 1000.0)[0], Finish)


def test_a_retry_whose_time_has_come_does_not_wait_for_another_task_to_end() -> None:
    """D12: while something runs the lead still wakes for what only waits for time."""
    run = SessionRun(handed("a", "b", a="worker", b="worker"), OFF).begin()
    run.carry_out(decide(run.state, 0.0))
    run.record(ev.TaskRequeued("b", "later", not_before=30.0))
    assert decide(run.state, 0.0) == [Wait(30.0)] and decide(run.state, 30.0) == [Start("b")]


def test_the_yard_notices_a_run_that_does_not_wait_for_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """W03: a planted bug: nobody is expected to ask."""
    monkeypatch.setattr(windows, "_a_session_may_ask", lambda *_: False)
    with pytest.raises(AssertionError, match="something can still happen"):
        SessionRun(handed("a", "b"), OFF, random.Random(1)).begin().run()


def test_the_yard_notices_an_agent_started_for_a_task_that_is_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """W03: a planted bug: the role is not looked at."""
    monkeypatch.setattr(choosing.Choice, "_is_meant", lambda *_: True)
    monkeypatch.setattr(windows, "_no_account_is_free", lambda *_: False)
    with pytest.raises(AssertionError, match="only a session that asks"):
        SessionRun(handed("a", "b"), OFF).begin().run()

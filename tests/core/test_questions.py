"""What becomes of a question nobody answers: its default, or a reminder that comes ever more rarely."""

from __future__ import annotations

import pytest

from ganger.core import events as ev
from ganger.core.control.questions import BY_DEFAULT, due
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.times import stamp
from ganger.core.vocabulary import BlockReason, HealSchedule, RunStatus, TaskStatus

ASKED = 1_000_000.0
HOUR = 3600.0
OFF = Policy(heal_schedule=HealSchedule.OFF)


class Asking:
    """Tasks a, b (after a) and x; time stands where the last event left it."""

    def __init__(self) -> None:
        specs = (TaskSpec("a"), TaskSpec("b", ("a",)), TaskSpec("x"))
        self.state, self.seq = RunState(), 0
        self.record(ev.RunStarted("r", "digest", OFF, specs), ev.LeadStarted(1, policy=OFF))

    def record(self, *events: ev.Event, at: float = ASKED) -> None:
        for event in events:
            self.seq += 1
            apply(self.state, ev.Recorded(self.seq, stamp(at), event))
        assert self.state.log.refused == []

    def start(self, *names: str) -> None:
        for name in names:
            number = self.state.tasks[name].attempts + 1
            self.record(ev.AttemptStarted(name, number, f"{name}.{number}", "agent", "", "log"))

    def escalate(self, name: str) -> None:
        self.start(name)
        self.record(ev.TaskSettled(name, TaskStatus.ESCALATED, "it asked"))

    def ask(
        self, number: int, task: str, default: str = "", deadline: float = 0.0, options: tuple[str, ...] = ()
    ) -> None:
        attempt = self.state.tasks[task].attempts if task else 0
        kind, text = "ambiguous_spec", "Which?"
        self.record(
            ev.QuestionAsked(
                f"q-{number}", task, kind, text, attempt, options=options, default=default, deadline=deadline
            )
        )

    def pass_time(self, now: float, remind_sec: float = HOUR) -> list[ev.Event]:
        events = due(self.state, now, remind_sec)
        self.record(*events, at=now)
        return events


@pytest.mark.parametrize(("late", "status"), [(-1.0, TaskStatus.ESCALATED), (0.0, TaskStatus.PENDING)])
def test_a_default_counts_once_its_time_is_past_and_not_before(late: float, status: TaskStatus) -> None:
    """Z06: as if a person had said it; the text says that nobody did."""
    run = Asking()
    run.escalate("a")
    run.record(ev.TaskSettled("b", TaskStatus.BLOCKED, "waits", BlockReason.DEPENDENCY_FAILED))
    run.ask(1, "a", "port 8080", ASKED + 60)
    run.pass_time(ASKED + 60 + late)
    assert run.state.tasks["a"].status is status
    assert run.state.tasks["a"].next_start.hints == ((f"port 8080 {BY_DEFAULT}",) if late >= 0 else ())
    assert (run.state.tasks["b"].status is TaskStatus.PENDING) is (late >= 0)


def test_a_worker_that_waits_is_told_the_default() -> None:
    """Z06: the attempt goes on."""
    run = Asking()
    run.start("a")
    run.ask(1, "a", "2", ASKED + 60, options=("left", "right"))
    run.pass_time(ASKED + 61)
    worker = run.state.tasks["a"].worker
    assert worker is not None and [m.text for m in worker.messages] == [f"right {BY_DEFAULT}"]
    assert run.state.inbox.questions["q-1"].answer == f"right {BY_DEFAULT}"


def test_defaults_due_at_one_moment_all_count_and_every_event_fits() -> None:
    """Z06: two questions of one task, one of another, one of a task that runs, one that is DONE."""
    run = Asking()
    for name in ("a", "x"):
        run.escalate(name)
    run.record(ev.TaskSettled("b", TaskStatus.BLOCKED, "waits", BlockReason.DEPENDENCY_FAILED))
    for number, name in enumerate(("a", "a", "x", ""), 1):
        run.ask(number, name, "yes", ASKED + 1)
    for _ in range(3):
        run.pass_time(ASKED + 2)
    assert all(question.answer == f"yes {BY_DEFAULT}" for question in run.state.inbox.questions.values())
    assert {task.status for task in run.state.tasks.values()} == {TaskStatus.PENDING}
    assert run.state.tasks["a"].counters.granted_by_person == 0


def test_a_default_without_a_deadline_never_counts_by_itself() -> None:
    """Z06: nor does a deadline without a default."""
    run = Asking()
    run.ask(1, "a", "yes")
    run.ask(2, "x", "", ASKED + 1)
    assert run.pass_time(ASKED + 10**6, remind_sec=0) == []


def test_reminders_come_ever_more_rarely_until_it_is_answered() -> None:
    """Z06: after one hour, two more, four more."""
    run = Asking()
    run.escalate("a")
    run.ask(1, "a")
    hours = [n for n in range(1, 20) if run.pass_time(ASKED + n * HOUR)]
    assert hours == [1, 3, 7, 15] and run.state.inbox.questions["q-1"].raised == 4
    run.record(ev.QuestionAnswered("q-1", "so"))
    assert run.pass_time(ASKED + 1000 * HOUR) == []


def test_a_question_is_not_raised_in_the_moment_it_is_closed() -> None:
    """Z06: the other question of the task is closed by the default."""
    run = Asking()
    run.escalate("a")
    run.ask(1, "a")
    run.ask(2, "a", "yes", ASKED + 1)
    kinds = [ev.type_name(event) for event in run.pass_time(ASKED + 5 * HOUR)]
    assert kinds == ["question_answered", "question_answered", "task_requeued"]


def test_a_run_that_has_ended_answers_nothing() -> None:
    """Z06: the next lead does."""
    run = Asking()
    run.ask(1, "a", "yes", ASKED + 1)
    run.record(ev.RunFinished(RunStatus.RUNNING, None, {}))
    assert run.pass_time(ASKED + HOUR) == []


def test_a_default_answers_the_same_question_once() -> None:
    """Z06 D12: who asks it again is not started again and again by its own default: a person looks."""
    run = Asking()
    run.escalate("a")
    run.ask(1, "a", "yes", ASKED + 1)
    run.pass_time(ASKED + 2)
    run.escalate("a")
    run.ask(2, "a", "yes", ASKED + 3)
    assert [type(event) for event in run.pass_time(ASKED + 2 * HOUR)] == [ev.QuestionRaised]
    assert run.state.tasks["a"].status is TaskStatus.ESCALATED and run.state.inbox.questions["q-2"].answer is None


def test_a_question_that_its_task_did_without_is_closed() -> None:
    """Z06: nobody is asked, or reminded, for the sake of what is DONE."""
    run = Asking()
    run.start("x")
    run.ask(1, "x")
    run.record(ev.VerifyFinished("x", 1, True, "log", 0.0, ()), ev.TaskSettled("x", TaskStatus.DONE, "done"))
    assert [type(event) for event in run.pass_time(ASKED + HOUR)] == [ev.QuestionAnswered]
    assert run.state.inbox.questions["q-1"].answer == "not needed: its task is DONE"

"""State changes only through events that fit; everything else is refused and kept."""

from __future__ import annotations

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, Phase, TaskStatus
from tests.core.run_model import Model

D, P, R = TaskStatus.DONE, TaskStatus.PENDING, TaskStatus.RUNNING
OFF = Policy(heal_schedule=HealSchedule.OFF)


def begun(*specs: TaskSpec, policy: Policy = OFF) -> Model:
    return Model(specs or (TaskSpec("a"), TaskSpec("b", ("a",))), policy, fail_rate=0).begin()


def started(name: str, number: int = 1) -> ev.AttemptStarted:
    return ev.AttemptStarted(name, number, f"token-{number}", "agent", "", f"logs/{name}.worker.{number}.log")


def refusal(model: Model, event: ev.Event) -> str:
    """Applies an event that must change nothing, and gives the words it was refused with."""
    before = dict(model.state.tasks), model.state.windows.current, model.state.policy
    apply(model.state, ev.Recorded(999, "", event))
    assert before == (dict(model.state.tasks), model.state.windows.current, model.state.policy)
    assert model.state.log.refused, "it was accepted"
    return model.state.log.refused.pop()


def test_done_needs_a_passed_verification_of_this_very_attempt() -> None:
    """T17 T05: neither a worker's word nor an older verdict makes a task DONE."""
    model = begun()
    model.record(started("a"))
    assert "without passed verification" in refusal(model, ev.TaskSettled("a", D, "trust me"))
    model.record(ev.VerifyFinished("a", 1, True, "log", 0.0, ()), ev.AttemptInterrupted("a", 1, "stop"))
    assert "without passed verification" in refusal(model, ev.TaskSettled("a", D, "verified before"))
    model.record(started("a", 2))
    assert "without passed verification" in refusal(model, ev.TaskSettled("a", D, "verified before"))


def test_a_failed_verification_makes_nothing_done() -> None:
    """T17: the verdict itself must have passed."""
    model = begun()
    model.record(started("a"), ev.VerifyFinished("a", 1, False, "log", 0.0, ()))
    assert "without passed verification" in refusal(model, ev.TaskSettled("a", D, ""))


def test_a_task_done_once_cannot_be_done_again_without_new_work() -> None:
    """T17 T20: queued again, it must be verified again."""
    model = begun()
    model.record(started("a"))
    model.finish("a")
    model.record(ev.TaskRequeued("a", "its prompt changed"))
    assert "without passed verification" in refusal(model, ev.TaskSettled("a", D, ""))


def test_a_task_cannot_start_before_its_dependencies_are_done() -> None:
    """T03: the claim itself is refused."""
    assert "a dependency is not DONE" in refusal(begun(), started("b"))


ATTEMPT_EVENTS = [
    ev.AttemptLaunched("a", 1, 2, 3),
    ev.AttemptExited("a", 1, 0, None, False, 1.0),
    ev.ResultAccepted("a", 1, "DONE", "did it"),
    ev.ResultRefused("a", 1, "NO_SENTINEL", "none"),
    ev.WritesIntended("a", 1, "backups/a.1", ("x",)),
    ev.WritesApplied("a", 1),
    ev.WritesRolledBack("a", 1, "why", "log"),
    ev.VerifyStarted("a", 1, "log"),
    ev.VerifyFinished("a", 1, True, "log", 0.0, ()),
    ev.AttemptFailed("a", 1, "crash", "crash:x", "x", "respawns"),
    ev.AttemptInterrupted("a", 1, "stop"),
]


@pytest.mark.parametrize("event", ATTEMPT_EVENTS, ids=ev.type_name)
def test_a_report_of_an_older_attempt_changes_nothing(event: ev.Event) -> None:
    """T05 W03: what a worker thought dead reports later is refused and recorded."""
    model = begun()
    model.record(started("a"), ev.AttemptInterrupted("a", 1, "died"), started("a", 2))
    assert "attempt 1 is not the current one (2)" in refusal(model, event)


@pytest.mark.parametrize("event", ATTEMPT_EVENTS, ids=ev.type_name)
def test_a_report_for_a_task_that_does_not_run_changes_nothing(event: ev.Event) -> None:
    """T05: PENDING has no attempt to report."""
    assert "not possible while PENDING" in refusal(begun(), event)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (started("ghost"), "no such task"),
        (started("a", 2), "does not follow"),
        (ev.TaskRequeued("a", "why"), "not possible while PENDING"),
        (ev.TaskSettled("a", R, ""), "RUNNING settles nothing"),
        (ev.TaskSettled("a", P, ""), "PENDING settles nothing"),
        (ev.RunStarted("again", "d", OFF, ()), "begun already"),
        (ev.WindowClosed(1, 0, 0, 0, 0.0, 1), "not open"),
        (ev.WindowOpened(1, 1, ("ghost",)), "does not exist"),
    ],
    ids=lambda value: value if isinstance(value, str) else ev.type_name(value),
)
def test_an_event_that_makes_no_sense_is_refused_and_kept(event: ev.Event, words: str) -> None:
    """T05: nothing raises, nothing moves."""
    assert words in refusal(begun(), event)


def test_two_windows_are_never_open_at_once() -> None:
    """T04: the second is refused."""
    model = begun(policy=Policy())
    model.record(ev.WindowOpened(1, 1, ("a",)))
    assert "window 1 is still open" in refusal(model, ev.WindowOpened(2, 1, ("a",)))


def test_an_unknown_counter_is_refused() -> None:
    """T13: a journal from elsewhere cannot reach into the state."""
    model = begun()
    model.record(started("a"))
    assert "no counter" in refusal(model, ev.AttemptFailed("a", 1, "crash", "s", "d", "token"))


def test_nothing_happens_before_a_run_has_begun() -> None:
    """T05: a journal without its first event is harmless."""
    state = RunState()
    for event in (ev.LeadStarted(1, policy=OFF), ev.StopRequested("x"), started("a")):
        apply(state, ev.Recorded(1, "", event))
    assert len(state.log.refused) == 3 and not state.lead.stopping


TASK_EVENTS = [kind for kind in ev.EVENT_TYPES.values() if issubclass(kind, ev.TaskEvent)]


@pytest.mark.parametrize("kind", TASK_EVENTS, ids=lambda kind: kind.__name__)
def test_the_table_names_a_target_for_each_pair_and_no_pair_twice(kind: type[ev.TaskEvent]) -> None:
    """Z10: DONE is never a starting point for work, and only TaskSettled leaves the target open."""
    for status, target in kind.fits.items():
        assert status in TaskStatus and (target is None) == (kind is ev.TaskSettled)


def test_each_attempt_leaves_its_lines_in_the_history() -> None:
    """T19: worker, verify and rollback, with class and signature on the failed ones."""
    model = begun()
    model.record(started("a"), ev.AttemptExited("a", 1, 0, None, False, 1.5), ev.VerifyStarted("a", 1, "v.log"))
    model.record(ev.VerifyFinished("a", 1, False, "v.log", 0.5, ()), ev.WritesRolledBack("a", 1, "why", "v.log"))
    model.fail("a", FailureClass.TEST_ERROR)
    lines = [(i.phase, i.failure_class, i.verify_log_path) for i in model.state.tasks["a"].history]
    assert lines == [
        (Phase.WORKER, "test_error", "v.log"),
        (Phase.VERIFY, "test_error", "v.log"),
        (Phase.ROLLBACK, None, None),
    ]


def test_an_interrupted_attempt_pays_nothing_but_keeps_its_number() -> None:
    """T20 T23: the next attempt has its own log."""
    model = begun()
    model.record(started("a"), ev.AttemptInterrupted("a", 1, "stop"))
    task = model.state.tasks["a"]
    assert (task.status, task.attempts, task.counters.worker_attempts) == (P, 1, 0)


def test_a_block_reason_stands_only_beside_blocked() -> None:
    """Z10: a task that fails for good has none."""
    model = begun()
    model.record(started("a"), ev.TaskSettled("a", TaskStatus.FAILED, "", BlockReason.EXTERNAL))
    assert model.state.tasks["a"].block_reason is None


def test_a_changed_schedule_starts_with_its_own_window_size() -> None:
    """T10: from off to auto begins at 1, a changed batch size counts at once."""
    model = begun(*(TaskSpec(f"t{n}") for n in range(9)))
    assert model.state.windows.batch_size == 9
    for policy, size in ((Policy(), 1), (Policy(heal_schedule=HealSchedule.BATCH, batch_size=4), 4)):
        model.record(ev.LeadStarted(2, policy=policy))
        assert model.state.windows.batch_size == size

"""Runs driven by chance: what holds for every graph, schedule, outcome and interruption."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings, strategies as st

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.scheduling.windows import decide
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, RunStatus, TaskStatus
from tests.core.run_model import Model, check_indexes, picture, random_specs, replayed

schedules = st.sampled_from(HealSchedule)
D, B, F, P = TaskStatus.DONE, TaskStatus.BLOCKED, TaskStatus.FAILED, TaskStatus.PENDING


@st.composite
def models(draw: st.DrawFn) -> Model:
    chance = random.Random(draw(st.integers(0, 2**32)))
    policy = Policy(
        heal_schedule=draw(schedules),
        concurrency=draw(st.integers(1, 5)),
        batch_size=draw(st.integers(1, 4)),
        failure_threshold=draw(st.sampled_from((0.0, 0.2, 1.0))),
    )
    specs = random_specs(chance, draw(st.integers(1, 14)))
    return Model(specs, policy, chance, fail_rate=draw(st.sampled_from((0.0, 0.3, 0.9))))


@given(models())
@settings(max_examples=100)
def test_every_run_ends_and_says_completed_exactly_when_every_task_is_done(model: Model) -> None:
    """T03 T04 T22: and on the way one attempt per task, concurrency kept, windows apart, indexes true."""
    model.begin().run()
    statuses = {task.status for task in model.state.tasks.values()}
    assert (model.state.status is RunStatus.COMPLETED) == (statuses == {D})
    assert model.most_running <= model.policy.concurrency
    assert model.state.log.refused == []
    assert model.state.finished and not statuses & {P, TaskStatus.RUNNING}


@given(models())
def test_replaying_the_events_gives_the_same_state(model: Model) -> None:
    """T19 T20: the events alone are the truth."""
    model.begin().run()
    assert picture(replayed(model.events)) == picture(model.state)


@given(models())
def test_behind_a_task_that_ended_badly_everything_is_blocked(model: Model) -> None:
    """T03: BLOCKED(dependency_failed), and nothing else is."""
    state = model.begin().run().state
    for name, spec in state.specs.items():
        bad = any(state.tasks[need].status is not D for need in spec.depends_on)
        assert (state.tasks[name].block_reason is BlockReason.DEPENDENCY_FAILED) == bad


@given(models(), st.integers(1, 25), schedules, st.integers(1, 3))
@settings(max_examples=100)
def test_a_run_stopped_anywhere_can_be_continued_under_another_policy(
    model: Model, after: int, schedule: HealSchedule, attempts: int
) -> None:
    """T20 T23: interruption costs no counter, and the continued run ends as any other."""
    model.begin()
    for _ in range(after):
        model.step()
    before = {name: task.counters.worker_attempts for name, task in model.state.tasks.items()}
    model.record(ev.StopRequested("signal"))
    interrupted = set(model.state.index.running)
    model.interrupt_all()
    model.run()
    assert all(model.state.tasks[n].counters.worker_attempts == before[n] - 1 for n in interrupted)
    if finished := [name for name, task in model.state.tasks.items() if task.status is D]:
        model.record(ev.TaskRequeued(model.chance.choice(finished), "its prompt changed"))
    model.policy = Policy(heal_schedule=schedule, concurrency=attempts, max_worker_attempts_per_task=attempts)
    model.begin().run()
    assert model.state.finished and not model.state.index.counts[P] and model.state.log.refused == []


@given(models(), st.integers(1, 5))
def test_max_tasks_starts_no_more_than_it_says(model: Model, most: int) -> None:
    """T04: attempts of the same task do not count twice; the run stays open."""
    state = model.begin(max_tasks=most).run().state
    started = {e.event.task for e in model.events if isinstance(e.event, ev.AttemptStarted)}
    assert len(started) <= most
    assert state.status is not RunStatus.COMPLETED or state.index.counts[D] == len(state.specs)
    assert not state.index.counts[P] or state.status is RunStatus.RUNNING


@given(models(), st.data())
def test_only_starts_nothing_else(model: Model, data: st.DataObject) -> None:
    """T04: tasks outside the choice stay as they are."""
    names = data.draw(st.sets(st.sampled_from([spec.id for spec in model.specs])))
    model.begin(only=tuple(names)).run()
    started = {e.event.task for e in model.events if isinstance(e.event, ev.AttemptStarted)}
    assert started <= names


def test_a_scope_that_leaves_work_over_ends_the_lead_but_not_the_run() -> None:
    """T20: RUNNING, with a reason, so that it can be continued."""
    model = Model((TaskSpec("a"), TaskSpec("b")), Policy(), fail_rate=0).begin(only=("b",)).run()
    assert model.state.status is RunStatus.RUNNING and model.state.finished
    assert model.begin().run().state.status is RunStatus.COMPLETED


def test_two_tasks_that_write_one_file_take_turns() -> None:
    """Z08: never at the same time, whatever the concurrency."""
    specs = (TaskSpec("a", writes=("f",)), TaskSpec("b", writes=("f",)), TaskSpec("c"))
    model = Model(specs, Policy(heal_schedule=HealSchedule.OFF, concurrency=3), fail_rate=0).begin()
    model.carry_out(decide(model.state, 0.0))
    assert model.state.index.running == {"a", "c"}
    model.finish("a")
    model.carry_out(decide(model.state, 0.0))
    assert model.state.index.running == {"b", "c"}


def windows_of(model: Model) -> list[tuple[str, ...]]:
    return [entry.event.tasks for entry in model.events if isinstance(entry.event, ev.WindowOpened)]


def tasks(count: int) -> tuple[TaskSpec, ...]:
    return tuple(TaskSpec(f"t{n:02}") for n in range(count))


def test_auto_grows_along_fibonacci_while_all_is_clean() -> None:
    """T10 T12: 1 2 3 5 8 and the rest."""
    model = Model(tasks(20), Policy(), fail_rate=0).begin().run()
    assert [len(window) for window in windows_of(model)] == [1, 2, 3, 5, 8, 1]


@pytest.mark.parametrize(
    ("schedule", "sizes"),
    [(HealSchedule.TASK, [1] * 7), (HealSchedule.BATCH, [5, 2]), (HealSchedule.EPOCH, [7]), (HealSchedule.OFF, [])],
)
def test_fixed_schedules_keep_their_size(schedule: HealSchedule, sizes: list[int]) -> None:
    """T10: task 1, batch 5, epoch everything, off no windows."""
    model = Model(tasks(7), Policy(heal_schedule=schedule), fail_rate=0).begin().run()
    assert [len(window) for window in windows_of(model)] == sizes


def test_an_epoch_takes_tasks_as_they_become_ready() -> None:
    """T04 T10: a chain runs through inside one window."""
    specs = (TaskSpec("c", ("b",)), TaskSpec("b", ("a",)), TaskSpec("a"))
    model = Model(specs, Policy(heal_schedule=HealSchedule.EPOCH), fail_rate=0).begin().run()
    assert windows_of(model) == [("a", "b", "c")] and model.state.status is RunStatus.COMPLETED


def test_a_bad_window_shrinks_the_next_one_and_a_shaky_one_keeps_it() -> None:
    """T11 T12: rate above the threshold, one level smaller; 1 stays 1."""
    model = Model(tasks(6), Policy(concurrency=9), fail_rate=0).begin()
    for _ in range(2):
        model.carry_out(decide(model.state, 0.0))
        model.carry_out(decide(model.state, 0.0))
        for name in sorted(model.state.index.running):
            model.finish(name)
        model.carry_out(decide(model.state, 0.0))
    assert model.state.windows.batch_size == 3
    model.carry_out(decide(model.state, 0.0))
    model.carry_out(decide(model.state, 0.0))
    for name in sorted(model.state.index.running):
        model.fail(name, FailureClass.TEST_ERROR)
    model.carry_out(decide(model.state, 0.0))
    assert model.state.windows.batch_size == 2


def test_a_failed_task_with_attempts_left_waits_for_its_window_to_close() -> None:
    """T04 T13: it is tried again in a later window, not inside this one."""
    model = Model(tasks(1), Policy(), fail_rate=0).begin()
    model.carry_out(decide(model.state, 0.0))
    model.carry_out(decide(model.state, 0.0))
    model.fail("t00", FailureClass.TEST_ERROR)
    assert model.state.tasks["t00"].status is F and not model.state.tasks["t00"].final
    model.run()
    assert windows_of(model) == [("t00",), ("t00",)] and model.state.status is RunStatus.COMPLETED


def test_a_blocked_task_never_stops_independent_ones() -> None:
    """T22: the others go on to DONE, and the reason names who needs what."""
    model = Model((TaskSpec("a"), TaskSpec("b"), TaskSpec("c", ("a",))), Policy(), fail_rate=0).begin()
    model.carry_out(decide(model.state, 0.0))
    model.carry_out(decide(model.state, 0.0))
    model.fail("a", FailureClass.BLOCKED_EXTERNAL)
    model.run()
    assert [model.state.tasks[n].status for n in "abc"] == [B, D, B]
    assert model.state.abort_reason == (
        "2 of 3 tasks are not done: a BLOCKED (external), c BLOCKED (dependency_failed)"
    )


def test_the_model_notices_an_index_that_was_not_kept() -> None:
    """T03: the naive recount catches a planted bug."""
    model = Model(tasks(2), Policy(heal_schedule=HealSchedule.OFF), fail_rate=0).begin()
    model.state.index.unmet["t01"] = 1
    with pytest.raises(AssertionError):
        check_indexes(model.state)


def seconds_for(count: int, schedule: HealSchedule) -> float:
    model = Model(tasks(count), Policy(heal_schedule=schedule, concurrency=8), fail_rate=0, checked=False)
    began = time.process_time()
    assert model.begin().run(most_steps=10 * count).state.status is RunStatus.COMPLETED
    return time.process_time() - began


@pytest.mark.brief(1)
@pytest.mark.parametrize("schedule", [HealSchedule.AUTO, HealSchedule.EPOCH, HealSchedule.OFF])
def test_no_step_of_a_run_looks_at_every_task(schedule: HealSchedule) -> None:
    """T19: eight times the tasks cost about eight times the time, not sixty-four."""
    small = min(seconds_for(500, schedule) for _ in range(2))
    assert seconds_for(4000, schedule) < small * 8 * 3

"""Which tasks come back when a run is taken up again."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.scheduling.resume import taken_up
from ganger.core.scheduling.windows import decide
from ganger.core.vocabulary import BlockReason, FailureClass, HealSchedule, TaskStatus
from tests.core.run_model import Model

OFF = Policy(heal_schedule=HealSchedule.OFF)
CHAIN = (TaskSpec("a"), TaskSpec("b", ("a",)), TaskSpec("c", ("b",)), TaskSpec("x"))


def ended(cls: FailureClass, policy: Policy = OFF, times: int = 1) -> Model:
    """A chain whose first task failed that way, taken to its end."""
    model = Model(CHAIN, policy, fail_rate=0).begin()
    for _ in range(times):
        while "a" not in model.state.index.running:
            model.carry_out(decide(model.state, 0.0))
        model.fail("a", cls)
    return model.run()


def words(events: list[ev.Event]) -> list[tuple[str, str]]:
    return [(getattr(event, "task", ""), getattr(event, "why", getattr(event, "status", ""))) for event in events]


def test_a_blocked_task_comes_back_with_all_that_waited_for_it() -> None:
    """T20: nearest first, in one pass, however long the chain."""
    model = ended(FailureClass.BLOCKED_EXTERNAL)
    assert [name for name, _ in words(taken_up(model.state))] == ["a", "b", "c"]
    assert model.begin().run().state.index.counts[TaskStatus.DONE] == 4


def test_a_task_without_attempts_left_stays_failed_and_so_does_its_chain() -> None:
    """T13 T20: nothing is recorded, nothing is run."""
    model = ended(FailureClass.TEST_ERROR, times=2)
    assert taken_up(model.state) == []


def test_more_attempts_allowed_bring_it_back() -> None:
    """T20: by the policy of the new lead."""
    model = ended(FailureClass.TEST_ERROR, times=2)
    model.policy = Policy(heal_schedule=HealSchedule.OFF, max_worker_attempts_per_task=3)
    assert model.begin().run().state.index.counts[TaskStatus.DONE] == 4


def test_escalated_tasks_are_not_retried_by_themselves() -> None:
    """T20: nor what waits for them."""
    model = ended(FailureClass.TEST_ERROR, times=2)
    model.record(ev.TaskSettled("a", TaskStatus.ESCALATED, "a person must look"))
    assert taken_up(model.state) == []


def test_a_person_who_names_tasks_brings_back_only_those() -> None:
    """T20: the others keep their status."""
    model = ended(FailureClass.BLOCKED_EXTERNAL)
    model.begin(only=("x",))
    assert model.state.tasks["a"].block_reason is BlockReason.EXTERNAL


def test_a_failure_that_waited_for_a_window_of_another_schedule_is_judged_at_once() -> None:
    """T20: given up with all that depends on it when fewer attempts are allowed now."""
    model = Model(CHAIN, Policy(), fail_rate=0).begin()
    model.carry_out(decide(model.state, 0.0))
    model.carry_out(decide(model.state, 0.0))
    model.fail("a", FailureClass.TEST_ERROR)
    model.record(ev.StopRequested("signal"))
    model.run()
    model.policy = Policy(heal_schedule=HealSchedule.OFF, max_worker_attempts_per_task=1)
    model.begin().run()
    statuses = [model.state.tasks[name].status.value for name in "abcx"]
    assert statuses == ["FAILED", "BLOCKED", "BLOCKED", "DONE"] and model.state.tasks["a"].final


def test_a_failure_in_a_window_that_is_still_open_waits_for_its_end() -> None:
    """T04 T20: it is not run again inside the window it failed in."""
    model = Model(CHAIN, Policy(heal_schedule=HealSchedule.EPOCH), fail_rate=0).begin()
    model.carry_out(decide(model.state, 0.0))
    model.carry_out(decide(model.state, 0.0))
    model.fail("a", FailureClass.TEST_ERROR)
    model.record(ev.StopRequested("signal"))
    model.run()
    assert taken_up(model.state) == []
    assert model.begin().run().state.index.counts[TaskStatus.DONE] == 4

"""Repositories whose red was brought in by a task that the manifest does not have any more."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.model.ledger import RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.planning.repos import why_not
from ganger.core.scheduling.windows import decide
from ganger.core.state.apply import apply
from ganger.core.vocabulary import HealSchedule, Mode

RULES = (RepoRules("lib", locks="exclusive"), RepoRules("app", ("lib",), "exclusive"))
KEPT = TaskSpec("use", repo="app")


def test_a_repository_stays_red_and_the_run_goes_on_without_the_task_that_broke_it() -> None:
    """D13: who builds on it is told what to do, and nothing falls over."""
    policy, state = Policy(heal_schedule=HealSchedule.OFF), RunState()
    happened: tuple[ev.Event, ...] = (
        ev.RunStarted("r", "one", policy, (TaskSpec("break", repo="lib"), KEPT)),
        ev.LeadStarted(1, policy=policy, repos=RULES, mode=Mode.LOCAL_GIT),
        ev.ChainPaused("lib", "break", "a" * 40, "red", ("app",)),
        ev.Reconciled("two", (KEPT,), ("",), removed=("break",)),
    )
    for number, event in enumerate(happened, start=1):
        apply(state, ev.Recorded(number, "2026-01-01T00:00:00Z", event))
    assert state.log.refused == [] and [type(one).__name__ for one in decide(state, 0.0)] == ["Finish"]
    assert "break turned red" in why_not(state, "use")

"""What the options of a question about a red branch do, and what may not be said of a revert."""

from __future__ import annotations

from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.control.answers import given
from ganger.core.control.revert_offers import BY_WORKER, LEAVE, REVERT_IT, TRY_AGAIN, options_after
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import TaskStatus
from ganger.views.run.why import why
from tests.core.test_golden_journals import told


def asked() -> tuple[RunState, str]:
    """As it stands when the person is asked: `a` keeps the branch red, `t1` waits for it and `t2` needs it."""
    state = RunState()
    for row in told("journal-reverts"):
        if isinstance(row.event, ev.RunFinished):
            break
        apply(state, row)
    return state, next(q.id for q in state.inbox.questions.values() if q.options)


def answered(text: str) -> tuple[RunState, Any]:
    state, question = asked()
    effect = given(state, state.inbox.questions[question], text, 0.0)
    for number, event in enumerate(effect.events, start=state.log.last_seq + 1):
        apply(state, ev.Recorded(number, state.log.last_at, event))
    assert state.log.refused == []
    return state, effect


def test_a_revert_takes_up_the_task_and_whoever_waits_for_its_branch_but_not_what_needs_it() -> None:
    """D06: no attempt is granted, and every question about it is closed."""
    state, effect = answered(REVERT_IT)
    status = {name: task.status for name, task in state.tasks.items()}
    assert status["a"] is TaskStatus.PENDING and status["t2"] is TaskStatus.BLOCKED
    assert "a" in state.index.answered and state.tasks["a"].counters.granted_by_person == 0
    assert (
        all(q.answer for q in state.inbox.questions.values() if q.task == "a") and "without a worker" in effect.outcome
    )


def test_to_try_again_grants_fixes_and_to_leave_it_changes_nothing_else() -> None:
    """D06: as ganger retry, and as no answer at all."""
    state, _ = answered(TRY_AGAIN)
    assert state.tasks["a"].status is TaskStatus.PENDING and state.tasks["a"].counters.ci_fixes == 0
    state, _ = answered(LEAVE)
    assert state.tasks["a"].status is TaskStatus.ESCALATED and all(q.answer for q in state.inbox.questions.values())


def test_other_words_go_to_the_worker_as_a_hint() -> None:
    """D06: a person is not bound to the options."""
    state, _ = answered("look at the port")
    assert (
        state.tasks["a"].next_start.hints[-1:] == ("look at the port",)
        and state.tasks["a"].status is TaskStatus.PENDING
    )


@pytest.mark.parametrize("event", [ev.RevertFailed("a", 2, "no"), ev.Reverted("a", 2, "1" * 40)])
def test_nothing_is_said_of_a_revert_that_nobody_chose(event: ev.Event) -> None:
    """D06: neither that it failed nor that it is proved."""
    state, _ = asked()
    apply(state, ev.Recorded(state.log.last_seq + 1, state.log.last_at, event))
    assert len(state.log.refused) == 1


def test_a_task_reverted_once_cannot_be_reverted_again_and_says_what_happened() -> None:
    """D06: there is nothing of it in the branch any more."""
    state = RunState()
    for row in told("journal-reverts"):
        apply(state, row)
    assert options_after(state, "a") == (TRY_AGAIN, LEAVE) and BY_WORKER not in options_after(state, "a")
    assert "reverted as" in str(why(state, "a")) and "ganger retry a" in str(why(state, "a"))

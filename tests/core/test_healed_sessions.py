"""A session goes on only by the words it was given: what a healer changes in prompt or context begins it afresh."""

from __future__ import annotations

import pytest

from ganger.core import events as ev
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import TaskStatus

AT = "2026-01-01T00:00:00.000000Z"


def failed(*more: ev.Event) -> RunState:
    """Task a failed its check in session s-1, which was to go on; a healer is at work."""
    state = RunState()
    events = (
        ev.RunStarted("r", "digest", Policy(), (TaskSpec("a", prompt_ref="a.md"),)),
        ev.LeadStarted(1, policy=Policy()),
        ev.AttemptStarted("a", 1, "t", "agent", "", "log"),
        ev.AttemptFailed(
            "a", 1, "test_error", "test_error:x", "red", "worker_attempts", "why", resume="s-1", remade=True
        ),
        ev.TaskSettled("a", TaskStatus.FAILED, "red", final=False),
        ev.HealStarted(1, 1, ("a",), ("a",), "healer", "heal.log", "h"),
        *more,
    )
    for number, event in enumerate(events, 1):
        apply(state, ev.Recorded(number, AT, event))
    assert state.log.refused == []
    return state


PATCHES = {
    "task_prompt": (ev.PatchApplied("p-1", 1, "task_prompt", "append", ("a",), path="a.md", task_id="a"), ""),
    "shared_context": (ev.PatchApplied("p-1", 1, "shared_context", "append", ("a",), path="style.md"), ""),
    "contract_hint": (ev.PatchApplied("p-1", 1, "contract_hint", "append", ("a",), file="heal.log#1"), "s-1"),
    "runtime_patch": (ev.PatchApplied("p-1", 1, "runtime_patch", "set", ("a",), timeout_sec=90.0), "s-1"),
}


@pytest.mark.parametrize("target", PATCHES)
def test_a_patch_of_what_a_session_was_told_ends_it(target: str) -> None:
    """G22 T14: prompt and context; a hint and a limit are told or held as the session goes on."""
    patch, session = PATCHES[target]
    assert failed().tasks["a"].next_start.resume_session == "s-1"
    assert failed(patch).tasks["a"].next_start.resume_session == session


def test_a_patch_that_is_undone_ends_the_session_that_was_told_it() -> None:
    """G22 T14: the prompt is another one again."""
    patch, _ = PATCHES["task_prompt"]
    again = ev.AttemptFailed("a", 2, "test_error", "x", "red", "worker_attempts", "why", resume="s-2", remade=True)
    finished = ev.HealFinished(1, "retry", "prompt_gap", "unclear", retry=("a",))
    back = ev.TaskRequeued("a", "healed", granted=1)
    started = ev.AttemptStarted("a", 2, "t2", "agent", "", "log")
    state = failed(patch, finished, back, started, again, ev.PatchUndone("p-1", "by a person"))
    assert state.tasks["a"].next_start.resume_session == ""

"""How a task ends whose change was reverted, with proof."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.delivery.landings import needs_no_request
from ganger.core.model.run_state import RunState
from ganger.core.planning.dependents import blocked_behind
from ganger.core.scheduling.resume import close_questions
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import BlockReason, TaskStatus


def reverted(state: RunState, name: str, proof: str) -> tuple[ev.Event, ...]:
    """It is left out like a task that a person skipped: its repository is unlocked, and its dependents are blocked."""
    task, repo = state.tasks[name], state.specs[name].repo
    assert task.delivery is not None
    commit = task.delivery.commit
    why = f"reverted as {task.delivery.own[:12]}"
    if needs_no_request(rules_of(state, name), task.delivery):
        why = f"already reverted in {task.delivery.branch}, where someone did it by hand"
    freed = [ev.RepoUnlocked(repo, f"{name} is {why}", (name,), lifts=False)] if task.locked else []
    return (
        ev.Reverted(name, task.attempts, commit),
        *close_questions(state, name, why),
        *freed,
        ev.TaskSettled(name, TaskStatus.BLOCKED, f"{why}; {proof}", BlockReason.PAUSED),
        *blocked_behind(state, [name]),
    )

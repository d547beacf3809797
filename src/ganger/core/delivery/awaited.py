"""Which changes only need a person's review or approval, and the sentence about them."""

from __future__ import annotations

from ganger.core.model.ledger import Delivery
from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import BlockReason, TaskStatus

_MOST_NAMED = 5


def awaiting(state: RunState) -> list[str]:
    """In the order of the run. Their reviews may be given here or on the forge."""
    return [
        name
        for name in state.specs
        if state.tasks[name].status is TaskStatus.BLOCKED
        and state.tasks[name].block_reason is BlockReason.AWAITING_REVIEW
    ]


def waits_for_people_alone(state: RunState) -> bool:
    """Whether reviews are all that the open tasks wait for: their own, or that of a task they build on."""
    waiting = set(awaiting(state))
    open_tasks = [name for name in state.specs if state.tasks[name].status is not TaskStatus.DONE]
    return bool(waiting) and all(name in waiting or _builds_on(state, name, waiting) for name in open_tasks)


def _builds_on(state: RunState, name: str, waiting: set[str]) -> bool:
    if state.tasks[name].status is not TaskStatus.PENDING:
        return False
    queue = list(state.specs[name].depends_on)
    for need in queue:
        if need in waiting:
            return True
        if need in state.specs:
            queue += [one for one in state.specs[need].depends_on if one not in queue]
    return False


def awaited_line(state: RunState) -> str:
    """Empty if nothing waits for a review."""
    names = awaiting(state)
    if not names:
        return ""
    shown = [_shown(state, name) for name in names[:_MOST_NAMED]]
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    count = "1 task waits" if len(names) == 1 else f"{len(names)} tasks wait"
    return f"{count} for a review: {', '.join(shown + more)}"


def _shown(state: RunState, name: str) -> str:
    request = (state.tasks[name].delivery or Delivery()).request
    return f"{name} ({request.url})" if request is not None and request.url else name

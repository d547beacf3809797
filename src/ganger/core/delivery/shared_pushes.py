"""Changes that go to the shared branch in one push: which tasks wait for the next one, and whether it may go.

Only one push at a time has no verdict yet. A forge cancels an older run of a branch when something newer is pushed to
it, so changes that are merged meanwhile wait and are pushed together.
"""

from __future__ import annotations

from ganger.core.model.ledger import Delivery
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import BlockReason, TaskStatus

# How CI is run again if the forge cannot do it: with a later tip of the branch; if there is none, an empty commit is
# made.
NEW_TIP = "empty_commit"
# How a run that does not begin is run again: it is canceled, and started again once it has ended.
CANCEL, STUCK = "cancel", "stuck"
# Causes that use up none of a task's `retriggers`: CI gave no verdict through no fault of the task, or the change is
# another one.
MEND, SUPERSEDED = "mend_", "superseded_"
# What blocks every push to the branch: one task asks about it, for all. The first one is in journals of earlier
# versions, about commits that were removed from the branch.
TAKEN_OUT, PUSH_REFUSED, BASE_RED, UNREAD_WORKFLOW = FOR_ALL = (
    *("taken out", "push refused", "base red", "workflow unread"),
)
_GOES_ON = (TaskStatus.PENDING, TaskStatus.RUNNING)


def is_free(cause: str) -> bool:
    return cause.startswith((MEND, SUPERSEDED))


def was_stuck(state: RunState, repo: str, sha: str) -> bool:
    """Whether CI of this tip never started and was canceled for that, whichever task requested it."""
    found = (task.delivery for name, task in state.tasks.items() if state.specs[name].repo == repo)
    return any(now is not None and now.commit == sha and _stopped(now) for now in found)


def _stopped(now: Delivery) -> bool:
    return STUCK in now.retriggered or (now.retrigger is not None and now.retrigger.how == CANCEL)


def needs_tip(now: Delivery) -> bool:
    """Whether CI can judge it only after something newer is pushed."""
    again = now.retrigger
    return now.pushed != now.commit or (again is not None and again.how == NEW_TIP and again.sha == now.commit)


def under_way(state: RunState, repo: str) -> list[str]:
    """Tasks whose pushed tip CI has yet to judge."""
    return [name for name in _delivering(state, repo) if _awaits_verdict(state, name)]


def _awaits_verdict(state: RunState, name: str) -> bool:
    now = _delivery(state, name)
    rules = state.chains.rules.get(state.specs[name].repo)
    follows = rules is not None and rules.follows_ci
    return follows and bool(now.commit) and not needs_tip(now) and not now.needs_no_ci and not now.waits_for


def waiting(state: RunState, repo: str) -> list[str]:
    """Tasks that go with the next push, in the order of their merges."""
    found = [n for n in _delivering(state, repo) if needs_tip(_delivery(state, n)) or _delivery(state, n).waits_for]
    return sorted(found, key=lambda name: (_delivery(state, name).place, state.index.rank[name]))


def culprit(state: RunState, repo: str) -> str:
    """The task whose change keeps the branch red; empty if CI's last verdict on it was green, or the fix waits to be
    pushed."""
    last = next((one for one in reversed(state.pushes.verdicts) if one.repo == repo), None)
    if last is None or last.green or last.task not in state.tasks:
        return ""
    task = state.tasks[last.task]
    now = _delivery(state, last.task)
    mended = task.status is TaskStatus.RUNNING and now.pending and not now.prepares_revert
    return "" if mended or task.status is TaskStatus.DONE or now.commit != last.commit else last.task


def mend(state: RunState, repo: str) -> str:
    """The task whose fix waits to be pushed, if CI's last verdict on the branch was red."""
    last = next((one for one in reversed(state.pushes.verdicts) if one.repo == repo), None)
    return "" if last is None or last.green or last.task not in waiting(state, repo) else last.task


def is_at_it(task: TaskState) -> bool:
    """Whether it continues by itself, so that waiting for it ends."""
    if task.status in _GOES_ON:
        return True
    return not task.final and (task.status is TaskStatus.FAILED or task.block_reason is BlockReason.QUOTA_WAIT)


def suspects(state: RunState, repo: str) -> list[str]:
    """Tasks whose changes are in the branch and have no green verdict, in the order of their merges."""
    found = []
    for name, task in state.tasks.items():
        now = task.delivery
        if now is None or state.specs[name].repo != repo or not now.merges or task.status is TaskStatus.DONE:
            continue
        if now.pushed and not now.needs_no_ci and not _changed_nothing(task):
            found.append(name)
    return sorted(found, key=lambda name: (_delivery(state, name).place, state.index.rank[name]))


def _changed_nothing(task: TaskState) -> bool:
    return task.work.change is not None and task.work.change.commit == task.work.change.base


def _delivering(state: RunState, repo: str) -> list[str]:
    """Without tasks whose revert is not made yet: what they track is already judged."""
    found = [name for name in state.index.delivering if state.specs[name].repo == repo]
    return [name for name in found if not _delivery(state, name).prepares_revert]


def _delivery(state: RunState, name: str) -> Delivery:
    return state.tasks[name].delivery or Delivery()

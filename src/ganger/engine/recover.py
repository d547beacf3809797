"""Taking over a run: ends what a dead lead left behind, puts files back, and queues what may run again."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.names import verify_log
from ganger.core.records import RunState
from ganger.core.retries import allowed_attempts
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.core.windows import may_run_again
from ganger.engine.files import RunFolder, named_os_errors
from ganger.engine.journal import Journal
from ganger.engine.strays import end_group, end_strays
from ganger.ports import Workspace

_BAD = frozenset({TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED})


async def recover(journal: Journal, folder: RunFolder, workspace: Workspace) -> None:
    """Called once by each lead, before anything starts. Harmless to repeat at any point."""
    state = journal.state
    if any(task.attempts for task in state.tasks.values()):
        await end_strays(folder.path)
    for name in sorted(state.running, key=state.rank.__getitem__):
        await _end_attempt(journal, folder, workspace, name)
    again = come_back(state)
    if again:
        await journal.record(*again)
    _drop_backups(folder, workspace)


async def _end_attempt(journal: Journal, folder: RunFolder, workspace: Workspace, name: str) -> None:
    task = journal.state.tasks[name]
    if task.launched is not None:
        end_group(*task.launched)
    after: list[ev.Event] = []
    if task.backup:
        workspace.roll_back(folder.path / task.backup)
        log = verify_log(name, task.attempts)
        after.append(ev.WritesRolledBack(name, task.attempts, "the lead died before the verdict", log))
    await journal.record(
        *after, ev.AttemptInterrupted(name, task.attempts, "the lead died; run again, no counter pays")
    )


def come_back(state: RunState) -> list[ev.TaskRequeued]:
    """A person ran the same command again: what the retry policy still allows, and what waited for it (T20)."""
    back: dict[str, str] = {}
    window = frozenset(state.window.tasks if state.window else ())
    for name in state.by_rank:
        if state.scope.only is not None and name not in state.scope.only:
            continue
        if state.tasks[name].block_reason is BlockReason.DEPENDENCY_FAILED:
            if all(need in back or state.tasks[need].status not in _BAD for need in state.specs[name].depends_on):
                back[name] = "its dependency may run again"
        elif _may_come_back(state, name, in_window=name in window):
            back[name] = "continued; attempts are left"
    return [ev.TaskRequeued(name, why) for name, why in back.items()]


def _may_come_back(state: RunState, name: str, *, in_window: bool) -> bool:
    """What failed in a window that is still open is judged when that closes."""
    task = state.tasks[name]
    if task.status is TaskStatus.BLOCKED:
        return task.worker_attempts < allowed_attempts(state.specs[name], state.policy)
    return not in_window and may_run_again(state, name)


def _drop_backups(folder: RunFolder, workspace: Workspace) -> None:
    """Every attempt has been ended by now, so no backup is needed any more."""
    with named_os_errors(folder.path / "backups"):
        left = sorted((folder.path / "backups").iterdir())
    for backup in left:
        workspace.discard(backup)

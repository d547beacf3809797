"""Taking over a run: ends what a dead lead left behind, puts files back, and queues what may run again."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.names import verify_log
from ganger.core.resume import taken_up
from ganger.engine.attempt import changes_lost
from ganger.engine.files import RunFolder, named_os_errors
from ganger.engine.journal import Journal
from ganger.engine.strays import end_group, end_strays
from ganger.errors import RollbackFailed
from ganger.ports import Workspace


async def recover(journal: Journal, folder: RunFolder, workspace: Workspace) -> None:
    """Called once by each lead, before anything starts. Harmless to repeat at any point."""
    state = journal.state
    if any(task.attempts for task in state.tasks.values()):
        await end_strays(folder.path)
    for name in sorted(state.running, key=state.rank.__getitem__):
        await _end_attempt(journal, folder, workspace, name)
    after = taken_up(state)
    if after:
        await journal.record(*after)
    _drop_backups(folder, workspace)


async def _end_attempt(journal: Journal, folder: RunFolder, workspace: Workspace, name: str) -> None:
    task = journal.state.tasks[name]
    if task.launched is not None:
        end_group(*task.launched)
    after: list[ev.Event] = []
    if task.backup:
        try:
            workspace.roll_back(folder.path / task.backup)
        except RollbackFailed as problem:
            if problem.code != "BACKUP_MISSING":
                raise
            await journal.record(*changes_lost(journal, name, problem.message))
            return
        log = verify_log(name, task.attempts)
        after.append(ev.WritesRolledBack(name, task.attempts, "the lead died before the verdict", log))
    await journal.record(
        *after, ev.AttemptInterrupted(name, task.attempts, "the lead died; run again, no counter pays")
    )


def _drop_backups(folder: RunFolder, workspace: Workspace) -> None:
    """Every attempt has been ended by now, so no backup is needed any more."""
    with named_os_errors(folder.path / "backups"):
        left = sorted((folder.path / "backups").iterdir())
    for backup in left:
        workspace.discard(backup)

"""Taking over a run: ends what a dead lead left behind, puts files back, and queues what may run again."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from ganger.core import events as ev
from ganger.core.names import backup_folder, verify_log
from ganger.core.records import RunState
from ganger.core.retries import allowed_attempts
from ganger.core.transitions import waits_for_dependency
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.core.windows import may_run_again
from ganger.engine.files import RunFolder
from ganger.engine.journal import Journal
from ganger.ports import Workspace


async def recover(journal: Journal, folder: RunFolder, workspace: Workspace) -> None:
    """Called once by each lead, before anything starts. Harmless to repeat at any point."""
    for name in sorted(journal.state.running, key=journal.state.rank.__getitem__):
        await _end_attempt(journal, folder, workspace, name)
    await _requeue(journal)
    _drop_backups(folder, journal.state, workspace)


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


def end_group(pid: int, start_ticks: int) -> None:
    """Kills a process group left by a dead lead, if its leader is still the same process."""
    if process_start_ticks(pid) == start_ticks:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def process_start_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])


async def _requeue(journal: Journal) -> None:
    """A person ran the same command again: what the retry policy still allows comes back (T20)."""
    state = journal.state
    again = [
        ev.TaskRequeued(name, "continued; attempts are left")
        for name in state.by_rank
        if not (state.window and name in state.window.tasks) and _comes_back(state, name)
    ]
    if again:
        await journal.record(*again)
    for name in state.by_rank:
        if waits_for_dependency(state, name):
            await journal.record(ev.TaskRequeued(name, "its dependency may run again"))


def _comes_back(state: RunState, name: str) -> bool:
    task = state.tasks[name]
    if task.status is TaskStatus.BLOCKED and task.block_reason is not BlockReason.DEPENDENCY_FAILED:
        return task.worker_attempts < allowed_attempts(state.specs[name], state.policy)
    return may_run_again(state, name)


def _drop_backups(folder: RunFolder, state: RunState, workspace: Workspace) -> None:
    wanted = {Path(backup_folder(n, state.tasks[n].attempts)).name for n in state.running}
    for left in sorted((folder.path / "backups").iterdir()):
        if left.name not in wanted:
            workspace.discard(left)

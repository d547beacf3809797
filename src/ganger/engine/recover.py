"""Takes over a run: ends what is no longer needed, continues every attempt, and queues what may run again.

The order is H10's: the store has been read; running processes are looked at, adopted or ended; then the run continues.
The store is trusted over everything else.
"""

from __future__ import annotations

from collections.abc import Collection

from ganger.core.control.reviews import WANTED
from ganger.core.model.run_state import RunState
from ganger.core.names import healer_log, review_log, worker_log
from ganger.core.scheduling.resume import taken_up
from ganger.core.state.allowed import open_round
from ganger.engine.delivery.reviews.reviewing_agent import MOST_REVIEWS
from ganger.engine.journal import Journal
from ganger.local.run_folder import RunFolder, named_os_errors
from ganger.ports.processes import Launcher
from ganger.ports.workspace import Workspace


async def recover(
    journal: Journal,
    folder: RunFolder,
    workspace: Workspace,
    launcher: Launcher,
    *,
    clean: bool,
    needed: Collection[str] = (),
) -> list[str]:
    """The attempts to re-enter, those with half-applied files first. Harmless to repeat at any point.

    `clean`: the last lead ended everything, and recorded that. `needed` are the keys of other processes that must not
    run again.
    """
    state = journal.state
    if not clean and any(task.attempts for task in state.tasks.values()):
        await launcher.end_others(_kept(state, folder) | set(needed))
    after = taken_up(state)
    if after:
        await journal.record(*after)
    _drop_backups(state, folder, workspace)
    return sorted(state.index.running, key=lambda name: (not state.tasks[name].attempt.backup, state.index.rank[name]))


def _kept(state: RunState, folder: RunFolder) -> set[str]:
    """The keys of agents whose answer still counts. Verification runs again, so its processes are not among them."""
    logs = {worker_log(name, state.tasks[name].attempts) for name in state.index.running}
    for name in state.index.running:
        now = state.tasks[name].delivery
        if now is not None and now.review == WANTED:
            logs.update(review_log(name, state.tasks[name].attempts, again) for again in range(MOST_REVIEWS))
    round_ = open_round(state)
    if round_ is not None:
        logs.add(healer_log(round_.number, round_.tries))
    return {str(folder.path / log) for log in logs}


def _drop_backups(state: RunState, folder: RunFolder, workspace: Workspace) -> None:
    """A backup is needed only while its attempt has no verdict."""
    needed = {
        folder.path / task.attempt.backup
        for task in (state.tasks[name] for name in state.index.running)
        if task.attempt.backup
    }
    with named_os_errors(folder.path / "backups"):
        left = sorted((folder.path / "backups").iterdir())
    for backup in left:
        if backup not in needed and backup.suffix != ".saved":
            workspace.discard(backup)

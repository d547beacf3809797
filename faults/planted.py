"""Planted bugs: a catalogue of plausible mistakes, each put into a lead before it runs, and what must notice it.

A harness that cannot catch its bugs proves nothing by finding none.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import planted_git
from faults.runs import SHORT
from ganger.core import events as ev
from ganger.core.failures import retries
from ganger.core.model.records import Ended
from ganger.core.model.run_state import RunState
from ganger.core.names import worker_log
from ganger.core.scheduling import choosing, windows
from ganger.core.state.apply import apply
from ganger.core.vocabulary import TaskStatus
from ganger.engine import lead, recover
from ganger.engine.attempt import attempt
from ganger.engine.change_strategy import Reader
from ganger.engine.changes.direct import DirectChanges
from ganger.engine.journal import Journal
from ganger.engine.lead import Lead
from ganger.engine.output import state_file
from ganger.engine.output.state_file import StateFile
from ganger.local import atomic
from ganger.ports.store import Entry
from ganger.stores import sqlite
from ganger.workspaces.direct.workspace import DirectWorkspace
from ganger.workspaces.files import tree


@dataclass(frozen=True, slots=True)
class Bug:
    """A mistake, the harness that must catch it, and the word its complaint begins with.

    `after`: the events (type, and task where it has one) after which the harness strikes; all of the run without them.
    `calls`: at these calls only. `points`: at these very points, such as `@git-update-ref/head_intended:1`.
    """

    plant: Callable[[], None]
    harness: str
    rule: str
    seed: int = 15
    after: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    errno: str = "EIO"
    budget_attempts: int | None = None
    mode: str = "direct"
    points: tuple[str, ...] = ()

    @property
    def what(self) -> str:
        return (self.plant.__doc__ or "").strip().splitlines()[0]


def planter(name: str) -> Callable[[], None] | None:
    """What to call in a lead before it runs; nothing for no bug."""
    return BUGS[name].plant if name else None


def _swap(owner: Any, name: str, value: Any) -> Any:
    real = getattr(owner, name)
    setattr(owner, name, value)
    return real


# --- the store and the journal ----------------------------------------------------------------------------------


def _shown_before_commit() -> None:
    """Events are shown before they are durable."""

    async def commit(self: Journal) -> None:
        queue, self._queue, self._tick = self._queue, [], None
        early = [
            ev.Recorded(seq, entry.at, entry.event) for seq, entry in enumerate(queue, self.state.log.last_seq + 1)
        ]
        for recorded, listener in itertools.product(early, self.listeners):
            listener(recorded)
        for recorded in await self.store.append(queue):
            apply(self.state, recorded)

    _swap(Journal, "_commit", commit)


def _lazy_commit() -> None:
    """The store acknowledges a batch and writes it only with the next one."""
    waiting: list[Entry] = []
    real = sqlite.SqliteStore.append

    def append(self: sqlite.SqliteStore, batch: Sequence[Entry]) -> list[ev.Recorded]:
        first = self._last + len(waiting) + 1
        if waiting:
            real(self, list(waiting))
        waiting[:] = batch
        if any(isinstance(entry.event, ev.RunFinished) for entry in batch):
            real(self, list(waiting))
            waiting.clear()
        return [ev.Recorded(seq, entry.at, entry.event) for seq, entry in enumerate(batch, first)]

    _swap(sqlite.SqliteStore, "append", append)


def _synchronous_normal() -> None:
    """SQLite does not wait for the disk."""

    def opened(path: Path, busy_ms: int) -> Any:
        db = real(path, busy_ms)
        db.execute("PRAGMA synchronous=NORMAL")
        return db

    real = _swap(sqlite, "open_to_write", opened)


class _Without:
    """A module whose functions of these names do nothing."""

    def __init__(self, module: Any, *names: str) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        return (lambda *_a, **_k: None) if name in self._names else getattr(self._module, name)


# --- the state file ---------------------------------------------------------------------------------------------


def _state_in_place() -> None:
    """The state file is overwritten where it lies."""

    def write(path: Path, text: str) -> None:
        half = len(text) // 2
        with open(path, "w", encoding="utf-8") as file:
            for part in (text[:half], text[half:]):
                file.write(part)
                file.flush()
                os.fsync(file.fileno())

    _swap(state_file, "replace_file", write)


def _state_not_synced() -> None:
    """The state file is renamed into place before its bytes are on disk."""
    _swap(atomic, "os", _Without(os, "fsync"))


def _state_late() -> None:
    """The state file is not written when the lead leaves."""
    real = StateFile.write

    def write(self: StateFile) -> None:
        if not self._state.finished:
            real(self)

    _swap(StateFile, "write", write)


def _sync_error_swallowed() -> None:
    """A failed fsync of the state file is passed over."""

    class Deaf(_Without):
        def __getattr__(self, name: str) -> Any:
            return self._try if name == "fsync" else getattr(self._module, name)

        def _try(self, fd: int) -> None:
            try:
                os.fsync(fd)
            except OSError:
                return

    _swap(atomic, "os", Deaf(os))


# --- one attempt ------------------------------------------------------------------------------------------------


def _done_before_verification() -> None:
    """DONE is recorded before anything was checked."""

    async def verify(self: DirectChanges) -> None:
        case = self.case
        case.record(ev.VerifyStarted(case.task, case.number, case.verify_log))
        passed = ev.VerifyFinished(case.task, case.number, True, case.verify_log, 0.0, ())
        await case.record(passed, ev.TaskSettled(case.task, TaskStatus.DONE, "surely"))

    _swap(DirectChanges, "_verify", verify)


def _intent_after_apply() -> None:
    """Files are changed before the intent is recorded."""
    real = DirectWorkspace.back_up

    def back_up(self: DirectWorkspace, changes: Any, folder: Path) -> None:
        real(self, changes, folder)
        change(self, changes, folder)

    change = _swap(DirectWorkspace, "apply", lambda *_: None)
    _swap(DirectWorkspace, "back_up", back_up)


def _no_rollback_on_recovery() -> None:
    """A new lead takes for put back what the dead one had not put back."""
    real = DirectChanges.undo

    async def undo(self: DirectChanges, why: str, *, keep_place: bool = False, refused: bool = False) -> None:
        case = self.case
        if case.again and self.backup is not None:
            case.record(ev.WritesRolledBack(case.task, case.number, why, case.verify_log))
        else:
            await real(self, why, keep_place=keep_place, refused=refused)

    _swap(DirectChanges, "undo", undo)


def _backup_dropped_early() -> None:
    """The backup is removed before the verdict."""
    real = DirectChanges._verify

    async def verify(self: DirectChanges) -> None:
        if self.backup is not None:
            self.tools.workspace.discard(self.backup)
        await real(self)

    _swap(DirectChanges, "_verify", verify)


def _written_again_on_recovery() -> None:
    """A new lead does not look whether a change has landed; it writes again."""
    _swap(DirectChanges, "go_on", _write_blindly)


async def _write_blindly(self: DirectChanges, read: Reader) -> None:
    folder, self.backup = self.backup, None
    assert folder is not None
    self.tools.workspace.discard(folder)
    result = await read(self.case.now.attempt.ended or Ended(code=0))
    await self._write(result)
    await self._verify()


def _applied_without_sync() -> None:
    """Changed files are not on disk when their task is DONE."""
    _swap(tree, "os", _Without(os, "fsync"))


# --- claims, agents, decisions ----------------------------------------------------------------------------------


def _launched_before_claim() -> None:
    """An agent is started before its attempt is recorded."""
    real = Lead._start

    async def start(self: Lead, names: list[str]) -> None:
        for name in names:
            early = self._attempt(name)
            early.number = early.case.number = early.number + 1
            early.case.log = worker_log(name, early.number)
            root = self.tools.workspace.root
            await self.tools.launcher.start(await early.shift._prepare(root))
        await real(self, names)

    _swap(Lead, "_start", start)


def _never_adopts() -> None:
    """A new lead ends the agents it finds and starts them anew."""
    _swap(recover, "_kept", lambda *_: set())


def _same_token() -> None:
    """Every attempt has the same token."""
    _swap(lead, "secrets", _Constant())


class _Constant:
    def __getattr__(self, name: str) -> Any:
        return (lambda *_: "00") if name == "token_hex" else getattr(secrets, name)


def _format_retry_costs_an_attempt() -> None:
    """A broken answer is charged as a worker attempt."""

    def after_failure(*given: Any, **more: Any) -> retries.NextStep:
        chosen = real(*given, **more)
        return retries.NextStep(chosen.then, "worker_attempts", chosen.why, chosen.status, chosen.block_reason)

    real = _swap(attempt, "after_failure", after_failure)


def _window_closed_early() -> None:
    """A window is closed while one of its tasks still runs."""

    def decide(state: RunState, now: float) -> list[windows.Decision]:
        if state.windows.current is not None and state.index.running and state.windows.open == state.index.running:
            return [windows._close(state)]
        found: list[windows.Decision] = real(state, now)
        return found

    real = _swap(lead, "decide", decide)


def _budget_checked_late() -> None:
    """The budget is looked at only after the attempt that breaks it."""

    def refusal(state: RunState, *given: Any) -> str:
        return real(state, *given) if state.money.spent.attempts > (state.money.budget.attempts or 0) else ""

    real = _swap(windows, "run_refusal", refusal)
    _swap(choosing, "run_refusal", refusal)


_QUEUED = ("merge_queued", "gates_checked")


def _in_git(plant: Callable[[], None], harness: str, rule: str, points: Sequence[str]) -> Bug:
    return Bug(plant, harness, rule, seed=SHORT, mode="local-git", points=tuple(points))


BUGS: dict[str, Bug] = {
    "shown-before-commit": Bug(_shown_before_commit, "crash", "acknowledged", calls=("pwrite64", "fdatasync")),
    "lazy-commit": Bug(_lazy_commit, "crash", "acknowledged", seed=1),
    "synchronous-normal": Bug(_synchronous_normal, "powercut", "acknowledged", after=("task_settled make",)),
    "state-in-place": Bug(_state_in_place, "crash", "state file", after=("window_closed",), calls=("write", "fsync")),
    "state-not-synced": Bug(_state_not_synced, "powercut", "state file"),
    "state-late": Bug(_state_late, "run", "state file"),
    "sync-error-swallowed": Bug(_sync_error_swallowed, "errors", "outcome: a failed fsync", calls=("fsync",)),
    "done-before-verification": Bug(_done_before_verification, "run", "files"),
    "intent-after-apply": Bug(_intent_after_apply, "crash", "writes", calls=("fsync", "linkat", "renameat")),
    "no-rollback-on-recovery": Bug(
        _no_rollback_on_recovery, "crash", "files", after=("writes_applied bad", "verify_started bad")
    ),
    "backup-dropped-early": Bug(_backup_dropped_early, "run", "outcome"),
    "written-again-on-recovery": Bug(
        _written_again_on_recovery, "crash", "files", after=("writes_applied add", "verify_started add")
    ),
    "applied-without-sync": Bug(_applied_without_sync, "powercut", "files", after=("task_settled make",)),
    "launched-before-claim": Bug(_launched_before_claim, "crash", "agent starts", after=("window_opened",)),
    "never-adopts": Bug(_never_adopts, "kills", "paid twice"),
    "same-token": Bug(_same_token, "run", "tokens"),
    "format-retry-costs-an-attempt": Bug(_format_retry_costs_an_attempt, "run", "counters"),
    "window-closed-early": Bug(_window_closed_early, "run", "windows"),
    "moved-before-intent": _in_git(
        planted_git.moved_before_intent,
        "crash",
        "merges",
        [f"@git-update-ref.done/{e}:{n}" for n in (2, 3, 1) for e in _QUEUED],
    ),
    "merged-before-move": _in_git(
        planted_git.merged_before_move, "crash", "branch", [f"@git-update-ref/task_settled:{n}" for n in (1, 2, 3)]
    ),
    "merged-again": _in_git(
        planted_git.merged_again, "crash", "merges", [f"@git-update-ref.done/head_intended:{n}" for n in (2, 3)]
    ),
    "workspace-removed-early": _in_git(
        planted_git.workspace_removed_early,
        "crash",
        "paid twice",
        [f"@os.remove/result_accepted:{n}" for n in (4, 3, 5, 2, 6, 1, 7, 8, 9, 10, 12)],
    ),
    "git-not-synced": _in_git(planted_git.git_not_synced, "powercut", "branch", []),
    "budget-checked-late": Bug(_budget_checked_late, "run", "budgets", budget_attempts=3),
}


def named(names: Sequence[str]) -> Iterator[tuple[str, Bug]]:
    for name in names or BUGS:
        if name not in BUGS:
            raise SystemExit(f"there is no planted bug {name!r}; known: {', '.join(BUGS)}")
        yield name, BUGS[name]

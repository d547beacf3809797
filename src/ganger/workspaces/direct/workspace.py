"""Direct mode: agents work in the project's own folder; changes land in place, with a backup."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ganger.contracts.task_result import Write
from ganger.errors import Fault, GangerError, InputError, RollbackFailed, WriteRefused
from ganger.ports.changes import Change, Rules
from ganger.ports.workspace import Changes
from ganger.workspaces.direct.backup import load_backup
from ganger.workspaces.direct.write import (
    Applied,
    apply_changes,
    discard_backup,
    is_applied,
    make_durable,
    prepare_backup,
    roll_back,
)
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.rules.protected import Protection
from ganger.workspaces.rules.writes import ChangeSet, WriteRequest, WriteRules, plan_changes
from ganger.workspaces.safeguards import PlannedChange

_LARGEST_PROMPT = 4 * 1024 * 1024
Judge = Callable[[Change, Rules], None]


class DirectWorkspace:
    def __init__(self, root: Path, protection: Protection, judge: Judge | None = None) -> None:
        """`judge` decides last on a change; it raises WriteRefused."""
        self._root = root
        self._protection = protection
        self._judge = judge

    @property
    def root(self) -> Path:
        return self._root

    def read_text(self, ref: str) -> str:
        try:
            with Tree(self.root) as tree:
                data = tree.read_file(ref, limit=_LARGEST_PROMPT)
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(ref, [Fault("", "NOT_UTF8", f"not UTF-8 text (byte {error.start})")]) from error
        except WriteRefused as error:
            raise InputError(ref, [Fault("", error.code, error.message)]) from error
        except OSError as error:
            raise InputError(ref, [Fault("", "FILE_NOT_FOUND", f"cannot be read: {error.strerror}")]) from error

    def propose(self, writes: Sequence[Write], rules: Rules) -> ChangeSet:
        limits = WriteRules(protection=self._protection, allow_shrinkage=rules.allow_shrinkage)
        with _machine_troubles(), Tree(self.root) as tree:
            changes = plan_changes(tree, list(requests_of(writes)), limits)
            if self._judge is not None:
                self._judge(PlannedChange(changes, tree, limits.max_file_bytes), rules)
            return changes

    def back_up(self, changes: Changes, folder: Path) -> None:
        assert isinstance(changes, ChangeSet)
        with _machine_troubles(), Tree(self.root) as tree:
            prepare_backup(tree, changes, folder)

    def apply(self, changes: Changes, folder: Path) -> None:
        assert isinstance(changes, ChangeSet)
        with _machine_troubles(), Tree(self.root) as tree:
            apply_changes(tree, changes, folder)

    def originals(self, folder: Path) -> dict[str, bytes | None]:
        backup = load_backup(folder)
        entries = backup.entries if backup is not None else ()
        return {one.path: None if one.copy is None else (folder / one.copy).read_bytes() for one in entries}

    def landed(self, folder: Path) -> bool | None:
        found = is_applied(self.root, folder)
        if found is Applied.ALL:
            make_durable(self.root, folder)
        return {Applied.ALL: True, Applied.NONE: False}.get(found)

    def roll_back(self, folder: Path) -> tuple[str, ...]:
        if load_backup(folder) is None:
            raise RollbackFailed(
                f"there is no complete backup in {folder}, so what was written cannot be put back",
                hint="look at the files by hand; ganger events names them",
                code="BACKUP_MISSING",
            )
        return roll_back(self.root, folder).saved

    def discard(self, folder: Path) -> None:
        discard_backup(folder)


_OF_THE_MACHINE = frozenset({errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EROFS})


@contextlib.contextmanager
def _machine_troubles() -> Iterator[None]:
    """An error of the disk or the system is not the agent's fault: the run stops and the agent is not charged."""
    try:
        yield
    except WriteRefused as refused:
        cause = refused.__cause__
        if not isinstance(cause, OSError) or cause.errno not in _OF_THE_MACHINE:
            raise
        raise GangerError(
            f"{refused.message}; the disk or the system reports errors, so the run stops",
            hint="check the disk and the limits of this process, then run the same command again",
            code="IO_ERROR",
        ) from refused


def requests_of(writes: Iterable[Write]) -> Iterable[WriteRequest]:
    for write in writes:
        yield WriteRequest(
            path=write.path,
            op=write.op,
            content=write.content,
            content_ref=write.content_ref,
            sha256_before=write.sha256_before,
        )

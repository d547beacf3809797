"""A project's files in memory, changed through the same door as real ones, and left half-done where a lead dies."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ganger.contracts.task_result import Write
from ganger.errors import Fault, InputError, RollbackFailed, WriteRefused
from ganger.ports.changes import Rules
from ganger.ports.workspace import Changes
from sim.life import Life


@dataclass(frozen=True, slots=True)
class SimChanges:
    """Files as they shall be."""

    after: tuple[tuple[str, str], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.after)

    @property
    def digests(self) -> dict[str, str]:
        return dict(self.after)


@dataclass(frozen=True, slots=True)
class Backup:
    before: tuple[tuple[str, str | None], ...]
    after: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Project:
    """What survives every lead: files and backups by folder name. `root` is a real, empty folder."""

    root: Path
    files: dict[str, str] = field(default_factory=dict)
    backups: dict[str, Backup] = field(default_factory=dict)

    def put(self, path: str, text: str | None) -> None:
        if text is None:
            self.files.pop(path, None)
        else:
            self.files[path] = text


Watch = Callable[[str], None]


class SimWorkspace:
    """One lead's hands on the project. `watch_apply` is told the backup's name before the first byte changes."""

    def __init__(self, project: Project, life: Life, *, watch_apply: Watch) -> None:
        self._project, self._life, self._watch_apply = project, life, watch_apply

    @property
    def root(self) -> Path:
        return self._project.root

    def read_text(self, ref: str) -> str:
        self._life.point("read")
        text = self._project.files.get(ref)
        if text is None:
            raise InputError(ref, [Fault("", "FILE_NOT_FOUND", "there is no such file")])
        return text

    def propose(self, writes: Sequence[Write], _rules: Rules) -> SimChanges:
        self._life.point("propose")
        after: dict[str, str] = {}
        for write in writes:
            if write.path.startswith(("/", "..")):
                raise WriteRefused(write.path, "leads out of the project", code="PATH_OUTSIDE")
            known = after.get(write.path, self._project.files.get(write.path))
            if write.op == "create" and known is not None:
                raise WriteRefused(write.path, "exists already", code="FILE_EXISTS")
            if write.op == "replace" and known is None:
                raise WriteRefused(write.path, "does not exist", code="FILE_MISSING")
            content = write.content or ""
            after[write.path] = (known or "") + content if write.op == "append" else content
        return SimChanges(tuple(after.items()))

    def back_up(self, changes: Changes, folder: Path) -> None:
        assert isinstance(changes, SimChanges)
        self._life.effect("backup.before")
        folder.mkdir(parents=True, exist_ok=True)
        self._life.effect("backup.during")
        before = tuple((path, self._project.files.get(path)) for path in changes.paths)
        self._project.backups[folder.name] = Backup(before, changes.after)
        self._life.effect("backup.after")

    def apply(self, changes: Changes, folder: Path) -> None:
        assert isinstance(changes, SimChanges)
        self._life.effect("apply.before")
        self._watch_apply(folder.name)
        for path, text in changes.after:
            self._project.put(path, text)
            self._life.effect("apply.file")

    def originals(self, folder: Path) -> dict[str, bytes | None]:
        return {path: None if text is None else text.encode() for path, text in self._backup(folder).before}

    def landed(self, folder: Path) -> bool | None:
        self._life.point("landed")
        backup = self._backup(folder)
        if all(self._project.files.get(path) == text for path, text in backup.after):
            return True
        return False if all(self._project.files.get(path) == text for path, text in backup.before) else None

    def roll_back(self, folder: Path) -> tuple[str, ...]:
        self._life.effect("rollback.before")
        backup = self._backup(folder)
        after, foreign = dict(backup.after), []
        for path, text in backup.before:
            if self._project.files.get(path) not in (text, after[path]):
                foreign.append(path)
            self._project.put(path, text)
            self._life.effect("rollback.file")
        return tuple(foreign)

    def discard(self, folder: Path) -> None:
        self._life.effect("discard.before")
        self._project.backups.pop(folder.name, None)
        self._life.effect("discard.during")
        with contextlib.suppress(OSError):
            folder.rmdir()

    def _backup(self, folder: Path) -> Backup:
        backup = self._project.backups.get(folder.name)
        if backup is None:
            raise RollbackFailed(f"the backup {folder.name} is gone", code="BACKUP_MISSING")
        return backup

"""Watches the project's own folder and applies the safeguards to its changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ganger.ports import Change, Restored, Rules, Touched
from ganger.workspaces.direct.edits import InPlace
from ganger.workspaces.direct.watch import Watch
from ganger.workspaces.files.snapshot import Snapshot
from ganger.workspaces.gates.gates import Gates
from ganger.workspaces.refusals import refused
from ganger.workspaces.rules.artifacts import is_generated
from ganger.workspaces.safeguards.safeguards import ChangeLimits, require

_HARMLESS_GROUPS = frozenset({b"[console_scripts]", b"[gui_scripts]"})


class Watching:
    """The `Watch` port. `path` is the PATH of the checks."""

    def __init__(self, root: Path, watch: Watch, limits: ChangeLimits, path: str) -> None:
        self._root, self._watch, self._limits, self._path = root, watch, limits, path
        self._seen: Snapshot | None = None

    def begin(self) -> None:
        self._watch.begin()

    def resume(self) -> None:
        if not self._watch.resume():
            self._watch.begin()

    def changed(self, ignoring: Mapping[str, str]) -> InPlace:
        return self._watch.changed(ignoring)

    def judge(self, change: Change, rules: Rules) -> None:
        require(_Part(change, self._counting(change)), rules, self._limits)

    def _counting(self, change: Change) -> tuple[Touched, ...]:
        """Files an installation adds are not the agent's work, unless they change which tools a check uses."""
        return tuple(one for one in change.touched if not self._is_installed(one, change))

    def _is_installed(self, touched: Touched, change: Change) -> bool:
        parts = touched.path.split("/")
        if touched.before is not None or not is_generated(touched.path):
            return False
        if "node_modules" in parts:
            return shutil.which(parts[-1], path=self._path) is None
        if parts[-1] == "entry_points.txt":
            groups = [line for line in change.after(touched.path).splitlines() if line.startswith(b"[")]
            return _HARMLESS_GROUPS.issuperset(line.strip() for line in groups)
        return True

    def missing(self, rules: Rules) -> tuple[str, ...]:
        return tuple(name for name in rules.expected if not (self._root / name).is_file())

    def undo(self, change: Change) -> tuple[str, ...]:
        assert isinstance(change, InPlace)
        return self._watch.undo(change)

    def save(self, change: Change, folder: Path, *, contents: bool = True) -> None:
        assert isinstance(change, InPlace)
        self._watch.save(change, folder, contents=contents)

    def mark(self) -> FolderMark:
        taken, self._seen = self._seen or self._watch.snapshot(), None
        return FolderMark(taken, self._watch.snapshot)

    def restore_gates(self, ignoring: Mapping[str, str], rules: Rules, folder: Path) -> Restored:
        change = self._watch.changed(ignoring)
        gates = Gates(rules.verify, declared=(*(rules.create or ()), *(rules.modify or ())))
        touched = self._counting(change) if change.touched else ()
        wrong = {one.path for one in touched if self._limits.protection.protected_by(one.path)}
        if not rules.may_change_gates:
            wrong |= {one.path for one in touched if gates.gate_of(one, change)}
        # If nothing was put back, this is the folder's present state.
        self._seen = None if wrong else change.present
        if wrong:
            drift = self._watch.drifted(wrong.__contains__)
            self._watch.save(drift, folder)
            for path in self._watch.restore(drift):
                raise refused(
                    path, "GATE_CHANGED", "it was changed while Ganger was not watching and cannot be put back"
                )
        return Restored(tuple(sorted(wrong)), len(touched) > len(wrong))


@dataclass(frozen=True, slots=True)
class FolderMark:
    """The `Mark` port."""

    taken: Snapshot
    again: Callable[[], Snapshot]

    def moved(self) -> tuple[str, ...]:
        return self.again().moved_since(self.taken)

    def had(self, path: str) -> bool:
        return path in self.taken.files


class _Part:
    """A change without some of its paths."""

    def __init__(self, whole: Change, touched: tuple[Touched, ...]) -> None:
        self._whole, self.touched = whole, touched

    def before(self, path: str) -> bytes:
        return self._whole.before(path)

    def after(self, path: str) -> bytes:
        return self._whole.after(path)

    def names_before(self, folder: str) -> Collection[str]:
        return self._whole.names_before(folder)


def is_unwatched(path: str) -> bool:
    """Generated files, except those that would give a check other programs or plugins than the operator's."""
    parts = path.split("/")
    if "node_modules" in parts:
        below = parts[parts.index("node_modules") + 1 :]
        return bool(below) and below[0] != ".bin"
    if any(part.endswith((".egg-info", ".dist-info")) for part in parts):
        return parts[-1] != "entry_points.txt" and not parts[-1].endswith((".egg-info", ".dist-info"))
    return is_generated(path)

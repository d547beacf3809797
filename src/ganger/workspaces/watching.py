"""The project's own folder under watch, with the safeguards that judge what became of it."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from ganger.ports import Change, Rules, Touched
from ganger.workspaces.artifacts import is_generated
from ganger.workspaces.gates import Gates
from ganger.workspaces.in_place import InPlace
from ganger.workspaces.refusals import refused
from ganger.workspaces.safeguards import ChangeLimits, require
from ganger.workspaces.watch import Watch

_HARMLESS_GROUPS = frozenset({b"[console_scripts]", b"[gui_scripts]"})


class Watching:
    """The `Watch` port. `path` is where the checks look for programs."""

    def __init__(self, root: Path, watch: Watch, limits: ChangeLimits, path: str) -> None:
        self._root, self._watch, self._limits, self._path = root, watch, limits, path

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
        """What an installation adds is no work of the agent's, unless it gets between a check and its tools."""
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

    def restore_gates(self, ignoring: Mapping[str, str], rules: Rules, folder: Path) -> tuple[str, ...]:
        if rules.may_change_gates:
            return ()
        change = self._watch.changed(ignoring)
        gates = Gates(rules.verify, declared=(*(rules.create or ()), *(rules.modify or ())))
        wrong = {one.path for one in self._counting(change) if gates.gate_of(one, change)}
        if wrong:
            drift = self._watch.drifted(wrong.__contains__)
            self._watch.save(drift, folder)
            for path in self._watch.restore(drift):
                raise refused(path, "GATE_CHANGED", "it was changed behind Ganger's back and cannot be put back")
        return tuple(sorted(wrong))


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
    """Generated files, but for those by which a check would find other programs or plugins than the operator's."""
    parts = path.split("/")
    if "node_modules" in parts:
        below = parts[parts.index("node_modules") + 1 :]
        return bool(below) and below[0] != ".bin"
    if any(part.endswith((".egg-info", ".dist-info")) for part in parts):
        return parts[-1] != "entry_points.txt" and not parts[-1].endswith((".egg-info", ".dist-info"))
    return is_generated(path)

"""The project's own folder under watch, with the safeguards that judge what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ganger.ports import Change, Rules
from ganger.workspaces.gates import Gates
from ganger.workspaces.in_place import InPlace
from ganger.workspaces.refusals import refused
from ganger.workspaces.safeguards import ChangeLimits, require
from ganger.workspaces.watch import Watch


class Watching:
    """The `Watch` port."""

    def __init__(self, root: Path, watch: Watch, limits: ChangeLimits) -> None:
        self._root, self._watch, self._limits = root, watch, limits

    def begin(self) -> None:
        self._watch.begin()

    def resume(self) -> None:
        if not self._watch.resume():
            self._watch.begin()

    def changed(self, ignoring: Mapping[str, str]) -> InPlace:
        return self._watch.changed(ignoring)

    def judge(self, change: Change, rules: Rules) -> None:
        require(change, rules, self._limits)

    def missing(self, rules: Rules) -> tuple[str, ...]:
        return tuple(name for name in rules.expected if not (self._root / name).is_file())

    def undo(self, change: Change) -> tuple[str, ...]:
        assert isinstance(change, InPlace)
        return self._watch.undo(change)

    def save(self, change: Change, folder: Path) -> None:
        assert isinstance(change, InPlace)
        self._watch.save(change, folder)

    def restore_gates(self, ignoring: Mapping[str, str], verify: Sequence[str], folder: Path) -> tuple[str, ...]:
        change = self._watch.changed(ignoring)
        gates = Gates(tuple(verify))
        wrong = {touched.path for touched in change.touched if gates.gate_of(touched, change)}
        if wrong:
            drift = self._watch.drifted(wrong.__contains__)
            self._watch.save(drift, folder)
            for path in self._watch.restore(drift):
                raise refused(path, "GATE_CHANGED", "it was changed behind Ganger's back and cannot be put back")
        return tuple(sorted(wrong))

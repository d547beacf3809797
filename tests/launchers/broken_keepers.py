"""Keepers with one thing wrong each: what the tests of the keeper must catch, or what happens between two steps."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping

from ganger.launchers.keeper import serve
from ganger.launchers.ledger import EndRecord
from ganger.launchers.processes.tree import ProcessTree
from ganger.launchers.programs import Programs
from ganger.ports.processes import Launch


class TellsUnrecorded(Programs):
    def _record(self, over: Mapping[ProcessTree, EndRecord]) -> None:
        """Told first, recorded never."""


class TellsUnsynced(Programs):
    def _record(self, over: Mapping[ProcessTree, EndRecord]) -> None:
        for tree, ended in over.items():
            self._ledger.ended(tree.key, ended.exit)


class KillsOnlyGroups(Programs):
    def _cleared(self, now: float) -> list[ProcessTree]:
        return [tree for tree in self.running.values() if tree.has_ended and tree.clear(now)]


class StartsTwice(Programs):
    def find(self, key: str) -> ProcessTree | EndRecord | None:
        found = super().find(key)
        self.asked = getattr(self, "asked", 0) + 1
        return None if self.asked == 3 else found


class DiesBeforeStarting(Programs):
    def _intend(self, launch: Launch) -> int:
        super()._intend(launch)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


class DiesAfterStarting(Programs):
    def _confirm(self, tree: ProcessTree) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class CannotRecordEnds(Programs):
    def _record(self, over: Mapping[ProcessTree, EndRecord]) -> None:
        self._ledger.sync = no_room  # type: ignore[method-assign]
        super()._record(dict(over))


class CannotRecordStarts(Programs):
    def _intend(self, launch: Launch) -> int:
        self._ledger.starting = no_room  # type: ignore[assignment, method-assign]
        return super()._intend(launch)


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def main(arguments: list[str]) -> None:
    folder = arguments[0]
    with open(f"{folder}/broken") as file:
        serve(arguments, globals()[file.read()])

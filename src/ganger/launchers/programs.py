"""The programs of one run in the keeper: the running ones, the ended ones, and the ledger of both."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping

from ganger.errors import DiskFullError
from ganger.launchers.ledger import LOST, Begun, EndRecord, Ledger, read_ledger, refusal
from ganger.launchers.leftovers import clear_traces
from ganger.launchers.paths import House
from ganger.launchers.processes import cgroups
from ganger.launchers.processes.adoption import adopted, kill_child
from ganger.launchers.processes.spawn import FREE_SOME_SPACE, is_disk_full, open_log, spawn, start_error
from ganger.launchers.processes.tree import NEVER, ProcessTree
from ganger.local.procfs import boot_id, kill_where, mark_of, stat_fields, tag_of
from ganger.ports.processes import Exit, Launch

_WATCH_SEC = 0.25
_FIRST_TAG = 1 << 62
_SWEEP_PAUSE_SEC = 0.005
_GONE_WITHIN_SEC = 10.0


class Unrecorded(Exception):
    """The ledger cannot be written, so no further event can be relied on."""


class Programs:
    """Created once, by the holder of the keeper's lock: programs that an earlier keeper left running are killed and
    recorded as lost before anything is started."""

    def __init__(self, house: House, *, with_cgroup: bool) -> None:
        self.running: dict[str, ProcessTree] = {}
        self._ended: dict[str, EndRecord] = {}
        self._past: Mapping[str, EndRecord] = {}
        self._house = house
        self._boot_id = boot_id()
        self._watch_at = NEVER
        self._ledger = self._take_over()
        self._next_tag = _FIRST_TAG | int.from_bytes(os.urandom(5), "big") << 20
        self._cgroup = cgroups.make(os.urandom(8).hex()) if with_cgroup else None
        if self._cgroup is not None:
            house.write(house.cgroup, self._cgroup)

    def _take_over(self) -> Ledger:
        clear_traces(str(self._house.room))
        account = read_ledger(self._house.ledger)
        ledger = Ledger(self._house.ledger)
        self._past = account.ended
        if account.open:
            give_up_at = time.monotonic() + _GONE_WITHIN_SEC
            tags = {found.tag for found in account.open.values()}
            while left := kill_where(lambda pid: self._is_ours(pid, tags)):
                if time.monotonic() > give_up_at:
                    raise TimeoutError(f"processes {sorted(left)} of an earlier keeper do not end, even when killed")
                time.sleep(_SWEEP_PAUSE_SEC)
            for key, found in account.open.items():
                self._ended[key] = found.ended(LOST)
                ledger.ended(key, LOST)
            ledger.sync()
        return ledger

    @property
    def due_at(self) -> float:
        """When the next action is due, unless something happens before."""
        return min(self._watch_at, *(tree.due_at for tree in self.running.values()), NEVER)

    def find(self, key: str) -> ProcessTree | EndRecord | None:
        return self.running.get(key) or self._ended.get(key) or self._past.get(key)

    def begin(self, launch: Launch, grace_sec: float) -> None:
        """Records the intent, starts the program, records the outcome. A launch whose keeper died in between counts as
        lost.

        Raises DiskFullError when the disk is full and nothing was started, Unrecorded when the ledger cannot be
        written.
        """
        with contextlib.ExitStack() as undo:
            try:
                log = open_log(launch)
                undo.callback(os.close, log)
                tag = self._intend(launch)
                process = spawn(launch, log, tag)
            except (OSError, ValueError) as problem:
                self._refuse(launch, start_error(launch, problem))
                return
            undo.pop_all()
        tree = ProcessTree(launch, process, log, tag=tag, grace_sec=grace_sec, now=time.monotonic())
        self.running[tree.key] = tree
        if tree.is_limited:
            self._watch_at = min(self._watch_at, time.monotonic() + _WATCH_SEC)
        self._confirm(tree)

    def see_ends(self, now: float) -> None:
        """Looks for the ends of leaders; if there is none, reaps orphans."""
        if not [tree for tree in self.running.values() if not tree.has_ended and tree.see_end(now)]:
            adopted({tree.pid for tree in self.running.values()})

    def enforce(self, now: float) -> None:
        """Enforces time limits, and less often output limits."""
        for tree in self.running.values():
            tree.enforce(now)
        if now >= self._watch_at:
            for tree in self.running.values():
                tree.watch_output()
            self._watch_at = now + _WATCH_SEC if any(tree.is_limited for tree in self.running.values()) else NEVER

    def lose(self) -> None:
        """Marks the running programs as lost: they are killed from outside and are not at fault."""
        for tree in self.running.values():
            tree.lost = tree.lost or not tree.has_ended

    def terminate(self, now: float, grace_sec: float | None = None) -> None:
        for tree in self.running.values():
            tree.terminate(now, grace_sec)

    def terminate_one(self, key: str, now: float) -> None:
        if key in self.running:
            self.running[key].terminate(now)

    def extend(self, key: str, now: float, sec: float) -> bool:
        return key in self.running and self.running[key].extend(now, sec)

    def kill(self, keep: Collection[str] = ()) -> set[ProcessTree]:
        """SIGKILL to every tree that is not kept."""
        others = {tree for tree in self.running.values() if tree.key not in keep}
        for tree in others:
            tree.kill()
        return others

    def kill_strays(self, keep: Collection[str]) -> set[int]:
        """SIGKILL to every process with this run's mark and without a kept key; returns those found alive."""
        return kill_where(
            lambda pid: (mark := mark_of(pid)) is not None and mark not in keep and self._house.owns(mark)
        )

    def settle(self, now: float) -> dict[ProcessTree, Exit]:
        """The trees that are completely gone, with their recorded ends. All ends of one turn share one flush."""
        over = {tree: tree.close() for tree in self._cleared(now)}
        if over:
            self._record(over)
            for tree, ended in over.items():
                del self.running[tree.key]
                self._ended[tree.key] = ended
        return {tree: ended.exit for tree, ended in over.items()}

    def give_up(self) -> None:
        """Kills everything and records nothing."""
        give_up_at = time.monotonic() + _GONE_WITHIN_SEC
        self.kill()
        while self.running and (now := time.monotonic()) < give_up_at:
            self.see_ends(now)
            for tree in self._cleared(now):
                del self.running[tree.key]
            time.sleep(_SWEEP_PAUSE_SEC)

    def close(self) -> None:
        """Leaves the control group; one with processes that are still exiting is left to the guard."""
        if self._cgroup is not None and cgroups.leave(self._cgroup):
            self._house.cgroup.unlink(missing_ok=True)

    def _is_ours(self, pid: int, tags: Collection[int]) -> bool:
        mark = mark_of(pid)
        return (mark is not None and self._house.owns(mark)) or tag_of(pid) in tags

    def _intend(self, launch: Launch) -> int:
        self._next_tag += 1
        try:
            self._ledger.starting(launch.key, launch.log_path, self._next_tag, time.time())
            return self._next_tag
        except OSError as problem:
            if is_disk_full(problem):
                raise DiskFullError(f"{self._house.ledger}: the disk is full", hint=FREE_SOME_SPACE) from problem
            raise self._unrecorded(problem) from problem

    def _confirm(self, tree: ProcessTree) -> None:
        try:
            self._ledger.started(tree.key, tree.pid, tree.start_ticks, self._boot_id)
        except OSError as problem:
            raise self._unrecorded(problem) from problem

    def _refuse(self, launch: Launch, error: str) -> None:
        begun = Begun(launch.log_path, self._intend(launch))
        try:
            self._ledger.ended(launch.key, refusal(error))
        except OSError as problem:
            raise self._unrecorded(problem) from problem
        self._ended[launch.key] = begun.ended(refusal(error))

    def _record(self, over: dict[ProcessTree, EndRecord]) -> None:
        try:
            for tree, ended in over.items():
                self._ledger.ended(tree.key, ended.exit)
            # A program that adds to another's log is a check: if a power cut loses its end, it runs again.
            if not all(tree.adds_to_a_log for tree in over):
                self._ledger.sync()
        except OSError as problem:
            raise self._unrecorded(problem) from problem

    def _unrecorded(self, problem: OSError) -> Unrecorded:
        return Unrecorded(f"the ledger {self._house.ledger} cannot be written ({problem.strerror})")

    def _cleared(self, now: float) -> list[ProcessTree]:
        """The trees that are completely gone. The children of orphans show up after the orphans are reaped."""
        looked_at = [tree for tree in self.running.values() if tree.has_ended and tree.look_at <= now]
        cleared = [tree for tree in looked_at if tree.clear(now)]
        if not cleared:
            return []
        strays = {pid: self._owner(pid) for pid in adopted({tree.pid for tree in self.running.values()})}
        return [tree for tree in cleared if not _end_strays(tree, strays) or tree.wait_longer(now)]

    def _owner(self, pid: int) -> ProcessTree | None:
        """The tree an orphan belongs to; None where that is unknown."""
        tag, mark, session = tag_of(pid), mark_of(pid), stat_fields(pid)[3:4]
        for is_its in (
            lambda tree: tree.tag == tag,
            lambda tree: tree.key == mark,
            lambda tree: [b"%d" % tree.pid] == session,
        ):
            for tree in self.running.values():
                if is_its(tree):
                    return tree
        return None


def _end_strays(tree: ProcessTree, strays: dict[int, ProcessTree | None]) -> bool:
    """Kills a tree's orphans, and orphans of unknown origin, which may be this tree's too."""
    found = [pid for pid, owner in strays.items() if owner is tree or owner is None]
    for pid in found:
        kill_child(pid)
    return bool(found)

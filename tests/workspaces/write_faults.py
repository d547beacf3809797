"""Kills or fails the writer at its n-th system call, for every n, and looks at what is left.

Run as a program: `write_faults.py FOLDER PHASE FAULT [PLANTED_BUG]` prints one JSON line
{"points": how many calls were hit, "bad": [[n, call, what was wrong], ...]}.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ganger.errors import DiskFullError, GangerError
from ganger.workspaces.direct import backup, write
from ganger.workspaces.files.tree import Tree
from ganger.workspaces.rules.writes import ChangeSet, FileChange
from tests.workspaces.write_harness import Entry, Place, append, create, make_place, plan, replace, snapshot

CALLS = """
    open close dup read write fsync fchmod fchown utime stat fstat mkdir rmdir unlink link rename scandir chmod
"""
REFUSED, DISK_FULL = 3, 4
FILES = {"a.txt": "alpha\n" * 30, "sub/b.sh": "#!/bin/sh\n", "sub/keep.txt": "keep\n", "c.txt": "same\n"}
WRITES = [
    replace("a.txt", "ALPHA\n" * 40),
    create("new/deep/n.txt", "new\n" * 10),
    append("sub/b.sh", "exit 0\n"),
    create("sub/e.txt", ""),
    replace("c.txt", "same\n"),
]


class Faults:
    """Counts the calls of one process and strikes at one of them."""

    def __init__(self, strike_at: int, fault: str, note: int) -> None:
        self.count = 0
        self.strike_at = strike_at
        self.fault = fault
        self.note = note
        for name in CALLS.split():
            setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.count != self.strike_at:
                return real(*arguments, **options)
            os.pwrite(self.note, f"{name:20}".encode(), 0)
            if name == "write":
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            if name == "close":
                real(*arguments)
            if self.fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(getattr(errno, self.fault), "planted")

        return call


def in_child(strike_at: int, fault: str, act: Callable[[], object]) -> tuple[int, str]:
    """Exit status (negative signal) of one struck attempt, and the call that was struck ("" when none was)."""
    note = os.memfd_create("struck")
    child = os.fork()
    if child == 0:
        Faults(strike_at, fault, note)
        status = 0
        try:
            act()
        except DiskFullError:
            status = DISK_FULL
        except GangerError:
            status = REFUSED
        os._exit(status)
    _, status = os.waitpid(child, 0)
    struck = os.pread(note, 20, 0).decode().strip()
    os.close(note)
    return os.waitstatus_to_exitcode(status), struck


def fresh(folder: Path) -> tuple[Place, ChangeSet, dict[str, Entry]]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    place = make_place(folder, FILES)
    (place.root / "sub/b.sh").chmod(0o755)
    return place, plan(place, WRITES), snapshot(place.root)


def prepare(place: Place, changes: ChangeSet) -> None:
    with Tree(place.root) as tree:
        backup.prepare_backup(tree, changes, place.folder)


def apply_all(place: Place, changes: ChangeSet) -> None:
    with Tree(place.root) as tree:
        write.apply_changes(tree, changes, place.folder)


def is_final(place: Place) -> bool:
    texts = {one.path: one.content for one in plan_of(place).files}
    return all((place.root / path).read_bytes() == content for path, content in texts.items())


def plan_of(place: Place) -> ChangeSet:
    reference = place.root.parent / "reference"
    shutil.rmtree(reference, ignore_errors=True)
    reference.mkdir()
    changes = plan(make_place(reference, FILES), WRITES)
    shutil.rmtree(reference)
    return changes


def after_kill(place: Place, changes: ChangeSet, before: dict[str, Entry], phase: str) -> str:
    """Recover as a restarted lead would, and say what is wrong."""
    if phase == "prepare":
        if snapshot(place.root) != before:
            return "the tree was touched before its backup was whole"
        prepare(place, changes)
        apply_all(place, changes)
        if not is_final(place):
            return "the second attempt did not land"
    for attempt in ("first", "second"):
        write.roll_back(place.root, place.folder)
        if snapshot(place.root) != before:
            return f"the {attempt} rollback left a difference"
    return ""


def after_error(place: Place, before: dict[str, Entry], status: int, fault: str) -> str:
    """An apply that failed has already put everything back; one that passed has landed."""
    if status == 0:
        return "" if is_final(place) else "it passed without landing"
    if status != (DISK_FULL if fault == "ENOSPC" else REFUSED):
        return f"it ended with status {status}"
    return "" if snapshot(place.root) == before else "it left a difference"


def one_point(folder: Path, phase: str, fault: str, number: int) -> tuple[str, str]:
    """The struck call ("" when there were fewer) and what was wrong afterwards ("" when nothing was)."""
    place, changes, before = fresh(folder)
    if phase != "prepare":
        prepare(place, changes)
    if phase == "rollback":
        apply_all(place, changes)
    with Tree(place.root) as tree:
        acts: dict[str, Callable[[], object]] = {
            "prepare": lambda: backup.prepare_backup(tree, changes, place.folder),
            "apply": lambda: write.apply_changes(tree, changes, place.folder),
            "rollback": lambda: write.roll_back(place.root, place.folder),
        }
        status, struck = in_child(number, fault, acts[phase])
    if not struck:
        return "", ""
    try:
        if fault == "kill":
            return struck, after_kill(place, changes, before, phase)
        return struck, after_error(place, before, status, fault)
    except GangerError as problem:
        return struck, problem.message


def sweep(folder: Path, phase: str, fault: str) -> dict[str, Any]:
    bad = []
    for number in itertools.count(1):
        struck, wrong = one_point(folder, phase, fault, number)
        if not struck:
            break
        if wrong:
            bad.append([number, struck, wrong])
    return {"points": number - 1, "bad": bad}


def swap(owner: Any, name: str, value: Any) -> Any:
    """Put a mistake in place of a part; returns the real one."""
    real = getattr(owner, name)
    setattr(owner, name, value)
    return real


def index_first(tree: Tree, changes: ChangeSet, store: Tree, folder: Path) -> backup.Backup:
    """Says the backup is whole before the copies are there."""
    whole: backup.Backup = REAL["_copy_all"](tree, changes, store, folder)
    for copy in [entry.copy for entry in whole.entries if entry.copy]:
        store.unlink(copy)
    backup._place(store, backup.INDEX_NAME, json.dumps(backup._index_of(whole)).encode())
    again: backup.Backup = REAL["_copy_all"](tree, changes, store, folder)
    store.unlink(backup.INDEX_NAME)
    return again


def in_place(tree: Tree, change: FileChange, _: str, progress: write._Progress) -> None:
    """Overwrites the file itself."""
    progress.begun.append(change.path)
    progress.taken.append(change)
    target = tree.root / change.path
    target.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(fd, change.content)
    os.close(fd)


def no_sweep(*_: object) -> None:
    """Leaves the temporary files of a killed writer."""


def forgetful(root: Path, folder: Path) -> write.RollbackReport:
    """Throws the index away before the rollback is done."""
    whole = backup.load_backup(folder)
    (folder / backup.INDEX_NAME).unlink(missing_ok=True)
    real_load = swap(write, "load_backup", lambda _: whole)
    try:
        report: write.RollbackReport = REAL["roll_back"](root, folder)
        return report
    finally:
        swap(write, "load_backup", real_load)


REAL: dict[str, Any] = {"_copy_all": backup._copy_all, "roll_back": write.roll_back}
PLANTED: dict[str, tuple[Any, str, Any]] = {
    "index-first": (backup, "_copy_all", index_first),
    "in-place": (write, "_land", in_place),
    "no-sweep": (write._Rollback, "_sweep", no_sweep),
    "forgetful-rollback": (write, "roll_back", forgetful),
}


if __name__ == "__main__":
    if len(sys.argv) > 4:
        swap(*PLANTED[sys.argv[4]])
    print(json.dumps(sweep(Path(sys.argv[1]), sys.argv[2], sys.argv[3])))

"""A real process swaps a directory and a link for ever while the writer writes: nothing ever lands outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ganger.errors import GangerError
from ganger.workspaces.direct.write import discard_backup
from ganger.workspaces.files.tree import Draft, Tree
from tests.workspaces.write_harness import Place, create, fast_folder, land, make_place

SWAPPER = """
import ctypes, sys
rename = ctypes.CDLL(None, use_errno=True).renameat2
one, other = sys.argv[1].encode(), sys.argv[2].encode()
if rename(-100, one, -100, other, 2) != 0:
    raise SystemExit("no RENAME_EXCHANGE here")
print("swapping", flush=True)
while True:
    rename(-100, one, -100, other, 2)
"""


@contextmanager
def raced_place() -> Iterator[Place]:
    """`ws/sub` is by turns a directory and a link to the outside."""
    with fast_folder() as top:
        place = make_place(top, {"sub/inner/x": "x"})
        (place.outside / "inner").mkdir()
        (place.root / "link").symlink_to(place.outside)
        argv = [sys.executable, "-c", SWAPPER, str(place.root / "sub"), str(place.root / "link")]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as swapper:
            try:
                assert swapper.stdout is not None
                assert swapper.stdout.readline() == "swapping\n"
                yield place
            finally:
                swapper.kill()


def escaped(place: Place) -> int:
    return len(list(place.outside.iterdir())) + len(list((place.outside / "inner").iterdir())) - 2


def naive_write(root: Path, path: str, data: bytes) -> None:
    """The mistake: look where the path leads, then open it by name."""
    target = root / path
    if os.path.realpath(target).startswith(f"{os.path.realpath(root)}{os.sep}"):
        target.write_bytes(data)


def test_the_race_catches_a_writer_that_checks_and_then_opens() -> None:
    """T18: the harness is proved before it is believed."""
    with raced_place() as place:
        for number in range(50_000):
            try:
                naive_write(place.root, f"sub/inner/{number % 50}.txt", b"naive")
            except OSError:
                continue
            if escaped(place):
                return
    raise AssertionError("the naive writer never escaped: the race does not race")


def test_no_raced_write_lands_outside() -> None:
    """T18: some thousand writes by descriptor, many of them through and many refused, none outside."""
    through = refused = 0
    with raced_place() as place, Tree(place.root) as tree:
        for number in range(6000):
            try:
                tree.land(f"sub/inner/{number}.txt", Draft(b"safe", 0o644), expected=None, tag="race")
                through += 1
            except (GangerError, OSError):
                refused += 1
        assert escaped(place) == 0
    assert through > 50
    assert refused > 50


def test_no_raced_change_set_lands_outside() -> None:
    """T18: plan, backup, apply and the rollback after a refusal are as safe as a single write."""
    outcomes = set()
    with raced_place() as place:
        for number in range(300):
            try:
                land(place, [create(f"top{number}.txt"), create(f"sub/inner/{number}/new.txt")])
                outcomes.add("landed")
            except GangerError as refusal:
                outcomes.add(refusal.code)
            discard_backup(place.folder)
        assert escaped(place) == 0
    assert outcomes >= {"landed", "PATH_SYMLINK"}

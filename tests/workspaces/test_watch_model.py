"""Random agents: whatever they do in place, undo leads back, and what is accepted is the next start."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import given, strategies as st

from tests.workspaces.watch_harness import watch_of, watched
from tests.workspaces.write_harness import fast_folder, snapshot

NAMES = ["a", "b", "d/a", "d/b", "d/e/a", "d/e/f/a", "\udcff"]
FILES = {"a": "one\n", "d/a": "two\n", "d/e/a": "three\n", "k/only": "four\n"}


def write(path: Path, other: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"written {other.name!r}\n", encoding="utf-8", errors="surrogateescape")


def remove(path: Path, _: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def move(path: Path, other: Path) -> None:
    os.rename(path, other)


def link(path: Path, other: Path) -> None:
    path.symlink_to(other.name)


def folder(path: Path, _: Path) -> None:
    path.mkdir(parents=True)


def mode(path: Path, other: Path) -> None:
    if not path.is_symlink():
        path.chmod(0o600 | (len(other.name) * 0o11) | (0o100 if path.is_dir() else 0))


def pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


ACTS: list[Callable[[Path, Path], None]] = [write, write, remove, move, link, folder, mode, pipe]
STEPS = st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12)


def act(root: Path, steps: list[tuple[Callable[[Path, Path], None], str, str]]) -> None:
    for step, name, other in steps:
        path = root / name
        # A pipe would block its writer for ever, and a link would lead elsewhere.
        if not any(one.is_symlink() or one.is_fifo() for one in (path, *path.parents)) or step in (remove, move):
            with suppress(OSError):
                step(path, root / other)


def held(root: Path, less: set[str]) -> set[tuple[str, tuple[str, int, bytes]]]:
    """Everything but the times: to write a file again as it was is no change."""
    return {(path, one[:3]) for path, one in snapshot(root).items() if path not in less}


@given(STEPS, STEPS)
def test_undo_leads_back_and_acceptance_leads_on(
    first: list[tuple[Callable[[Path, Path], None], str, str]],
    second: list[tuple[Callable[[Path, Path], None], str, str]],
) -> None:
    """T18 W02: on every random tree, byte for byte, with modes, links and folders; also from a second process."""
    with fast_folder() as above:
        here = watched(above, FILES)
        act(here.root, first)
        here.watch.accept(here.watch.changed())
        assert here.watch.changed().is_nothing
        accepted = dict(held(here.root, set()))
        act(here.root, second)
        again = watch_of(here.place)
        assert again.resume()
        change = again.changed()
        gone_pipes = {one.path for one in change.touched if one.before and one.before.mode == 0o010000}
        assert set(again.undo(change)) == gone_pipes
        assert held(here.root, gone_pipes) == accepted.items() - {(path, accepted[path]) for path in gone_pipes}

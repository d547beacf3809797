"""Kills the watch at its n-th system call, for every n, and looks at what is left.

`python -m tests.workspaces.watch_faults FOLDER PHASE FAULT [STEP [PLANTED_BUG]]` strikes at every STEP-th call and
prints one JSON line: {"points": how many calls were hit, "bad": [[n, call, what was wrong], ...]}.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ganger.errors import GangerError
from ganger.workspaces.files import baseline, content_store, tree_links
from tests.workspaces.watch_harness import Watched, busy_agent, watch_of, watched
from tests.workspaces.write_faults import in_child
from tests.workspaces.write_harness import Place, snapshot


def fresh(folder: Path) -> Watched:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return watched(folder)


def begin(here: Watched) -> None:
    here.watch.begin()


def take_back(here: Watched) -> None:
    change = here.watch.changed()
    here.watch.save(change, here.place.folder.parent / "edit")
    here.watch.undo(change)


def accept(here: Watched) -> None:
    here.watch.accept(here.watch.changed())


def resumed(place: Place) -> Any:
    """As a restarted lead does it."""
    watch = watch_of(place)
    return watch if watch.resume() else None


def after_undo(here: Watched) -> str:
    """Half an undo is finished by the next one, and what the agent had made is saved all the same."""
    watch = resumed(here.place)
    if watch is None:
        return "the baseline is lost"
    edit = here.place.folder.parent / "edit"
    watch.save(watch.changed(), edit)
    if lost := watch.undo(watch.changed()):
        return f"not put back: {lost}"
    if not here.is_as_before():
        return "a difference was left"
    made = {"a.txt": b"beta\n", "moved.py": b"print('app')\n", "new/dir/n.txt": b"new\n"}
    saved = {name: (edit / "files" / name).read_bytes() for name in made if (edit / "files" / name).exists()}
    return "" if saved == made else "the agent's work is lost"


def after_begin(here: Watched) -> str:
    """Whatever baseline is found, old or new, can be gone back to whole."""
    now = snapshot(here.root)
    watch = resumed(here.place)
    if watch is None:
        return "the baseline is lost"
    change = watch.changed()
    if change.lost or watch.undo(change):
        return f"the baseline cannot be gone back to: {change.lost}"
    return "" if snapshot(here.root) in (here.before, now) else "neither the old nor the new state came back"


def after_next_begin(here: Watched) -> str:
    """A restarted lead begins anew on what is there, and can go back to that."""
    now = snapshot(here.root)
    watch = watch_of(here.place)
    watch.begin()
    for name in ("a.txt", "moved.py", "new/dir/n.txt"):
        (here.root / name).write_text("the next agent")
    lost = watch.undo(watch.changed())
    return "" if snapshot(here.root) == now and not lost else f"the next baseline cannot be gone back to: {lost}"


PHASES: dict[str, tuple[Callable[[Watched], None], Callable[[Watched], str]]] = {
    "begin": (begin, after_begin),
    "begin-twice": (begin, after_next_begin),
    "accept": (accept, after_begin),
    "undo": (take_back, after_undo),
}


def one_point(folder: Path, phase: str, fault: str, number: int) -> tuple[str, str]:
    here = fresh(folder)
    busy_agent(here.root)
    act, look = PHASES[phase]
    status, struck = in_child(number, fault, lambda: act(here))
    if not struck:
        return "", ""
    if status == 1:
        return struck, "it ended with an error that says nothing"
    try:
        return struck, look(here)
    except GangerError as problem:
        return struck, problem.message


def sweep(folder: Path, phase: str, fault: str, step: int) -> dict[str, Any]:
    bad = []
    for number in itertools.count(1, step):
        struck, wrong = one_point(folder, phase, fault, number)
        if not struck:
            break
        if wrong:
            bad.append([number, struck, wrong])
    return {"points": (number - 1) // step, "bad": bad}


def record_in_place(self: Any, line: bytes) -> None:
    """Begins the record anew where it stands."""
    os.close(os.open(self._file, os.O_WRONLY | os.O_TRUNC))
    REAL["rewrite"](self, line)


def nothing(*_: object, **__: object) -> tuple[str, ...]:
    """Says that it is done."""
    return ()


def names_before_bytes(self: Any, temps: Any) -> None:
    """Names a content before it is written."""
    for temp, (digest, _) in temps.items():
        os.rename(self._folder / temp, self._folder / f"{digest}.x")
        os.close(os.open(self._folder / digest, os.O_WRONLY | os.O_CREAT))
        os.rename(self._folder / f"{digest}.x", self._folder / temp)
    REAL["settle"](self, temps)


REAL: dict[str, Any] = {"rewrite": baseline.Baseline._rewrite, "settle": content_store.ContentStore.settle}
PLANTED: dict[str, tuple[Any, str, Any]] = {
    "record-in-place": (baseline.Baseline, "_append", record_in_place),
    "unsaved": (sys.modules["ganger.workspaces.direct.watch"], "save_edit", nothing),
    "names-before-bytes": (content_store.ContentStore, "settle", names_before_bytes),
    "no-links": (tree_links.TreeLinks, "place_link", nothing),
}


if __name__ == "__main__":
    if len(sys.argv) > 5:
        setattr(*PLANTED[sys.argv[5]])
    print(json.dumps(sweep(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(([*sys.argv, "1"])[4]))))

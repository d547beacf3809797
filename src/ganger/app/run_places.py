"""Where runs are kept: in the project's state folder, or in the user's if agents write to the project itself.

The user's folder for a project lists what in the project's own state folder was made by Ganger. The list is created
before the first agent could write there, and only leads add to it. Nothing else there is ever trusted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.config import Project
from ganger.core.names import file_stem
from ganger.errors import GangerError
from ganger.local.run_folder import RunFolder, make_private, replace_file, sweep_unfinished
from ganger.local.scratch import sweep
from ganger.stores.table import has_begun, runs_in, stores_of
from ganger.worker.folders import (
    BOOK,
    LED,
    lead_number,
    listed,
    newest_first,
    read_book,
    run_folders as folders_of_runs,
)

# What git modes keep next to the runs of a project.
_STORES = ("repo.git", "repos")


def runs_of(project: Project) -> list[RunFolder]:
    """Every run of the project, newest first."""
    private = _adopted(project)
    found = newest_first(folders_of_runs(str(project.shown_path), str(private or ""), kept_in=_kept_in))
    return [_folder(project, Path(path)) for path in found]


def _kept_in(above: str) -> list[str]:
    return [str(run) for run in runs_in(Path(above))]


def note_lead(project: Project, folder: RunFolder) -> None:
    """Makes this run the newest: the one that commands use when no run is named."""
    others = [lead_number(str(run.path)) for run in runs_of(project) if run.path != folder.path]
    last, own = max(others, default=0), lead_number(str(folder.path))
    if own <= last:
        noted = {"number": last + 1, "folder": folder.path.name}
        replace_file(folder.path / LED, json.dumps(noted) + "\n")


def place_of(project: Project, run_id: str) -> RunFolder:
    """Where a run is kept, or would be kept if it began now."""
    stem = file_stem(run_id)
    known = next((folder for folder in runs_of(project) if folder.path.name == stem), None)
    return known or _folder(project, project.state_path / stem)


def at_place(project: Project, folder: RunFolder) -> Project:
    """The project as seen by a lead of this run: what is kept next to its runs is kept next to this one."""
    return replace(project, place=folder.path.parent)


def settle(project: Project, run_id: str) -> tuple[Project, RunFolder]:
    """Creates the folder of a run that is about to be led, and the list of what Ganger made; raises if something is
    there that Ganger did not make."""
    folder = place_of(project, run_id)
    if folder.shown is not None or (project.is_exposed and project.private is not None):
        _make_book(project)
    _note_own(project, folder)
    folder.make(passable=_has_agents_of_others(project))
    return at_place(project, folder), folder


def sweep_left_over(project: Project, folder: RunFolder) -> None:
    """Removes temporary files of leads that were killed."""
    sweep()
    for place in {folder.path, project.state_path, folder.known_as}:
        sweep_unfinished(place)


def stays_within_reach(project: Project, folder: RunFolder) -> str:
    """The warning for a run that began where agents can write; empty for any other."""
    if folder.shown is not None or not project.is_exposed or not folder.path.is_relative_to(project.shown_path):
        return ""
    return (
        f"this run began in {folder.path} and continues there, where agents without bubblewrap can write; "
        "a run with a new run_id is kept out of their reach"
    )


def _folder(project: Project, path: Path) -> RunFolder:
    files = stores_of(path).files
    if path.parent == project.shown_path:
        return RunFolder(path, store_files=files)
    shown = Path(os.path.normpath(project.shown_path / path.name))
    around = [project.root, *project.written_by_agents()]
    anchor = next((place for place in around if shown.is_relative_to(place)), project.shown_path.parent)
    return RunFolder(path, shown, anchor, files)


def _has_agents_of_others(project: Project) -> bool:
    """Whether agents run as another user: under root they run as the owner of the workspaces or of the project."""
    return os.geteuid() == 0 and (project.config.workspace.mode != "direct" or project.root.stat().st_uid != 0)


# --- the user's folder for a project ----------------------------------------------------------------------------------


def _make_book(project: Project) -> None:
    """Creates the list, with what is in the project's state folder now, before any agent could write there."""
    private = project.require_private()
    mode = 0o711 if _has_agents_of_others(project) else 0o700
    try:
        make_private(private.parent, mode)
        make_private(private, mode)
    except OSError as problem:
        raise GangerError(
            f"{private}: cannot be created ({problem.strerror}); in direct mode runs are kept there, out of reach",
            hint="fix its permissions, or set XDG_STATE_HOME to a folder of your own outside the project",
            code="NO_STATE_FOLDER",
        ) from problem
    if private.stat().st_uid not in (os.geteuid(), 0) and os.geteuid() != 0:
        raise GangerError(
            f"{private} belongs to another user",
            hint="set XDG_STATE_HOME to a folder of your own outside the project",
            code="NO_STATE_FOLDER",
        )
    book = read_book(str(private))
    root = os.path.realpath(project.root)
    if book is None:
        _write_book(private, root, _own_names(project))
    elif book.get("path") != root or book.get("inode") != project.root.stat().st_ino:
        _write_book(private, root, listed(book))


def _own_names(project: Project) -> list[str]:
    if project.shown_path.is_symlink():
        raise GangerError(
            f"{project.shown_path} is a link; in direct mode agents could point it anywhere",
            hint=f"name the real folder: state_dir = {json.dumps(str(project.shown_path.resolve()))}",
            code="STORE_FORGED",
        )
    try:
        found = sorted(project.shown_path.iterdir())
    except OSError:
        return []
    kept = runs_in(project.shown_path)
    return [path.name for path in found if path in kept or path.name in _STORES]


def _write_book(private: Path, root: str, names: list[str]) -> None:
    book = {"path": root, "inode": Path(root).stat().st_ino, "shown": names}
    replace_file(private / BOOK, json.dumps(book, indent=1) + "\n")


def _note_own(project: Project, folder: RunFolder) -> None:
    """Adds a folder to the project's list, if it has one, before a lead creates it in the project's state folder."""
    book = read_book(str(project.private)) if project.private is not None else None
    if book is None or project.private is None:
        return
    known = listed(book)
    used = [folder.path.name] if folder.shown is None else []
    used += _STORES if folder.shown is None and project.config.workspace.mode != "direct" else ()
    for name in used:
        if name not in known and os.path.lexists(project.shown_path / name):
            raise _unknown(project.shown_path / name, project.private / name)
    kept_there = folder.shown is not None and folder.shown in runs_in(folder.shown.parent)
    if folder.shown is not None and kept_there and not has_begun(folder.path):
        raise _unknown(folder.shown, folder.path)
    fresh = [name for name in used if name not in known]
    if fresh:
        _write_book(project.private, os.path.realpath(project.root), [*known, *fresh])


def _unknown(found: Path, private: Path) -> GangerError:
    return GangerError(
        f"{found} is not on Ganger's own list, and agents could write there, so it is not trusted",
        hint=f"remove it; or, if it is yours and you know what is in it: mv {found} {private}",
        code="STORE_FORGED",
    )


# --- projects that moved, and those that are gone ---------------------------------------------------------------------


def _adopted(project: Project) -> Path | None:
    """The user's folder for the project; the previous one, if the project's folder was renamed."""
    private = project.private
    if private is None or read_book(str(private)) is not None:
        return private
    left = next(_led_to(project), None)
    if left is None:
        return private
    book = read_book(str(left)) or {}
    before = Path(str(book.get("path", "")))
    if _is_there(before, book):
        # A copy of a project that still exists has runs of its own.
        return private
    if book.get("inode") != project.root.stat().st_ino:
        raise GangerError(
            f"the runs of this project are kept in {left}, for {before}, which is gone; this is another folder",
            hint=f"to move them here: mv {left} {private}; to start again, remove the links in {project.shown_path}",
            code="PROJECT_MOVED",
        )
    kept = [Path(path) for path in folders_of_runs("", str(left), kept_in=_kept_in)]
    if any(stores_of(run).leader(run) is not None for run in kept):
        raise GangerError(
            f"the project was moved from {before} while a run of it is led",
            hint="stop that run first: ganger stop",
            code="PROJECT_MOVED",
        )
    left.rename(private)
    _write_book(private, os.path.realpath(project.root), listed(book))
    return private


def _is_there(before: Path, book: dict[str, object]) -> bool:
    try:
        return before.stat().st_ino == book.get("inode")
    except OSError:
        return False


def _led_to(project: Project) -> Iterator[Path]:
    """This user's folders that the links in a project's state folder point to."""
    assert project.private is not None
    try:
        runs = sorted(project.shown_path.iterdir())
    except OSError:
        return
    for target in (target for run in runs for target in _links_in(run)):
        folder = target.parent.parent
        if folder.parent == project.private.parent and folder != project.private and (folder / BOOK).is_file():
            yield folder


def _links_in(run: Path) -> list[Path]:
    try:
        return [path.readlink() for path in sorted(run.iterdir()) if path.is_symlink()]
    except OSError:
        return []


@dataclass(frozen=True, slots=True)
class GoneProject:
    """A user's folder whose project no longer exists."""

    folder: Path
    project: str


def gone_projects(project: Project) -> list[GoneProject]:
    """All of this user's folders whose project is gone."""
    if project.private is None or not project.private.parent.is_dir():
        return []
    found: list[GoneProject] = []
    for folder in sorted(project.private.parent.iterdir()):
        book = read_book(str(folder))
        if book is not None and not Path(str(book.get("path", ""))).is_dir():
            found.append(GoneProject(folder, str(book.get("path", ""))))
    return found

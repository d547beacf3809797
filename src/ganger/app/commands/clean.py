"""What runs leave on disk, and what of it can be removed: only what is merged, saved, or quick to make again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ganger.app.compose import repository_of
from ganger.app.run_places import at_place, gone_projects, runs_of
from ganger.app.runs import is_led, keeper_pid, read_state, size_of
from ganger.config import Project
from ganger.core.model.run_state import RunState
from ganger.core.names import file_stem, repo_place, repo_store
from ganger.engine.resources.agent_homes import Homes
from ganger.errors import NotFoundError, StoreError
from ganger.local.run_folder import RunFolder
from ganger.workspaces.files.removal import discard
from ganger.workspaces.git.landing import KeptWork, Leftover

# Made by a run for itself; useless once no process leads the run.
_REMADE = ("checks", "pool")
NOT_REMOVED = "it could not be removed; check its permissions and the disk"
GONE = "remove it if the project is not coming back"
_HOME, _GOES_ON = "home of an agent", "a session continues in it"


@dataclass(frozen=True, slots=True)
class FreedPlace:
    """One folder or file on disk. `kept` says where else its content is; content kept nowhere else stays."""

    run: str
    path: Path
    what: str
    bytes: int
    goes: bool
    kept: str

    def as_json(self) -> dict[str, object]:
        values = {name: getattr(self, name) for name in ("run", "what", "bytes", "goes", "kept")}
        return {**values, "path": str(self.path)}


def look(project: Project, run_id: str | None = None) -> list[FreedPlace]:
    """Everything that runs left, removable pieces first."""
    found: list[FreedPlace] = []
    for folder in runs_of(project):
        try:
            state = read_state(folder)
        except (StoreError, NotFoundError) as problem:
            # A run that cannot be read does not prevent cleaning the others.
            found.append(
                FreedPlace(folder.path.name, folder.path, "run that cannot be read", 0, False, problem.message)
            )
            continue
        if run_id is not None and state.run_id != run_id:
            continue
        found += _of_run(at_place(project, folder), folder, state)
    if run_id is None:
        found += _of_gone_projects(project)
    return sorted(found, key=lambda piece: (not piece.goes, -piece.bytes))


def _of_gone_projects(project: Project) -> Iterator[FreedPlace]:
    """Runs of projects that are gone. A moved folder looks the same, so nothing of it is removed."""
    for gone in gone_projects(project):
        yield FreedPlace("", gone.folder, f"runs of {gone.project}, which is gone", size_of(gone.folder), False, GONE)


def _of_run(project: Project, folder: RunFolder, state: RunState) -> Iterator[FreedPlace]:
    # Agents go on when their lead dies: while a keeper runs them, nothing of theirs is removed.
    led, run = is_led(folder) or keeper_pid(folder) is not None, state.run_id
    repos = sorted({spec.repo for spec in state.specs.values()} | {""})
    for place, repo, name in ((folder.path / repo_place(repo), repo, name) for repo in repos for name in _REMADE):
        path = place / name
        if path.is_dir() and (size := size_of(path)):
            kept = "in use: a process leads this run" if led else "made again when needed"
            yield FreedPlace(run, path, f"{name}{_of(repo)}", size, not led, kept)
    for repo in repos:
        # For a repository that is no longer configured it is unknown what is kept elsewhere: it stays.
        known = not repo or repo in project.config.repos
        place, store = folder.path / repo_place(repo) / "work", project.state_path / repo_store(repo)
        if known and store.is_dir() and place.is_dir():
            yield from _workspaces(project, state, repo, led=led)
    yield from _homes(folder, state, led=led)


def _homes(folder: RunFolder, state: RunState, *, led: bool) -> Iterator[FreedPlace]:
    """Homes of agents: useless once no session can continue in them."""
    waiting = {
        file_stem(name)
        for name, task in state.tasks.items()
        if task.next_start.resume_session or name in state.index.running
    }
    for home in sorted(home for home in (folder.path / "homes").glob("*@*") if home.is_dir()):
        needed = home.name.rpartition("@")[0] in waiting
        kept = "in use: a process leads this run" if led else _GOES_ON if needed else "no longer needed"
        yield FreedPlace(state.run_id, home, _HOME, size_of(home), not led and not needed, kept)


def _of(repo: str) -> str:
    return f" of {repo}" if repo else ""


def _workspaces(project: Project, state: RunState, repo: str, *, led: bool) -> Iterator[FreedPlace]:
    run = state.run_id
    waiting = {
        (file_stem(name), task.work.workspace_of)
        for name, task in state.tasks.items()
        if task.next_start.resume_session or task.next_start.answer_log or name in state.index.running
    }

    def why_kept(left: Leftover) -> str:
        return "the attempt that began in it continues" if (left.task, left.attempt) in waiting else left.state.value

    async def leftovers() -> list[FreedPlace]:
        repository = repository_of(project, run, lambda _change, _rules: None, None, repo)
        try:
            return [
                FreedPlace(
                    run,
                    left.folder,
                    f"workspace of {left.task}, attempt {left.attempt}",
                    left.bytes,
                    not led and left.state is not KeptWork.UNSAVED and (left.task, left.attempt) not in waiting,
                    "in use: a process leads this run" if led else why_kept(left),
                )
                for left in await repository.leftovers()
            ]
        finally:
            await repository.close()

    yield from asyncio.run(leftovers())


def free(pieces: list[FreedPlace]) -> list[FreedPlace]:
    """Removes what can be removed and returns the pieces as they are now; what could not be removed says so."""
    left: list[FreedPlace] = []
    for piece in pieces:
        if piece.what == _HOME and not piece.goes and piece.kept == _GOES_ON:
            # The session stays; the copy of the login for a process that is gone is removed.
            Homes(piece.path.parent.parent, piece.path.parent, discard).forget(piece.path)
        gone = piece.goes and discard(piece.path)
        left.append(piece if gone or not piece.goes else replace(piece, goes=False, kept=NOT_REMOVED))
    return left

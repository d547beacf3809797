"""The sandbox that a project's settings ask for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ganger.app.delivery import path_of
from ganger.config import Project, environment
from ganger.errors import GangerError
from ganger.sandboxes.choose import AnySandbox, choose
from ganger.sandboxes.settings import SandboxSettings
from ganger.workspaces.git.git import Git


def sandbox_of(project: Project) -> AnySandbox:
    return choose(sandbox_settings(project))


def sandbox_settings(project: Project) -> SandboxSettings:
    config = project.config.sandbox
    environ = environment()
    return SandboxSettings(
        project=project.root,
        state_dir=project.state_path,
        shown=project.shown_path if project.shown_path != project.state_path else None,
        home=Path(environ.get("HOME") or "/"),
        path=environ.get("PATH", ""),
        use=config.use,
        network=config.network,
        # Also the runs of other projects, if more than this project's was opened.
        hidden=(*project.token_files(), *([project.private.parent] if project.private is not None else [])),
        readable=tuple(granted(project, name) for name in (*config.readable, *project.config.workspace.linked)),
        writable=tuple(granted(project, name) for name in config.writable),
        repos=tuple(path_of(project, repo) for repo in project.config.repos),
        tracked=tracked_in,
        processes=config.processes,
        memory_mb=config.memory_mb,
        file_mb=config.file_mb,
        in_place=project.config.workspace.mode == "direct",
    )


def tracked_in(root: str, paths: Sequence[str]) -> frozenset[str]:
    """Which of these files are in the git history of the folder; none without a history."""
    if not Path(root, ".git").is_dir():
        return frozenset()
    try:
        names = [os.path.relpath(path, root) for path in paths]
        told = Git(Path(root, ".git")).ask("ls-files", "-z", "--", *names, doing=f"looking at {root}")
    except GangerError:
        return frozenset()
    return frozenset(f"{root}/{name}" for name in told.text.split("\0") if name)


def granted(project: Project, name: str) -> Path:
    return project.root / Path(name).expanduser()

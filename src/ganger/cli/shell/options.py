"""Options and small steps that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ganger.cli.shell.main import printable

if TYPE_CHECKING:
    from ganger.config import Project
    from ganger.core.model.run_state import RunState
    from ganger.local.run_folder import RunFolder

F = TypeVar("F", bound=Callable[..., Any])
# Whether this command has said that it ignores invalid settings.
_IGNORED = "ganger: invalid settings are ignored"


def project_option(function: F) -> F:
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option("--project", type=kind, help="Project folder (default: upwards from here).")(function)


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(function)


def json_lines_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON document per line on stdout.")(function)


def run_option(function: F) -> F:
    return click.option("--run", "run_id", metavar="ID", help="Which run (default: the newest).")(function)


def manifest_argument(function: F) -> F:
    return click.argument("manifest", type=click.Path(path_type=Path), required=False)(function)


def open_project(project: Path | None, manifest: Path | None = None, flags: dict[str, object] | None = None) -> Project:
    from ganger.config import load_project, project_root

    return load_project(project_root(project, manifest, Path.cwd()), flags=flags)


def look_at_project(project: Path | None) -> Project:
    """For commands that look at a run or control it: invalid settings are reported and ignored."""
    from ganger.config import project_root, read_project

    found, problems = read_project(project_root(project, None, Path.cwd()))
    told = click.get_current_context().find_root().meta
    if problems and _IGNORED not in told:
        told[_IGNORED] = True
        first = problems[0]
        click.echo(f"note: {printable(first.message)} [{first.code}]; this command ignores it", err=True)
    return found


def open_run(project: Path | None, run_id: str | None) -> tuple[RunFolder, RunState]:
    """The run a command is about, with its state."""
    from ganger.app.runs import newest_run, read_state

    folder = newest_run(look_at_project(project), run_id)
    return folder, read_state(folder)


def known_task(state: RunState, task_id: str) -> str:
    from difflib import get_close_matches

    from ganger.errors import NotFoundError

    if task_id in state.tasks:
        return task_id
    close = get_close_matches(task_id, state.tasks, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "ganger tasks lists them"
    raise NotFoundError(f"run {state.run_id} has no task {task_id!r}", hint=hint)


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown_bytes(number: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1024 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return ""


def print_json(schema: str, **values: object) -> None:
    print(json.dumps({"schema": f"ganger.{schema}/1", **values}, ensure_ascii=False))

"""`ganger hooks`: hooks in agents' own sessions, and a test of the hooks and notices in `ganger.toml`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import json_option, open_project, print_json, project_option

if TYPE_CHECKING:
    from ganger.config import Project
    from ganger.hooks.claude_file import Hooked

_PROGRAMS = click.Choice(["claude"])


@click.group("hooks")
def command() -> None:
    """Keep an interactive session going until it has reported on the task it took; test your own hooks.

    A session that took a task with `ganger worker next` and then stops is asked to continue, at most three times in a
    row. Sessions that hold no task of this project are not affected.

    \b
    Examples:
      ganger hooks install claude
      ganger hooks status claude
      ganger hooks test
    """


@command.command("install")
@click.argument("program", type=_PROGRAMS)
@project_option
@json_option
def install_command(program: str, project: Path | None, as_json: bool) -> int:
    """Write hooks for Stop, TeammateIdle and SessionStart into the project's .claude/settings.json.

    Everything else in that file stays as it is, to the byte. A file that is not valid JSON, or a link, is refused.

    \b
    Examples:
      ganger hooks install claude
      ganger hooks install claude --project ~/shop
    """
    from ganger.hooks.claude_file import install

    opened, path = _opened(project)
    changed = install(path, own_call())
    if not opened.has_file:
        click.echo(f"{opened.root} has no ganger.toml; the hooks do nothing until there is one", err=True)
    return _show(program, path, as_json=as_json, changed=changed, said="installed" if changed else "already there")


@command.command("remove")
@click.argument("program", type=_PROGRAMS)
@project_option
@json_option
def remove_command(program: str, project: Path | None, as_json: bool) -> int:
    """Remove the hooks: exactly what was written, and nothing else.

    \b
    Examples:
      ganger hooks remove claude
    """
    from ganger.hooks.claude_file import remove

    _, path = _opened(project)
    changed = remove(path)
    return _show(program, path, as_json=as_json, changed=changed, said="removed" if changed else "nothing to remove")


@command.command("status")
@click.argument("program", type=_PROGRAMS)
@project_option
@json_option
def status_command(program: str, project: Path | None, as_json: bool) -> int:
    """Show which hooks are installed. The exit code is 1 unless all are installed and call this Ganger.

    \b
    Examples:
      ganger hooks status claude
      ganger hooks status claude --json
    """
    from ganger.hooks.claude_file import status

    _, path = _opened(project)
    rows = status(path, own_call())
    _show(program, path, as_json=as_json)
    if not as_json:
        for row in rows:
            click.echo(printable(f"{row.event:<14} {row.state}{f'  {row.call}' if row.call else ''}"))
    return 0 if all(row.state == "installed" for row in rows) else 1


@command.command("test")
@project_option
@json_option
def test_command(project: Path | None, as_json: bool) -> int:
    """Send a sample through every [[hooks]] entry and every [notify] channel, and show how each went.

    \b
    Examples:
      ganger hooks test
    """
    from ganger.app.notices import try_all

    outcomes = try_all(open_project(project))
    if as_json:
        rows = [{"name": name, "ok": not problem, "problem": problem or None} for name, problem in outcomes]
        print_json("hooks_test", ok=all(row["ok"] for row in rows), hooks=rows)
    for name, problem in () if as_json else outcomes:
        click.echo(printable(f"{name}: {problem or 'delivered'}"))
    if not outcomes and not as_json:
        click.echo("ganger.toml has neither [[hooks]] nor [notify]; docs/guide/hooks.md shows both")
    return 1 if any(problem for _, problem in outcomes) else 0


def own_call() -> list[str]:
    """The command that starts this same Ganger: its program, or its interpreter if it was started as a module.

    With -P, a folder named ganger in the session's working folder is not imported instead of Ganger.
    """
    for path in (Path(sys.argv[0]).absolute(), Path(sys.executable).with_name("ganger")):
        if path.name == "ganger" and path.is_file() and os.access(path, os.X_OK):
            return [str(path)]
    return [sys.executable, "-P", "-m", "ganger"]


def _opened(project: Path | None) -> tuple[Project, Path]:
    from ganger.hooks.claude_file import settings_path

    opened = open_project(project)
    return opened, settings_path(opened.root)


def _show(program: str, path: Path, *, as_json: bool, changed: bool = False, said: str = "") -> int:
    from ganger.hooks.claude_file import status

    if as_json:
        rows: list[Hooked] = status(path, own_call())
        hooks = [{"event": row.event, "state": row.state, "call": row.call or None} for row in rows]
        print_json("hooks", ok=True, program=program, file=str(path), changed=changed, hooks=hooks)
    elif said:
        click.echo(printable(f"{path}: {said}"))
    return 0

"""`ganger state`: state 2.0 files."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import (
    counted,
    json_option,
    manifest_argument,
    open_project,
    open_run,
    print_json,
    project_option,
    run_option,
)
from ganger.errors import GangerError


@click.group("state")
def command() -> None:
    """Write a new state.json for a manifest, or export the current one.

    \b
    Examples:
      ganger state init
      ganger state export > state.json
    """


@command.command("init")
@manifest_argument
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Where to write it.")
@project_option
@json_option
def init_command(manifest: Path | None, output: Path | None, project: Path | None, as_json: bool) -> int:
    """Write the state of a run that has not begun. Existing files are never overwritten."""
    from ganger.app.checks.project import check_project
    from ganger.app.compose import fresh_state_text
    from ganger.app.run_places import place_of
    from ganger.engine.output.published_files import show
    from ganger.local.run_folder import replace_file

    opened = open_project(project, manifest)
    checked = check_project(opened, manifest)
    checked.require()
    assert checked.manifest is not None
    folder = place_of(opened, checked.manifest.run_id)
    path = output or folder.known_as / folder.state.name
    if path.exists():
        raise GangerError(f"{path} already exists", hint="choose another path with --output", code="FILE_EXISTS")
    text = fresh_state_text(opened, checked)
    if output is not None:
        replace_file(output, text, mode=0o666)
    elif folder.shown is not None:
        show(folder, path.name, text)
    else:
        folder.make()
        replace_file(path, text)
    if as_json:
        print_json("state_init", path=str(path), tasks=len(checked.specs), digest=checked.digest)
    else:
        click.echo(f"wrote {path}: {counted(len(checked.specs), 'task')}, all PENDING")
    return 0


@command.command("export")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="A file instead of stdout.")
@project_option
@run_option
@json_option
def export_command(output: Path | None, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Print the current state as state 2.0, built from the events."""
    from ganger.core.state.projection import state_text
    from ganger.local.run_folder import replace_file

    _, state = open_run(project, run_id)
    text = state_text(state)
    if output is None:
        click.echo(text, nl=False)
        return 0
    replace_file(output, text, mode=0o666)
    if as_json:
        print_json("state_export", path=str(output), run_id=state.run_id)
    else:
        click.echo(f"wrote {output}")
    return 0

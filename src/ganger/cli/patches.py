"""`ganger patches`: what healing changed in prompts and settings, and how to undo it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import json_option, look_at_project, open_run, print_json, project_option, run_option
from ganger.errors import NotFoundError

if TYPE_CHECKING:
    from ganger.local.run_folder import RunFolder
    from ganger.views.history.patches import PatchRow


@click.command("patches")
@click.argument("patch_id", metavar="[ID]", required=False)
@click.option("--undo", metavar="ID", help="Leave this patch out of every attempt from now on.")
@project_option
@run_option
@json_option
def command(patch_id: str | None, undo: str | None, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Show what healers changed. A patch is in the run's folder and can be undone.

    Your own files are changed only with healing.in_place = true.

    Without an ID: a list. With an ID: that patch as a diff.

    \b
    Examples:
      ganger patches
      ganger patches patch-003
      ganger patches --undo patch-003
    """
    from ganger.app.runs import read_events
    from ganger.cli.shell.send_command import tell_run
    from ganger.views.history.patches import patch_rows

    if patch_id is not None and undo is not None:
        raise click.UsageError("Give an ID to look at or one to --undo, not both.")
    opened = open_run(project, run_id)
    folder, state = opened
    rows = patch_rows(read_events(folder, 0))
    if undo is not None:
        return tell_run(opened, "undo_patch", {"patch": _known(rows, undo).id}, as_json=as_json)
    if patch_id is not None:
        row = _known(rows, patch_id)
        text = _shown(project, folder, row)
        if as_json:
            print_json("patch", run_id=state.run_id, **row.as_json(), text=text)
        else:
            click.echo(printable("\n".join([_line(row), "", text]).rstrip()))
        return 0
    if as_json:
        print_json("patches", run_id=state.run_id, patches=[row.as_json() for row in rows])
        return 0
    for row in rows:
        click.echo(printable(_line(row)))
    if not rows:
        click.echo(f"run {state.run_id}: no healer has patched anything")
    return 0


def _line(row: PatchRow) -> str:
    state = "active" if row.active else "undone"
    return f"{row.id}  round {row.round}  {state}  {row.target} {row.operation}  {row.where}  touches {row.touched}"


def _known(rows: list[PatchRow], patch_id: str) -> PatchRow:
    found = next((row for row in rows if row.id == patch_id), None)
    if found is None:
        raise NotFoundError(f"this run has no patch {patch_id!r}", hint="ganger patches lists them")
    return found


def _shown(project: Path | None, folder: RunFolder, row: PatchRow) -> str:
    """The patch's text, with the values handed to the healer masked."""
    from ganger.app.masks import masker_of

    return masker_of(look_at_project(project)).text(_text(folder, row))


def _text(folder: RunFolder, row: PatchRow) -> str:
    """A diff for a patch of a file, the text of a hint, the numbers of a setting."""
    from ganger.engine.prompts.patched_prompts import logged_hint

    if row.settings:
        return "\n".join(f"{name} = {value:g}" for name, value in row.settings)
    if not row.file.endswith(".json"):
        return logged_hint(folder.path, row.file) or "(the healer's log that held this hint is gone)"
    try:
        return (folder.path / row.file).with_suffix(".diff").read_text(encoding="utf-8")
    except OSError as error:
        raise NotFoundError(
            f"the diff of {row.id} cannot be read ({error.strerror})", hint=f"ganger patches --undo {row.id}"
        ) from error

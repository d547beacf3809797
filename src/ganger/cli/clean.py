"""`ganger clean`: removes folders whose content is merged or saved, and prints how much space that frees."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ganger.cli.shell.options import counted, json_option, open_project, print_json, project_option, shown_bytes

_SHOWN = 40


@click.command("clean")
@click.option("--dry-run", is_flag=True, help="Only show what would be freed.")
@click.option("--run", "run_id", metavar="ID", help="Only this run (default: all).")
@project_option
@json_option
def command(dry_run: bool, run_id: str | None, project: Path | None, as_json: bool) -> int:
    """Remove folders of runs whose content is merged, saved, or quick to make again.

    Logs, events, saved work and the commits of every run stay. A workspace whose work is saved nowhere else is
    never removed: it is listed, with what to do.

    \b
    Examples:
      ganger clean --dry-run
      ganger clean
      ganger clean --run tonight --json
    """
    from ganger.app.commands.clean import GONE, free, look

    pieces = look(open_project(project), run_id)
    if not dry_run:
        pieces = free(pieces)
    going = [piece for piece in pieces if piece.goes]
    freed = sum(piece.bytes for piece in going)
    if as_json:
        print_json("clean", dry_run=dry_run, freed_bytes=freed, pieces=[piece.as_json() for piece in pieces])
        return 0
    for piece in pieces[:_SHOWN]:
        mark = ("would free" if dry_run else "freed") if piece.goes else "kept"
        whose = f"{piece.run}: " if piece.run else ""
        click.echo(f"{mark:<10} {shown_bytes(piece.bytes):>9}  {whose}{piece.what} ({piece.kept})")
        if piece.kept == GONE:
            click.echo(f"{'':<21}rm -r {shlex.quote(str(piece.path))}")
        if piece.kept == "unsaved":
            click.echo(f"{'':<21}look at {piece.path}, and remove it yourself if you no longer need it")
    if len(pieces) > _SHOWN:
        click.echo(f"and {len(pieces) - _SHOWN} more")
    click.echo(f"{shown_bytes(freed)} {'would be freed' if dry_run else 'freed'} ({counted(len(going), 'folder')})")
    return 0

"""`ganger land`: moves your branch to what a run merged."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.options import counted, json_option, open_project, print_json, project_option, run_option

_DONE = {"fast-forward": "is now at", "merge": "is now at the verified merge"}


@click.command("land")
@click.option("--branch", default="", metavar="NAME", help="Make or move this branch instead; your checkout stays.")
@click.option("--dry-run", is_flag=True, help="Only say what would move.")
@project_option
@run_option
@json_option
def command(branch: str, dry_run: bool, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Move your checked-out branch to the commits a run has verified and merged.

    Until you do, a run never touches your checkout. Where your branch went on meanwhile, both are merged and the
    merge is verified before anything moves. Uncommitted work in the way is never overwritten.

    \b
    Examples:
      ganger land --dry-run
      ganger land
      ganger land --branch ganger/tonight
    """
    from ganger.land import land
    from ganger.runs import newest_run, read_state

    opened = open_project(project)
    folder = newest_run(opened, run_id)
    outcome = land(
        opened,
        folder,
        read_state(folder),
        say=lambda text: click.echo(text, err=True),
        branch=branch,
        dry_run=dry_run,
    )
    if as_json:
        print_json("land", dry_run=dry_run, **outcome.as_json())
    elif outcome.how == "nothing":
        click.echo(f"{outcome.branch or 'HEAD'} has everything this run merged already")
    else:
        verb = "would move to" if dry_run else _DONE.get(outcome.how, "is now at")
        commits = counted(outcome.commits, "commit")
        click.echo(f"{outcome.branch or 'HEAD'} {verb} {outcome.after[:12]} ({outcome.how}, {commits})")
    return 0

"""`ganger land`: moves your branch to the commits a run merged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.options import counted, json_option, open_project, print_json, project_option, run_option

if TYPE_CHECKING:
    from ganger.app.commands.land import LandOutcome

_DONE = {"fast-forward": "is now at", "merge": "is now at the verified merge"}


@click.command("land")
@click.option("--branch", default="", metavar="NAME", help="Create or move this branch instead; your checkout stays.")
@click.option("--repo", metavar="NAME", help="Only this repository; `.` is the project (default: all of the run).")
@click.option("--dry-run", is_flag=True, help="Only show what would move.")
@project_option
@run_option
@json_option
def command(
    branch: str, repo: str | None, dry_run: bool, project: Path | None, run_id: str | None, as_json: bool
) -> int:
    """Move your checked-out branch to the commits a run has verified and merged, in each repository it worked on.

    Until then a run never touches your checkout. If your branch has new commits, both are merged and the merge is
    verified before anything moves. Uncommitted work is never overwritten. Of pushed commits, only those that CI has
    proved are taken. Repositories delivered by change requests are left out unless --repo names them.

    \b
    Examples:
      ganger land --dry-run
      ganger land
      ganger land --branch ganger/tonight
      ganger land --repo core
    """
    import asyncio

    from ganger.app.commands.land import land
    from ganger.app.runs import newest_run, read_state
    from ganger.core.delivery.landings import is_pushed

    opened = open_project(project)
    folder = newest_run(opened, run_id)
    state = read_state(folder)
    outcomes = asyncio.run(
        land(
            opened,
            folder,
            state,
            say=lambda text: click.echo(text, err=True),
            repo=repo,
            branch=branch,
            dry_run=dry_run,
        )
    )
    if as_json:
        first = outcomes[0].as_json() if outcomes else {"how": "nothing"}
        print_json("land", dry_run=dry_run, **{**first, "repos": [outcome.as_json() for outcome in outcomes]})
        return 0
    for outcome in outcomes:
        remote = "; its remote has it too" if is_pushed(state, outcome.repo) else ""
        click.echo(f"{_line(outcome, dry_run=dry_run)}{remote}")
    return 0


def _line(outcome: LandOutcome, *, dry_run: bool) -> str:
    where = f"{outcome.branch or 'HEAD'}{f' of {outcome.repo}' if outcome.repo else ''}"
    if outcome.how == "nothing":
        return f"{where} already has everything this run merged"
    verb = "would move to" if dry_run else _DONE.get(outcome.how, "is now at")
    return f"{where} {verb} {outcome.after[:12]} ({outcome.how}, {counted(outcome.commits, 'commit')})"

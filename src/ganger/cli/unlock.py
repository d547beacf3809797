"""`ganger unlock`: takes the locks of a repository's tasks away."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.options import json_option, open_run, project_option, run_option


@click.command("unlock")
@click.argument("repo", metavar="REPO")
@click.option("--why", required=True, metavar="TEXT", help="Your reason; it is kept with the run.")
@project_option
@run_option
@json_option
def command(repo: str, why: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Free a repository that a task holds, and lift its halt or pause. Locks end by themselves only with proof, so
    this is for you to answer for. REPO is a name of [repos], or . for the project itself.

    \b
    Examples:
      ganger unlock core --why "the change was reverted by hand"
      ganger unlock . --why "the key was revoked" --json
    """
    from ganger.cli.tell import tell_run

    return tell_run(open_run(project, run_id), "unlock", {"repo": repo, "why": why}, as_json=as_json)

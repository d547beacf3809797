"""`ganger unlock`: releases a repository's locks."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, open_run, project_option, run_option


@click.command("unlock")
@click.argument("repo", metavar="REPO")
@click.option("--why", required=True, metavar="TEXT", help="Your reason, kept with the run.")
@project_option
@run_option
@json_option
def command(repo: str, why: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Release the locks on a repository, and its halt or pause. Otherwise a lock ends only when its delivery is proved,
    so the decision is yours. REPO is a name in [repos], or . for the project itself.

    \b
    Examples:
      ganger unlock core --why "the change was reverted by hand"
      ganger unlock . --why "the key was revoked" --json
    """
    from ganger.cli.shell.send_command import tell_run

    return tell_run(open_run(project, run_id), "unlock", {"repo": repo, "why": why}, as_json=as_json)

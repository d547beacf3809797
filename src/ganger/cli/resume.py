"""`ganger resume`: continues after a pause."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, open_run, project_option, run_option


@click.command("resume")
@project_option
@run_option
@json_option
def command(project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Continue after ganger pause. To continue a run that has ended, use ganger run.

    \b
    Examples:
      ganger resume
      ganger resume --run night-12 --json
    """
    from ganger.cli.shell.send_command import tell_run

    return tell_run(open_run(project, run_id), "resume", as_json=as_json)

"""`ganger pause`: starts nothing new until `ganger resume`."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, open_run, project_option, run_option


@click.command("pause")
@project_option
@run_option
@json_option
def command(project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Start nothing new. Running attempts finish; the lead stays and waits for ganger resume.

    \b
    Examples:
      ganger pause
      ganger pause --run night-12 --json
    """
    from ganger.cli.shell.send_command import tell_run

    return tell_run(open_run(project, run_id), "pause", as_json=as_json)

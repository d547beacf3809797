"""`ganger resume`: goes on after a pause."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.options import json_option, open_run, project_option, run_option


@click.command("resume")
@project_option
@run_option
@json_option
def command(project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Go on after ganger pause. A run that has ended is continued by ganger run instead.

    \b
    Examples:
      ganger resume
      ganger resume --run night-12 --json
    """
    from ganger.cli.tell import tell_run

    return tell_run(open_run(project, run_id), "resume", as_json=as_json)

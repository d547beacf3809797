"""`ganger reassign`: starts a running task over with a new worker."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, project_option, run_option


@click.command("reassign")
@click.argument("task_id", metavar="TASK")
@click.option("--hint", default="", metavar="TEXT", help="Added to the next attempt's prompt.")
@project_option
@run_option
@json_option
def command(task_id: str, hint: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Stop the worker of a RUNNING task and start over with a new one; no attempt is used up.

    \b
    Examples:
      ganger reassign build-api
      ganger reassign build-api --hint "start with the failing test"
    """
    from ganger.cli.shell.send_command import tell_run

    opened = open_run(project, run_id)
    data = {"task": known_task(opened[1], task_id), "hint": hint}
    return tell_run(opened, "reassign", data, as_json=as_json)

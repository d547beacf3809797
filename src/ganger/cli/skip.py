"""`ganger skip`: leaves a task out."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, project_option, run_option


@click.command("skip")
@click.argument("task_id", metavar="TASK")
@project_option
@run_option
@json_option
def command(task_id: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Leave a task out: it is BLOCKED, and so are the tasks that depend on it, until ganger retry.

    A running attempt is stopped.

    \b
    Examples:
      ganger skip build-api
      ganger skip build-api --run night-12 --json
    """
    from ganger.cli.shell.send_command import tell_run

    opened = open_run(project, run_id)
    return tell_run(opened, "skip", {"task": known_task(opened[1], task_id)}, as_json=as_json)

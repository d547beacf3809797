"""`ganger extend`: gives a running worker more time."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, project_option, run_option


@click.command("extend")
@click.argument("task_id", metavar="TASK")
@click.argument("seconds", metavar="SECONDS", type=float)
@project_option
@run_option
@json_option
def command(task_id: str, seconds: float, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Let the worker of a RUNNING task continue for SECONDS from now, regardless of its limits.

    \b
    Examples:
      ganger extend build-api 1800
    """
    from ganger.cli.shell.send_command import tell_run

    opened = open_run(project, run_id)
    data = {"task": known_task(opened[1], task_id), "sec": seconds}
    return tell_run(opened, "extend", data, as_json=as_json)

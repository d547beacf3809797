"""`ganger end`: ends the worker of one task."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.options import json_option, known_task, open_run, project_option, run_option


@click.command("end")
@click.argument("task_id", metavar="ID")
@project_option
@run_option
@json_option
def command(task_id: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """End the attempt on a RUNNING task; the task becomes BLOCKED (paused) until ganger retry. The run goes on.

    It works at every step: also while a change is verified or waits to be merged. Without a lead it acts at the next
    ganger run, before anybody goes on with the attempt.

    \b
    Examples:
      ganger end build-api
    """
    from ganger.cli.tell import tell_run

    opened = open_run(project, run_id)
    return tell_run(opened, "end", {"task": known_task(opened[1], task_id)}, as_json=as_json)

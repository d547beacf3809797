"""`ganger end`: stops the worker of one task."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, project_option, run_option


@click.command("end")
@click.argument("task_id", metavar="TASK")
@project_option
@run_option
@json_option
def command(task_id: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Stop the attempt of a RUNNING task. The task becomes BLOCKED (paused) until ganger retry; the run goes on.

    This works at every step, also while a change is verified or waits to be merged. If no lead is running, it takes
    effect at the next ganger run, before the attempt continues.

    \b
    Examples:
      ganger end build-api
    """
    from ganger.cli.shell.send_command import tell_run

    opened = open_run(project, run_id)
    return tell_run(opened, "end", {"task": known_task(opened[1], task_id)}, as_json=as_json)

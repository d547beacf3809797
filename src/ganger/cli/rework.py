"""`ganger rework`: sends a change that awaits review back to a worker."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, project_option, run_option


@click.command("rework")
@click.argument("task_id", metavar="TASK")
@click.argument("text", metavar="TEXT")
@project_option
@run_option
@json_option
def command(task_id: str, text: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Send back the change of a task that awaits review; a worker reworks it, with TEXT in its prompt.

    \b
    Examples:
      ganger rework build-api "the port must stay 8080"
      ganger rework build-api "use the v2 endpoint" --json
    """
    from ganger.cli.shell.send_command import tell_run

    opened = open_run(project, run_id)
    name = known_task(opened[1], task_id)
    delivery = opened[1].tasks[name].delivery
    data = {"task": name, "text": text, "commit": delivery.reviewed if delivery is not None else ""}
    return tell_run(opened, "rework", data, as_json=as_json)

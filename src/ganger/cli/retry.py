"""`ganger retry`: runs a task again, with an optional hint."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, project_option, run_option


@click.command("retry")
@click.argument("task_id", metavar="TASK")
@click.option("--hint", default="", metavar="TEXT", help="Added to the next attempt's prompt.")
@click.option("--force", is_flag=True, help="Also retry a task that is DONE or RUNNING; a running attempt is stopped.")
@project_option
@run_option
@json_option
def command(task_id: str, hint: str, force: bool, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Give a failed, blocked or escalated task one more attempt; tasks blocked by it follow.

    \b
    Examples:
      ganger retry build-api
      ganger retry build-api --hint "the port is in config/dev.toml"
      ganger retry build-api --force --json
    """
    from ganger.cli.shell.send_command import tell_run

    opened = open_run(project, run_id)
    data = {"task": known_task(opened[1], task_id), "hint": hint, "force": force}
    return tell_run(opened, "retry", data, as_json=as_json)

"""`ganger approve`: approves a change that awaits review."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, project_option, run_option


@click.command("approve")
@click.argument("task_id", metavar="TASK")
@click.option("--text", default="", metavar="TEXT", help="A remark, kept in the ledger.")
@project_option
@run_option
@json_option
def command(task_id: str, text: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Approve the change of a task that awaits review. The task continues from there; no worker runs again.
    The approval is valid only for the commit that awaits review now.

    \b
    Examples:
      ganger approve build-api
      ganger approve build-api --text "read it line by line" --json
    """
    from ganger.cli.shell.send_command import tell_run

    opened = open_run(project, run_id)
    name = known_task(opened[1], task_id)
    delivery = opened[1].tasks[name].delivery
    data = {"task": name, "text": text, "commit": delivery.reviewed if delivery is not None else ""}
    return tell_run(opened, "approve", data, as_json=as_json)

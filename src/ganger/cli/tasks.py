"""`ganger tasks`: every task with its status."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import json_option, open_run, print_json, project_option, run_option


@click.command("tasks")
@project_option
@run_option
@click.option("--status", "only", metavar="STATUS", help="Only tasks with this status, such as FAILED.")
@json_option
def command(project: Path | None, run_id: str | None, only: str | None, as_json: bool) -> int:
    """List every task in plan order.

    \b
    Examples:
      ganger tasks
      ganger tasks --status FAILED --json
    """
    from ganger.core.vocabulary import TaskStatus
    from ganger.views.run.board import GLYPHS, task_rows

    if only is not None and only.upper() not in [status.value for status in TaskStatus]:
        raise click.BadParameter(f"{only!r} is not one of {', '.join(TaskStatus)}", param_hint="--status")
    _, state = open_run(project, run_id)
    rows = [row for row in task_rows(state) if only is None or row.status == only.upper()]
    if as_json:
        print_json("tasks", run_id=state.run_id, tasks=[row.as_json() for row in rows])
        return 0
    width = min(max((len(row.id) for row in rows), default=0), 40)
    for row in rows:
        reason = f" ({row.block_reason})" if row.block_reason else ""
        tried = f"attempt {row.attempts}" if row.attempts else "not started"
        on_its_way = row.milestone and row.status in (TaskStatus.RUNNING, TaskStatus.PENDING)
        way = f"  {f'{row.milestone} {row.substate}'.strip()}" if on_its_way else ""
        told = f"{tried}{reason}{way}  {printable(row.detail)}"
        line = f"{GLYPHS[row.status]} {row.status.value:<9} {row.id:<{width}}  {told}"
        click.echo(line.rstrip())
    return 0

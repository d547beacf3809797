"""`ganger status`: where the run stands."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.main import printable
from ganger.cli.options import json_option, open_run, print_json, project_option, run_option, shown_bytes


@click.command("status")
@project_option
@run_option
@json_option
def command(project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Where the run stands: counts, what is running, what needs attention.

    \b
    Examples:
      ganger status
      ganger status --run night-12 --json
    """
    from ganger.core.vocabulary import NEEDS_FIRST, RunStatus, TaskStatus
    from ganger.engine.files import is_led
    from ganger.runs import keeper_pid, size_of
    from ganger.views.board import GLYPHS, counts, counts_line, open_questions, task_row, task_rows
    from ganger.views.costs import spending, spending_line

    folder, state = open_run(project, run_id)
    led = is_led(folder)
    if as_json:
        open_rows = [row.as_json() for row in task_rows(state) if row.status is not TaskStatus.DONE]
        print_json(
            "status", run_id=state.run_id, led=led, run_status=state.status.value, abort_reason=state.abort_reason,
            counts=counts(state), total=len(state.tasks), started_at=state.started_at or None,
            finished_at=state.finished_at or None, folder=str(folder.path), open_tasks=open_rows,
            paused=state.paused, spent=spending(state), open_questions=len(open_questions(state)),
            heal_rounds=len(state.heal_rounds), keeper=keeper_pid(folder), mode=state.mode,
            merged=sum(bool(task.merged) for task in state.tasks.values()), head=state.head or None,
            landed=state.landed or None, disk_bytes=size_of(folder.path),
        )  # fmt: skip
        return 0
    click.echo(f"run {state.run_id}: {state.status.value}: {counts_line(state)} of {len(state.tasks)}")
    if state.status is RunStatus.RUNNING and not led:
        click.echo("  no process leads this run now; ganger run continues it")
    if state.paused:
        click.echo("  paused; nothing starts until: ganger resume")
    if open_questions(state):
        click.echo(f"  {len(open_questions(state))} open questions: ganger inbox")
    if money := spending_line(state):
        click.echo(f"  spent {money}")
    if state.abort_reason:
        click.echo(f"  {printable(state.abort_reason)}")
    for status in NEEDS_FIRST[:4]:
        for name in [n for n in state.by_rank if state.tasks[n].status is status][:20]:
            row = task_row(state, name)
            click.echo(f"  {GLYPHS[status]} {status.value:<9} {name}  {printable(row.detail or row.step)}")
    if state.mode != "direct":
        merged = sum(bool(task.merged) for task in state.tasks.values())
        click.echo(f"  merged {merged}" + (f", branch at {state.head[:12]}" if state.head else ""))
    click.echo(f"  folder {folder.path} ({shown_bytes(size_of(folder.path))})")
    return 0

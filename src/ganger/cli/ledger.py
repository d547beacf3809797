"""`ganger ledger`: what was delivered, with the proof."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, print_json, project_option, run_option


@click.command("ledger")
@click.argument("task_id", metavar="[TASK]", required=False)
@project_option
@run_option
@json_option
def command(task_id: str | None, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Show the proof of delivery: tree, commit, push, CI run, each job, mirror and verdict, with times and sources.

    Without TASK: the proof of every task that has a delivery.

    \b
    Examples:
      ganger ledger
      ganger ledger build-api --json
    """
    from ganger.views.run.deliveries import delivered, ledger_json, ledger_lines

    _folder, state = open_run(project, run_id)
    names = [known_task(state, task_id)] if task_id is not None else delivered(state)
    if as_json:
        print_json("ledger", run_id=state.run_id, tasks=[ledger_json(state, name) for name in names])
        return 0
    for name in names:
        click.echo("\n".join(ledger_lines(state, name)))
    if not names:
        click.echo("nothing was delivered: no task's completion asks for a push, or no task has got that far yet")
    return 0

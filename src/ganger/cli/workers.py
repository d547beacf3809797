"""`ganger workers`: the workers of a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.options import (
    counted,
    json_option,
    look_at_project,
    open_run,
    print_json,
    project_option,
    run_option,
)

if TYPE_CHECKING:
    from ganger.core.model.run_state import RunState


@click.command("workers")
@click.option("--past", is_flag=True, help="Also the last workers of tasks that are not DONE.")
@project_option
@run_option
@json_option
def command(past: bool, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """List running workers: workspace, task, since when, how far. Also accounts that wait for their quota, and hosts of
    remotes and forges that do not answer.

    The list is read from the run's events, so it survives a restart of the lead.

    \b
    Examples:
      ganger workers
      ganger workers --past --json
    """
    from ganger.app.runs import is_led
    from ganger.core.times import stamp
    from ganger.views.run.hosts import troubled_hosts
    from ganger.views.run.registry import registry, waiting_accounts
    from ganger.views.text import one_line

    folder, state = open_run(project, run_id)
    rows = registry(state, folder.path, look_at_project(project).root, past=past)
    accounts, led = waiting_accounts(state, time.time()), is_led(folder)
    hosts = troubled_hosts(state, time.time(), led=led)
    if as_json:
        print_json(
            "workers", run_id=state.run_id, led=led, workers=[row.as_json() for row in rows],
            accounts=[row.as_json() for row in accounts], hosts=[row.as_json() for row in hosts],
        )  # fmt: skip
        return 0
    click.echo(f"run {state.run_id}: {_heading(state)}")
    if state.index.running and not led:
        click.echo("  no process leads this run now: the workers go on, and ganger run adopts them")
    now = stamp(time.time())
    for row in rows:
        click.echo(f"\n{one_line(row.line(now))}")
        who = row.worker if row.pulled else f"agent {row.agent}"
        click.echo(f"    {one_line(f'role {row.role}; {who}: {row.tasks_done} of {row.tasks_total} tasks DONE')}")
        for word, text in (("in", row.workspace), ("says", row.note), ("warning", row.warned), ("at", row.doing)):
            if text:
                click.echo(f"    {word} {one_line(text)}")
    for line in [*(host.line for host in hosts), *(account.line for account in accounts)]:
        click.echo(f"\n{one_line(line)}")
    return 0


def _heading(state: RunState) -> str:
    """Who works, and what goes on or waits without a worker."""
    from ganger.views.run.board import open_questions

    found = [f"{counted(len(state.index.running - state.index.delivering), 'worker')} at work"]
    if on_their_way := len(state.index.running & state.index.delivering):
        found.append(f"{counted(on_their_way, 'change')} on the way without a worker: ganger status")
    if asked := open_questions(state):
        found.append(f"{counted(len(asked), 'open question')}: ganger inbox")
    return "; ".join(found)

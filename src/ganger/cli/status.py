"""`ganger status`: where the run stands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import (
    counted,
    json_option,
    look_at_project,
    open_run,
    print_json,
    project_option,
    run_option,
    shown_bytes,
)
from ganger.core.vocabulary import Mode

if TYPE_CHECKING:
    from ganger.core.model.run_state import RunState
    from ganger.local.run_folder import RunFolder
    from ganger.views.run.hosts import HostRow
    from ganger.views.run.registry import AccountRow, WorkerRow

_MOST_ROWS = 20


@click.command("status")
@project_option
@run_option
@json_option
def command(project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Show where the run stands: counts, running workers, what needs attention.

    \b
    Examples:
      ganger status
      ganger status --run night-12 --json
    """
    from ganger.app.runs import is_led
    from ganger.views.run.hosts import troubled_hosts
    from ganger.views.run.registry import registry, waiting_accounts
    from ganger.views.run.removals import removals

    folder, state = open_run(project, run_id)
    led = is_led(folder)
    workers = registry(state, folder.path, look_at_project(project).root)
    accounts, hosts = waiting_accounts(state, time.time()), troubled_hosts(state, time.time(), led=led)
    if as_json:
        _print_document(folder, state, workers, accounts, hosts, led=led)
        return 0
    _echo_summary(state, led=led)
    _echo_rows(
        state,
        workers,
        [*(row.line for row in hosts), *(row.line for row in removals(state)), *(row.line for row in accounts)],
    )
    _echo_delivery(folder, state)
    if state.mode is not Mode.DIRECT:
        merged = sum(bool(task.work.merged) for task in state.tasks.values())
        click.echo(
            f"  merged {merged}"
            + (f", branch at {state.branches.heads[''][:12]}" if state.branches.heads.get("") else "")
        )
    from ganger.app.runs import size_of

    kept = f", kept in {folder.path}" if folder.shown is not None else ""
    click.echo(f"  folder {folder.known_as} ({shown_bytes(size_of(folder.path))}{kept})")
    return 0


def _print_document(
    folder: RunFolder,
    state: RunState,
    workers: list[WorkerRow],
    accounts: list[AccountRow],
    hosts: list[HostRow],
    *,
    led: bool,
) -> None:
    from ganger.app.runs import forge_pace, keeper_pid, size_of
    from ganger.core.delivery.awaited import awaiting
    from ganger.core.times import stamp
    from ganger.core.vocabulary import TaskStatus
    from ganger.views.reference.violations import violated
    from ganger.views.run.board import counts, open_questions, task_rows
    from ganger.views.run.costs import spending
    from ganger.views.run.deliveries import delivery_rows, repo_rows
    from ganger.views.run.removals import removals

    open_rows = [row.as_json() for row in task_rows(state) if row.status is not TaskStatus.DONE]
    print_json(
        "status", run_id=state.run_id, led=led, run_status=state.status.value, abort_reason=state.abort_reason,
        counts=counts(state), total=len(state.tasks), started_at=state.started_at or None,
        finished_at=state.finished_at or None, folder=str(folder.known_as), kept=str(folder.path), open_tasks=open_rows,
        awaits_review=awaiting(state), paused=state.lead.paused, spent=spending(state),
        open_questions=len(open_questions(state)),
        heal_rounds=len(state.healing.rounds), keeper=keeper_pid(folder), mode=state.mode,
        merged=sum(bool(task.work.merged) for task in state.tasks.values()), head=state.branches.heads.get(""),
        landed=state.branches.landed.get(""), disk_bytes=size_of(folder.path),
        workers=[row.as_json() for row in workers], accounts=[row.as_json() for row in accounts],
        hosts=[row.as_json() for row in hosts], removals=[row.as_json() for row in removals(state)],
        deliveries=[row.as_json() for row in delivery_rows(state, stamp(time.time()))],
        repos=[row.as_json() for row in repo_rows(state)], forges=forge_pace(folder), violations=dict(violated(state)),
    )  # fmt: skip


def _echo_summary(state: RunState, *, led: bool) -> None:
    from ganger.core.delivery.awaited import awaited_line
    from ganger.core.vocabulary import RunStatus
    from ganger.views.run.board import counts_line, open_questions
    from ganger.views.run.costs import spending_line

    click.echo(f"run {state.run_id}: {state.status.value}: {counts_line(state)} of {len(state.tasks)}")
    if state.status is RunStatus.RUNNING and not led:
        click.echo("  no process leads this run now; ganger run continues it")
    if line := awaited_line(state):
        who = "the run" if led else "ganger run --wait"
        click.echo(f"  {printable(line)}; {who} continues by itself when it comes")
    if state.lead.paused:
        click.echo("  paused; nothing new starts until: ganger resume")
    if asked := open_questions(state):
        click.echo(f"  {counted(len(asked), 'open question')}: ganger inbox")
    if money := spending_line(state):
        click.echo(f"  spent {money}")
    if state.abort_reason:
        click.echo(f"  {printable(state.abort_reason)}")


def _echo_rows(state: RunState, workers: list[WorkerRow], waits: list[str]) -> None:
    from ganger.core.times import stamp
    from ganger.core.vocabulary import NEEDS_FIRST, TaskStatus
    from ganger.views.run.board import GLYPHS, task_row
    from ganger.views.text import one_line

    for line in waits:
        click.echo(f"  {one_line(line)}")
    for status in NEEDS_FIRST[:3]:
        for name in [n for n in state.index.by_rank if state.tasks[n].status is status][:_MOST_ROWS]:
            row = task_row(state, name)
            click.echo(f"  {GLYPHS[status]} {status.value:<9} {name}  {printable(row.detail or row.step)}")
    now, running = stamp(time.time()), TaskStatus.RUNNING
    for worker in workers[:_MOST_ROWS]:
        click.echo(f"  {GLYPHS[running]} {running.value:<9} {one_line(worker.line(now))}")
    if len(workers) > _MOST_ROWS:
        click.echo(f"  … and {len(workers) - _MOST_ROWS} more at work: ganger workers")


def _echo_delivery(folder: RunFolder, state: RunState) -> None:
    from ganger.app.runs import forge_pace
    from ganger.core.times import stamp
    from ganger.views.reference.violations import violated
    from ganger.views.run.deliveries import delivery_rows, repo_rows
    from ganger.views.text import one_line

    for repo in repo_rows(state)[:_MOST_ROWS]:
        click.echo(f"  repo {one_line(repo.line())}")
    rows = delivery_rows(state, stamp(time.time()))
    for row in rows[:_MOST_ROWS]:
        click.echo(f"  → {one_line(row.line())}")
    if len(rows) > _MOST_ROWS:
        click.echo(f"  … and {len(rows) - _MOST_ROWS} more deliveries: ganger status --json")
    for habit, times in violated(state).items():
        click.echo(f"  refused {counted(times, 'time')}: {habit}; ganger explain {habit}")
    for forge, per_minute in forge_pace(folder).items():
        click.echo(f"  forge {one_line(forge)}: {counted(per_minute, 'request')} in the last minute")

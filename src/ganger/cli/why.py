"""`ganger why`: one sentence about a task, with evidence."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, known_task, open_run, print_json, project_option, run_option


@click.command("why")
@click.argument("task_id", metavar="TASK")
@project_option
@run_option
@json_option
def command(task_id: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Show why a task is not running, not done, or was retried: one sentence, then the evidence.

    \b
    Examples:
      ganger why build-api
    """
    from ganger.app.runs import is_led
    from ganger.views.run.why import why
    from ganger.views.text import one_line, shown_moments

    folder, state = open_run(project, run_id)
    answer = why(state, known_task(state, task_id), led=is_led(folder))
    if as_json:
        print_json("why", run_id=state.run_id, **answer.as_json())
        return 0
    click.echo(shown_moments(one_line(answer.sentence, 4_000)))
    for line in answer.evidence:
        click.echo(f"  {shown_moments(one_line(line))}")
    moved = [f"{name} {value}" for name, value in answer.counters.items() if not value.startswith(("0", "unknown"))]
    if moved:
        click.echo(f"  counters: {', '.join(moved)}")
    if answer.next_step:
        click.echo(f"next: {answer.next_step}")
    return 0

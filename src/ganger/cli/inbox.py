"""`ganger inbox`: what needs your decision."""

from __future__ import annotations

import textwrap
from pathlib import Path

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import counted, json_option, open_run, print_json, project_option, run_option

_MOST_LINES = 20
_LONGEST_CONTEXT = 2_000


@click.command("inbox")
@click.option("--all", "answered", is_flag=True, help="Include answered questions.")
@project_option
@run_option
@json_option
def command(answered: bool, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """List open questions, oldest first: the task, since when, what waits for it, and what to type.

    \b
    Examples:
      ganger inbox
      ganger inbox --all --json
    """
    from ganger.views.run.inbox import inbox
    from ganger.views.text import one_line

    _, state = open_run(project, run_id)
    rows = inbox(state, answered=answered)
    waiting = sum(row.answer is None for row in rows)
    if as_json:
        print_json("inbox", run_id=state.run_id, open=waiting, questions=[row.as_json() for row in rows])
        return 0
    click.echo(f"run {state.run_id}: {counted(waiting, 'open question')}")
    for row in rows:
        about = f"{row.task} ({row.kind})" if row.task else row.kind
        click.echo(f"\n{'?' if row.answer is None else '✓'} {row.id}  {about}  since {row.since[:19]}Z")
        click.echo(textwrap.indent(printable(row.text), "    "))
        if row.context:
            click.echo(textwrap.indent(printable(_shortened(row.context)), "    | "))
        for fact in row.facts:
            click.echo(f"    {one_line(fact)}")
        if row.answer is not None:
            click.echo(textwrap.indent(printable(f"answer: {row.answer}"), "    "))
        for line in row.commands:
            click.echo(f"  > {line}")
    return 0


def _shortened(context: str) -> str:
    """The start of a long context; `--json` has all of it."""
    lines = context[:_LONGEST_CONTEXT].splitlines()[:_MOST_LINES]
    shown = "\n".join(lines)
    return shown if len(shown) >= len(context.rstrip()) else f"{shown}\n… (ganger inbox --json has all of it)"

"""`ganger events`: everything that happened, in order."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from ganger.cli.shell.options import json_lines_option, look_at_project, project_option, run_option


@click.command("events")
@click.option("--since", type=click.IntRange(0), default=0, help="Only events after this number.")
@click.option("--follow", is_flag=True, help="Keep printing until the run ends.")
@project_option
@run_option
@json_lines_option
def command(since: int, follow: bool, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Print every event of a run, oldest first; with --json one JSON line each.

    \b
    Examples:
      ganger events
      ganger events --since 120 --follow --json
    """
    from ganger.app.runs import newest_run, read_events
    from ganger.core.events import RunFinished
    from ganger.views.history.stream import event_line, event_words
    from ganger.views.text import one_line

    folder = newest_run(look_at_project(project), run_id)
    last = since
    while True:
        finished = False
        for recorded in read_events(folder, last):
            last = recorded.seq
            finished = isinstance(recorded.event, RunFinished)
            if as_json:
                click.echo(json.dumps(event_line(recorded), ensure_ascii=False))
            else:
                click.echo(f"{recorded.seq:>5} {recorded.at[:19]}Z {one_line(event_words(recorded.event))}")
        if not follow or finished:
            return 0
        time.sleep(0.3)

"""`ganger stop`: stops a run, at once or when its attempts have finished."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import counted, json_option, open_run, project_option, run_option


@click.command("stop")
@click.option("--drain", is_flag=True, help="Let running attempts finish; start nothing new.")
@project_option
@run_option
@json_option
def command(drain: bool, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Stop the run as Ctrl-C would: every agent is stopped and unverified changes are rolled back.

    With --drain, running attempts finish first. ganger run continues the run.

    \b
    Examples:
      ganger stop
      ganger stop --drain
      ganger stop --run night-12 --json
    """
    from ganger.app.control import Told, current_lead, still_working
    from ganger.app.runs import is_led
    from ganger.cli.shell.send_command import show, tell_run

    opened = open_run(project, run_id)
    folder, state = opened
    if is_led(folder):
        return tell_run(opened, "stop", {"drain": drain, "lead": current_lead(state)}, as_json=as_json)
    working = still_working(state)
    if not working:
        nothing = f"nothing to stop: no process leads run {state.run_id} now"
        return show(Told(state.run_id, "stop", 0, led=False, outcome=nothing), as_json=as_json)
    click.echo(
        f"note: the lead is gone, {counted(len(working), 'agent')} of it still "
        f"{'works' if len(working) == 1 else 'work'}; ganger run adopts them, then carries out this stop",
        err=True,
    )
    return tell_run(opened, "stop", {"drain": drain}, as_json=as_json)

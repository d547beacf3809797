"""`ganger set`: changes a setting while a run goes on."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, open_run, project_option, run_option
from ganger.errors import GangerError


@click.command("set")
@click.argument("setting", metavar="KEY=VALUE")
@project_option
@run_option
@json_option
def command(setting: str, project: Path | None, run_id: str | None, as_json: bool) -> int:
    """Change a numeric setting of [policy] or [budget] while the run continues. The next lead reads ganger.toml again.

    The schedule cannot be changed this way. VALUE may be none for settings that can be unlimited.

    \b
    Examples:
      ganger set concurrency=8
      ganger set budget.usd=20
      ganger set budget.tokens=none --json
    """
    from ganger.cli.shell.send_command import tell_run
    from ganger.core.control.commands import Refusal, read_setting

    key, equals, text = setting.partition("=")
    if not equals:
        raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="KEY=VALUE")
    try:
        full, value = read_setting(key.strip(), text.strip())
    except Refusal as problem:
        raise GangerError(str(problem), code="COMMAND_REFUSED") from None
    return tell_run(open_run(project, run_id), "set", {"key": full, "value": value}, as_json=as_json)

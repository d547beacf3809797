"""`ganger config`: every setting and where its value comes from."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ganger.cli.shell.options import json_option, open_project, print_json, project_option


@click.group("config")
def command() -> None:
    """Show settings and where each value comes from.

    \b
    Examples:
      ganger config show
      GANGER_POLICY_CONCURRENCY=4 ganger config show --json
    """


@command.command("show")
@project_option
@json_option
def show_command(project: Path | None, as_json: bool) -> int:
    """Show every setting with its origin: flag, environment, project file, user file or default."""
    settings = open_project(project).settings()
    if as_json:
        rows = [{"key": s.key, "value": s.value, "origin": s.origin} for s in settings]
        print_json("config", settings=rows)
        return 0
    width = max(len(s.key) for s in settings)
    for setting in settings:
        click.echo(f"{setting.key:<{width}}  {json.dumps(setting.value, ensure_ascii=False)}  ({setting.origin})")
    return 0

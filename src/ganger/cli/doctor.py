"""`ganger doctor`: checks this machine and project, and says what to install."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, print_json, project_option


@click.command("doctor")
@project_option
@json_option
def command(project: Path | None, as_json: bool) -> int:
    """Check Python, SQLite, git, disk, sandbox tools, agents and leftovers of earlier runs.

    \b
    Examples:
      ganger doctor
      ganger doctor --json
    """
    from ganger.app.commands.doctor import examine

    findings = examine(project, Path.cwd())
    sound = all(finding.level != "error" for finding in findings)
    if as_json:
        print_json("doctor", ok=sound, checks=[finding.as_json() for finding in findings])
        return 0 if sound else 1
    marks = {"ok": "✓", "warning": "!", "error": "✗"}
    for finding in findings:
        click.echo(f"{marks[finding.level]} {finding.level:<8} {finding.name:<12} {finding.text}")
        if finding.next_step:
            click.echo(f"{'':<11}next: {finding.next_step}")
    return 0 if sound else 1

"""`ganger init`: a first configuration for this repository."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.options import json_option, print_json, project_option


@click.command("init")
@project_option
@click.option("--agent", metavar="COMMAND", help='Your agent\'s command line, such as "claude -p".')
@click.option("--test", "test_command", metavar="COMMAND", help="The command that tells good from bad.")
@json_option
def command(project: Path | None, agent: str | None, test_command: str | None, as_json: bool) -> int:
    """Look at the repository (test command, agents on PATH) and write a first configuration.

    Nothing that exists is overwritten. Without an agent on PATH a scripted one is set up, so that everything can be
    tried without a key.

    \b
    Examples:
      ganger init
      ganger init --agent "claude -p" --test "make test"
    """
    from ganger.start import NO_TESTS, write_first_project

    root = project or Path.cwd()
    made = write_first_project(root, agent=agent, test_command=test_command)
    if as_json:
        print_json("init", root=str(root), written=made.written, kept=made.kept, agent=made.agent, test=made.test)
        return 0
    for name in made.written:
        click.echo(f"wrote   {name}")
    for name in made.kept:
        click.echo(f"kept    {name} (exists already)")
    click.echo(f"agent   {made.agent}")
    click.echo(f"checked by: {made.test}")
    if made.test == NO_TESTS:
        click.echo("warning: no test command was found; put your own check into verify.json", err=True)
    click.echo("next    ganger validate && ganger run --dry-run && ganger run")
    return 0

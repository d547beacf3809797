"""`ganger init`: writes a first configuration for this repository."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.options import json_option, print_json, project_option


@click.command("init")
@project_option
@click.option("--agent", metavar="COMMAND", help="A kind such as claude, or your agent's command line.")
@click.option("--test", "test_command", metavar="COMMAND", help="The command that passes when the work is good.")
@json_option
def command(project: Path | None, agent: str | None, test_command: str | None, as_json: bool) -> int:
    """Look at the repository (test command, agents on PATH) and write a first configuration.

    In the top folder of a git repository, agents work in workspaces of their own, made from the last commit;
    elsewhere they work in the folder itself. If a passing run of the test command prints recognisable output, the
    check requires that output too. Existing files are never overwritten. Without an agent on PATH, a scripted one is
    set up, so that everything can be tried without a key.

    \b
    Examples:
      ganger init
      ganger init --agent claude --test "make test"
      ganger init --agent "python3 my_agent.py"
    """
    from ganger.app.commands.init import NO_TESTS, ProjectFacts, write_first_project
    from ganger.app.compose import found_programs
    from ganger.config import PROJECT_FILE

    root = project or Path.cwd()
    found = [ProjectFacts(kind, health.ready, "; ".join(health.details)) for kind, health in found_programs(root)]
    made = write_first_project(root, agent=agent, test_command=test_command, found=found)
    if as_json:
        told = {"mode": made.mode, "needs_commit": made.needs_commit, "expect": made.expect}
        print_json(
            "init", root=str(root), written=made.written, kept=made.kept, agent=made.agent, test=made.test, **told
        )
        return 0
    for name in made.written:
        click.echo(f"wrote   {name}")
    for name in made.kept:
        click.echo(f"kept    {name} (exists already)")
    click.echo(f"agent   {made.agent}")
    for one in found:
        if one.kind == made.agent and not one.ready:
            click.echo(f"warning: {one.kind} is not ready: {one.detail}", err=True)
    click.echo(f"checked by: {made.test}")
    if made.test == NO_TESTS:
        click.echo("warning: no test command was found; put your own check in verify.json", err=True)
    if PROJECT_FILE in made.written:
        click.echo(f"mode    {made.mode}")
    first = 'git add -A && git commit -m "begin" && ' if made.needs_commit else ""
    if made.needs_commit:
        click.echo("note: agents start from the last commit, and there is no commit yet", err=True)
    click.echo(f"next    {first}ganger validate && ganger run --dry-run && ganger run")
    return 0

"""`ganger plan`: order, levels, clashes."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.options import json_option, manifest_argument, open_project, print_json, project_option
from ganger.errors import NotBuiltYet


@click.command("plan")
@manifest_argument
@project_option
@click.option("--prompts", is_flag=True, help="Show prompt sizes (not there yet).")
@json_option
def command(manifest: Path | None, project: Path | None, prompts: bool, as_json: bool) -> int:
    """Show in which order tasks would run, which may run side by side, and files two tasks would both write.

    \b
    Examples:
      ganger plan
      ganger plan --json | jq .levels
    """
    from ganger.check import check_project

    if prompts:
        raise NotBuiltYet("ganger plan --prompts is not there yet")
    checked = check_project(open_project(project, manifest), manifest)
    checked.require()
    plan = checked.plan
    assert plan is not None
    clashes = [{"file": c.file, "level": c.level, "tasks": list(c.tasks)} for c in plan.clashes]
    if as_json:
        levels = [list(level) for level in plan.levels]
        phases = {"phases": [list(row) for row in checked.phases]} if checked.phases else {}
        print_json("plan", order=list(plan.order), levels=levels, digest=checked.digest, clashes=clashes, **phases)
        return 0
    click.echo(f"{len(plan.order)} tasks in {len(plan.levels)} levels, digest {checked.digest[:12]}")
    for number, level in enumerate(plan.levels):
        click.echo(f"  level {number}: {', '.join(level)}")
    for number, row in enumerate(checked.phases):
        click.echo(f"  phase {number}: repositories {', '.join(row)}")
    for clash in plan.clashes:
        click.echo(f"  clash: {clash.file} is written by {', '.join(clash.tasks)}; they never run at the same time")
    return 0

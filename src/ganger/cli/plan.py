"""`ganger plan`: order, levels, file conflicts, prompt sizes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.options import counted, json_option, manifest_argument, open_project, print_json, project_option

if TYPE_CHECKING:
    from ganger.app.checks.project import Checked
    from ganger.config import Project


@click.command("plan")
@manifest_argument
@project_option
@click.option("--prompts", is_flag=True, help="Show the size of each prompt, by part, in estimated tokens.")
@json_option
def command(manifest: Path | None, project: Path | None, prompts: bool, as_json: bool) -> int:
    """Show in which order tasks would run, which may run in parallel, and files that two tasks would both write.

    With --prompts: the size of each task's first prompt, how much of it is Ganger's own text, and what a budget
    (prompts.budget_tokens) would cut. The exit code is 1 if the parts that are never cut exceed the budget.

    \b
    Examples:
      ganger plan
      ganger plan --json | jq .levels
      ganger plan --prompts
      GANGER_PROMPTS_BUDGET_TOKENS=8000 ganger plan --prompts --json | jq '.tasks[] | select(.over)'
    """
    from ganger.app.checks.project import check_project

    opened = open_project(project, manifest)
    checked = check_project(opened, manifest)
    checked.require()
    if prompts:
        return _weigh(opened, checked, as_json=as_json)
    plan = checked.plan
    assert plan is not None
    clashes = [{"file": c.file, "level": c.level, "tasks": list(c.tasks)} for c in plan.clashes]
    if as_json:
        levels = [list(level) for level in plan.levels]
        phases = {"phases": [list(row) for row in checked.phases]} if checked.phases else {}
        print_json("plan", order=list(plan.order), levels=levels, digest=checked.digest, clashes=clashes, **phases)
        return 0
    click.echo(
        f"{counted(len(plan.order), 'task')} in {counted(len(plan.levels), 'level')}, digest {checked.digest[:12]}"
    )
    for number, level in enumerate(plan.levels):
        click.echo(f"  level {number}: {', '.join(level)}")
    for number, row in enumerate(checked.phases):
        click.echo(f"  phase {number}: repositories {', '.join(row)}")
    for clash in plan.clashes:
        click.echo(f"  conflict: {clash.file} is written by {', '.join(clash.tasks)}; they never run at the same time")
    return 0


def _weigh(project: Project, checked: Checked, *, as_json: bool) -> int:
    from ganger.app.commands.prompt_sizes import prompt_sizes
    from ganger.views.planned.prompts import document, page

    found = prompt_sizes(project, checked)
    if as_json:
        print_json("prompts", **document(found))
    else:
        click.echo("\n".join(page(found)))
    return 0 if found.ok else 1

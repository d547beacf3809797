"""`ganger validate`: lists every fault of a manifest at once."""

from __future__ import annotations

from pathlib import Path

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import counted, json_option, manifest_argument, print_json, project_option


@click.command("validate")
@manifest_argument
@project_option
@json_option
def command(manifest: Path | None, project: Path | None, as_json: bool) -> int:
    """Check a manifest and everything its run needs: graph, prompts, profiles, commands, roles, settings, agents, git
    repositories, sandbox, state folder.

    Every fault of every kind is listed with its path, a code (see ganger explain) and what to do.

    \b
    Examples:
      ganger validate
      ganger validate plans/night.yaml --json
    """
    from ganger.app.checks.project import check_project
    from ganger.app.checks.without_effect import ineffective
    from ganger.app.commands.ground import check_ground, settings_faults
    from ganger.app.notices import notice_faults
    from ganger.config import project_root, read_project

    opened, problems = read_project(project_root(project, manifest, Path.cwd()))
    checked = check_project(opened, manifest)
    checked.faults[:0] = settings_faults(opened, problems)
    check_ground(opened, checked)
    checked.faults += notice_faults(opened) if opened.has_file and not opened.unread else []
    idle = ineffective(opened, checked)
    checked.faults += idle.refused
    checked.warnings += idle.told
    if as_json:
        shown = [fault.as_json() for fault in checked.faults]
        warned = [fault.as_json() for fault in checked.warnings]
        print_json("validate", ok=checked.ok, errors=shown, warnings=warned, tasks=len(checked.specs))
        return 0 if checked.ok else 1
    for fault in checked.faults:
        click.echo(f"{checked.source}: {fault.path or '/'}: {printable(fault.message)} [{fault.code}]")
    for fault in checked.warnings:
        click.echo(f"warning: {fault.path or '/'}: {printable(fault.message)} [{fault.code}]", err=True)
    if checked.ok and checked.plan is not None:
        click.echo(
            f"{checked.source}: ok: {counted(len(checked.specs), 'task')}, {counted(len(checked.plan.levels), 'level')}"
        )
    else:
        first = checked.faults[0].code
        click.echo(f"{counted(len(checked.faults), 'fault')}; ganger explain {first} has details", err=True)
    return 0 if checked.ok else 1

"""`ganger run`: starts a run, or continues it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.options import (
    counted,
    json_lines_option,
    manifest_argument,
    open_project,
    print_json,
    project_option,
)

if TYPE_CHECKING:
    from ganger.app.checks.project import Checked
    from ganger.config import Project
    from ganger.core.control.reconcile import Difference


@click.command("run")
@manifest_argument
@click.option("--concurrency", type=click.IntRange(1, 1024), help="How many attempts run at the same time.")
@click.option("--only", multiple=True, metavar="TASK", help="Run only this task; may be repeated.")
@click.option("--max-tasks", type=click.IntRange(1), help="Start at most this many tasks, then end the run.")
@click.option("--dry-run", is_flag=True, help="Check everything and show what would run; start nothing.")
@click.option("--detach", is_flag=True, help="Run without a terminal; return as soon as the lead has started.")
@click.option("--wait", is_flag=True, help="Do not end while tasks wait for reviews.")
@click.option("--reconcile", is_flag=True, help="Apply a changed manifest or prompt; the effect is shown first.")
@click.option(
    "--budget", type=click.FloatRange(min=0), metavar="USD", help="Stop before the run spends more dollars than this."
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any setting, such as policy.heal_schedule=off."
)
@project_option
@json_lines_option
def command(
    manifest: Path | None,
    concurrency: int | None,
    only: tuple[str, ...],
    max_tasks: int | None,
    dry_run: bool,
    detach: bool,
    wait: bool,
    reconcile: bool,
    budget: float | None,
    settings: tuple[str, ...],
    project: Path | None,
    as_json: bool,
) -> int:
    """Run the manifest's tasks, or continue the run if it has begun.

    Tasks that are DONE stay done. With --wait the run does not end while tasks wait for reviews: it continues when one
    arrives, here (ganger approve) or on the forge, until ganger stop. Exit codes: 0 every requested task is DONE, 1 a
    task failed, 3 a task is blocked, 4 you have to decide something, 130 interrupted (run the same command again to
    continue).

    \b
    Examples:
      ganger run
      ganger run --concurrency 8
      ganger run --only build-api --only build-web
      ganger run --dry-run
      ganger run --reconcile --dry-run
      ganger run --detach --budget 40
      ganger run --wait
      ganger run --detach --wait
      ganger run --json | jq -r .type
    """
    # Until the run handles signals itself, every signal ends this command as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
    from ganger.app.checks.project import check_project
    from ganger.app.checks.without_effect import require_effect
    from ganger.cli.foreground.drive import drive
    from ganger.cli.shell.main import printable

    opened = open_project(project, manifest, _flags(concurrency, budget, settings))
    checked = check_project(opened, manifest)
    checked.require()
    notes = [*require_effect(opened, checked), *_idle_flags(opened, checked, reconcile=reconcile)]
    if dry_run:
        idle = {"--detach": detach, "--wait": wait, "--max-tasks": max_tasks is not None}
        notes += [
            f"{flag}: has no effect with --dry-run, which starts nothing" for flag, given in idle.items() if given
        ]
    if dry_run or detach:
        for note in notes:
            click.echo(f"warning: {printable(note)}", err=True)
    if dry_run:
        return _dry_run(opened, checked, only, reconcile=reconcile, as_json=as_json)
    if detach:
        return _detach(opened, checked, as_json=as_json)
    return drive(
        opened,
        checked,
        only=only or None,
        max_tasks=max_tasks,
        reconcile=reconcile,
        waits=wait,
        as_json=as_json,
        notes=notes,
    )


def _idle_flags(project: Project, checked: Checked, *, reconcile: bool) -> list[str]:
    from ganger.app.run_places import place_of
    from ganger.app.runs import has_begun

    assert checked.manifest is not None
    if reconcile and not has_begun(place_of(project, checked.manifest.run_id)):
        return [f"--reconcile: has no effect, run {checked.manifest.run_id} has not begun"]
    return []


def _detach(project: Project, checked: Checked, *, as_json: bool) -> int:
    from ganger.app.run_places import settle
    from ganger.cli.foreground.detach import detach

    assert checked.manifest is not None
    run_id = checked.manifest.run_id
    _, folder = settle(project, run_id)
    return detach(click.get_current_context(), folder, run_id, as_json=as_json)


def _flags(concurrency: int | None, budget: float | None, settings: tuple[str, ...]) -> dict[str, object]:
    from ganger.config import read_setting

    flags: dict[str, object] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise click.BadParameter(f"{setting!r} is not KEY=VALUE", param_hint="--set")
        flags[key] = read_setting(key, text)
    if concurrency is not None:
        flags["policy.concurrency"] = concurrency
    if budget is not None:
        flags["budget.usd"] = budget
    return flags


def _dry_run(project: Project, checked: Checked, only: tuple[str, ...], *, reconcile: bool, as_json: bool) -> int:
    """Checks everything a run checks first, then prints the plan; creates nothing."""
    from ganger.app.compose import agents_by_role, policy_of
    from ganger.core.failures.retries import allowed_attempts
    from ganger.views.planned.reconcile import difference_json, shown_difference

    agents = agents_by_role(project, checked)
    assert checked.plan is not None and checked.manifest is not None
    policy = policy_of(project)
    chosen = [name for name in checked.plan.order if not only or name in only]
    specs = {spec.id: spec for spec in checked.specs}
    most = sum(allowed_attempts(specs[n], policy) + policy.format_retries + policy.respawns for n in chosen)
    found = _difference(project, checked) if reconcile else None
    if as_json:
        print_json(
            "dry_run", run_id=checked.manifest.run_id, order=chosen, concurrency=policy.concurrency,
            heal_schedule=policy.heal_schedule.value, most_attempts=most, digest=checked.digest,
            reconcile=None if found is None else difference_json(found),
        )  # fmt: skip
        return 0
    head = f"run {checked.manifest.run_id}: {counted(len(chosen), 'task')}, concurrency {policy.concurrency}"
    click.echo(f"{head}, at most {counted(most, 'agent start')}, not counting healing, reworks and free retries")
    for name in chosen:
        spec = specs[name]
        after = f" after {', '.join(spec.depends_on)}" if spec.depends_on else ""
        click.echo(
            f"  {name}: {agents[spec.role].name}, prompt {spec.prompt_ref}, checked by {spec.verify_profile}{after}"
        )
    for line in shown_difference(found) if found is not None else ():
        click.echo(line)
    click.echo("nothing was started (--dry-run)")
    return 0


def _difference(project: Project, checked: Checked) -> Difference | None:
    from ganger.app.compose import difference_of
    from ganger.app.run_places import place_of
    from ganger.app.runs import has_begun, read_state

    assert checked.manifest is not None
    folder = place_of(project, checked.manifest.run_id)
    if not has_begun(folder):
        return None
    return difference_of(project, checked, read_state(folder), folder).difference

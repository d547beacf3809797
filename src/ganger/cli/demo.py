"""`ganger demo`: the whole system on a throw-away repository."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from ganger.errors import GangerError


@click.command("demo")
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Build it in DIR and keep it."
)
def command(keep: Path | None) -> int:
    """Eight tasks on a small real program with real tests; scripted agents, so no key, no network, no cost.

    Each agent works in a workspace of its own; what passes its tests is merged, and your checkout stays as it is. Most
    tasks succeed. One breaks a test, is kept out and becomes a question to you; two miss the same rule and are healed
    by one patch; one answers with garbage and is saved by the format retry; one meets its account's limit, waits and
    goes on with its session; one is blocked. Exits 0 when all of that happened.

    \b
    Examples:
      ganger demo
      ganger demo --keep /tmp/ganger-demo
    """
    if shutil.which("git") is None:
        raise GangerError("the demo needs git", hint="install git, then try again", code="GIT_MISSING")
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise GangerError(f"{keep} is not empty", hint="choose a new folder for --keep", code="FILE_EXISTS")
        keep.mkdir(parents=True, exist_ok=True)
        return _play(keep.resolve(), kept=True)
    with tempfile.TemporaryDirectory(prefix="ganger-demo-") as folder:
        return _play(Path(folder).resolve(), kept=False)


def _play(root: Path, *, kept: bool) -> int:
    from ganger.check import check_project
    from ganger.cli.drive import drive
    from ganger.config import load_project
    from ganger.demo.project import build_demo
    from ganger.runs import newest_run, read_state

    click.echo(f"A throw-away repository with a small ledger program: {root}")
    click.echo("Eight tasks, three scripted agents at a time. Nothing counts as done until its tests pass.\n")
    build_demo(root)
    project = load_project(root, environ={})
    drive(project, check_project(project), only=None, max_tasks=None, as_json=False, quiet_end=True)
    state = read_state(newest_run(project, None))
    return _report(root, state, kept=kept)


def _report(root: Path, state: object, *, kept: bool) -> int:
    from ganger.core.moments import seconds_between
    from ganger.core.records import RunState
    from ganger.core.vocabulary import TaskStatus
    from ganger.demo.project import EXPECTED, changed_files, merged, merged_files
    from ganger.views.board import GLYPHS, counts_line, shown_duration

    assert isinstance(state, RunState)
    wrong = [
        f"{n}: {state.tasks[n].status.value}, expected {s.value}"
        for n, s in EXPECTED.items()
        if state.tasks[n].status is not s
    ]
    commits, files = merged(root), merged_files(root)
    if changed_files(root):
        wrong.append(f"the checkout was touched: {', '.join(changed_files(root)[:5])}")
    if "ledger/money.py" in files or len(commits) != sum(s is TaskStatus.DONE for s in EXPECTED.values()):
        wrong.append(f"{len(commits)} commits on {', '.join(files)}")
    if len(state.heal_rounds) != 2 or len(state.patches) != 1:
        wrong.append(f"{len(state.heal_rounds)} heal rounds and {len(state.patches)} patches, expected 2 and 1")
    if not state.tasks["transfer"].continued:
        wrong.append("transfer did not go on with its session after the limit")
    took = shown_duration(seconds_between(state.started_at, state.finished_at))
    click.echo(f"\nWhat happened ({took}, $0.00): {counts_line(state)}")
    for name in EXPECTED:
        task = state.tasks[name]
        said = task.summary if task.status == "DONE" else task.detail
        click.echo(f"  {GLYPHS[task.status]} {task.status.value:<9} {name:<13} {said[:86]}")
    click.echo("\n  Verified again on the merged head, one commit per task on the branch ganger/demo:")
    for line in commits:
        click.echo(f"    {line[:92]}")
    click.echo("  The broken change is not among them, your checkout is as it was, and ganger land moves your branch.")
    click.echo("  One patch to the shared context healed two tasks; your prompt files are as they were.")
    click.echo("  transfer met its account's limit: all its agents waited, then its own session went on.")
    click.echo("  command-line fell silent: it was asked, ended, and started again.")
    if wrong:
        click.echo("\nThis is not what the demo's script says:\n  " + "\n  ".join(wrong), err=True)
        return 1
    _next_steps(root, kept=kept)
    return 0


def _next_steps(root: Path, *, kept: bool) -> None:
    click.echo("\nNext steps:")
    if kept:
        click.echo(f"  1. cd {root} && ganger land              then: ganger inbox, ganger patches, git log")
    else:
        click.echo("  1. ganger demo --keep DIR         keeps it; then: ganger land, ganger inbox, ganger why rounding")
    click.echo("  2. ganger init                           in your own repository: a first configuration")
    click.echo("  3. ganger run                            your first verified task")

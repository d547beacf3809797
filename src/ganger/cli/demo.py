"""`ganger demo`: the whole system on a throw-away repository."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from ganger.cli.shell.options import json_lines_option, print_json
from ganger.errors import GangerError


@click.command("demo")
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Build the demo in DIR and keep it."
)
@click.option("--delivery", is_flag=True, help="Show delivery instead: push, CI, mirror, locks, and the ledger.")
@json_lines_option
def command(keep: Path | None, delivery: bool, as_json: bool) -> int:
    """Run eight tasks on a small real program with real tests. The agents are scripted: no key, no network, no cost.

    Each agent works in its own workspace; what passes its tests is merged, and your checkout stays as it is. Most tasks
    succeed. One breaks a test, is not merged and becomes a question for you. Two miss the same rule, and one patch
    heals both. One gives a malformed answer, which is requested again. One reaches its account's limit, waits and
    continues its session. One is blocked. The exit code is 0 if all of that happened.

    With --delivery: a library and an app that builds on it, each with a remote, a CI script and a mirror. One task
    turns CI red and is fixed; another's mirror job is skipped and triggered again, and the app waits for both. The
    ledger of every task is printed.

    With --json: one event per line, as ganger run --json prints them, and a last line with the outcome.

    \b
    Examples:
      ganger demo
      ganger demo --delivery
      ganger demo --keep /tmp/ganger-demo
    """
    if shutil.which("git") is None:
        raise GangerError("the demo needs git", hint="install git, then try again", code="GIT_MISSING")
    play = _play_delivery if delivery else _play
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise GangerError(f"{keep} is not empty", hint="choose an empty folder for --keep", code="FILE_EXISTS")
        keep.mkdir(parents=True, exist_ok=True)
        return play(keep.resolve(), kept=True, as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="ganger-demo-") as folder:
        return play(Path(folder).resolve(), kept=False, as_json=as_json)


def _play(root: Path, *, kept: bool, as_json: bool) -> int:
    from ganger.app.checks.project import check_project
    from ganger.app.runs import newest_run, read_state
    from ganger.cli.foreground.drive import drive
    from ganger.config import load_project
    from ganger.demo.project import build_demo

    _say(f"A throw-away repository with a small ledger program: {root}", as_json)
    _say("Eight tasks, three scripted agents at a time. Nothing counts as done until its tests pass.\n", as_json)
    build_demo(root)
    project = load_project(root, environ={})
    drive(project, check_project(project), only=None, max_tasks=None, as_json=as_json, quiet_end=True)
    state = read_state(newest_run(project, None))
    return _report(root, state, kept=kept, as_json=as_json)


def _say(text: str, as_json: bool) -> None:
    if not as_json:
        click.echo(text)


def _report(root: Path, state: object, *, kept: bool, as_json: bool) -> int:
    from ganger.core.model.run_state import RunState
    from ganger.core.times import seconds_between
    from ganger.core.vocabulary import TaskStatus
    from ganger.demo.project import EXPECTED, changed_files, merged, merged_files
    from ganger.views.run.board import GLYPHS, counts_line, shown_duration

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
    if len(state.healing.rounds) != 2 or len(state.healing.patches) != 1:
        wrong.append(
            f"{len(state.healing.rounds)} heal rounds and {len(state.healing.patches)} patches, expected 2 and 1"
        )
    if not state.tasks["transfer"].agent.continued:
        wrong.append("transfer did not go on with its session after the limit")
    if as_json:
        print_json("demo", demo="fleet", folder=str(root), ok=not wrong, wrong=wrong)
        return 1 if wrong else 0
    took = shown_duration(seconds_between(state.started_at, state.finished_at))
    click.echo(f"\nWhat happened ({took}, $0.00): {counts_line(state)}")
    for name in EXPECTED:
        task = state.tasks[name]
        said = task.attempt.summary if task.status == "DONE" else task.detail
        click.echo(f"  {GLYPHS[task.status]} {task.status.value:<9} {name:<13} {said[:86]}")
    click.echo("\n  Each verified again on the merged head; one commit per task on the branch ganger/demo:")
    for line in commits:
        click.echo(f"    {line[:92]}")
    click.echo("  The broken change is not among them. Your checkout is unchanged; ganger land moves your branch.")
    click.echo("  One patch to the shared context healed two tasks; your prompt files are unchanged.")
    click.echo("  transfer reached its account's limit: the agents of that account waited, then its session continued.")
    click.echo("  command-line showed no activity: it was probed, stopped, and started again.")
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


# --- delivery -------------------------------------------------------------------------------------------------------


def _play_delivery(root: Path, *, kept: bool, as_json: bool) -> int:
    from ganger.app.checks.project import check_project
    from ganger.app.runs import newest_run, read_events, read_state
    from ganger.cli.foreground.drive import drive
    from ganger.config import load_project
    from ganger.demo.delivery import build_delivery, shortcomings, waited_sec
    from ganger.views.run.deliveries import delivered, ledger_json

    _say(f"A library and an app that builds on it, with remotes, CI scripts and a mirror: {root}", as_json)
    _say("Done means pushed, CI green for exactly that commit, and mirrored.\n", as_json)
    office = build_delivery(root)
    project = load_project(office, environ={})
    drive(project, check_project(project), only=None, max_tasks=None, as_json=as_json, quiet_end=True)
    folder = newest_run(project, None)
    state = read_state(folder)
    events = list(read_events(folder, 0))
    wrong = shortcomings(root, state, events)
    if as_json:
        ledger = [ledger_json(state, name) for name in delivered(state)]
        print_json("demo", demo="delivery", folder=str(root), ok=not wrong, wrong=wrong, ledger=ledger)
        return 1 if wrong else 0
    return _report_delivery(office, state, wrong, waited_sec(events), kept=kept)


def _report_delivery(office: Path, state: object, wrong: list[str], waited: float, *, kept: bool) -> int:
    from ganger.core.model.run_state import RunState
    from ganger.core.times import seconds_between
    from ganger.views.run.board import counts_line, shown_duration
    from ganger.views.run.deliveries import delivered, ledger_lines

    assert isinstance(state, RunState)
    took = shown_duration(seconds_between(state.started_at, state.finished_at))
    click.echo(f"\nWhat happened ({took}, $0.00): {counts_line(state)}. The ledger:")
    for name in delivered(state):
        click.echo("\n" + "\n".join(ledger_lines(state, name)))
    if wrong:
        click.echo("\nThis is not what the demo's script says:\n  " + "\n  ".join(wrong), err=True)
        return 1
    click.echo("\n  units passed its tests here and turned CI red; a worker got CI's log and fixed it.")
    click.echo("  report's mirror job was skipped while all others were green: only CI ran again.")
    held = shown_duration(waited)
    click.echo(f"  report builds on the library, so it waited {held} until all changes there were proved.")
    click.echo("  The remotes and the mirror hold exactly the proved commits.\n\nNext steps:")
    where = f"cd {office}" if kept else "ganger demo --delivery --keep DIR"
    click.echo(f"  1. {where}   then: ganger ledger units --json, ganger events, ganger why report")
    click.echo("  2. [delivery] in ganger.toml      forge, completion, required_jobs; ganger config show lists all")
    return 0

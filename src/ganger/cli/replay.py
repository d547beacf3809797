"""`ganger replay`: compares a recorded run with the decisions of the current core and parser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import json_option, look_at_project, print_json, project_option

if TYPE_CHECKING:
    from ganger.contracts.parser import Parsed, Refused
    from ganger.core.replay import Amend, Extract, Log
    from ganger.local.run_folder import RunFolder
    from ganger.ports.agents import Agent


@click.command("replay")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Try another [policy] or [budget] setting.")
@click.option("--logs", is_flag=True, help="Also read every agent's answer from its log again.")
@project_option
@json_option
def command(run: str | None, settings: tuple[str, ...], logs: bool, project: Path | None, as_json: bool) -> int:
    """Compute a run's decisions again from its events, and show where this version decides differently.

    No agent is called.

    RUN is a run's id or its folder (default: the newest run). Exit codes: 0 every decision is the same, 1 some differ.

    \b
    Examples:
      ganger replay
      ganger replay night-1 --logs
      ganger replay .ganger/night-1 --set policy.max_worker_attempts_per_task=3
    """
    from ganger.app.runs import read_events
    from ganger.core.replay import replay, reread
    from ganger.views.history.replay import ReplayReport, replay_json, replay_lines

    amend = _amendment(settings)
    folder = _folder(run, project)
    events = list(read_events(folder, 0))
    read = reread(events, _extract(folder, project)) if logs else None
    report = ReplayReport(replay(events, amend), read, settings)
    if as_json:
        print_json("replay", **replay_json(report))
    else:
        for line in replay_lines(report):
            click.echo(printable(line))
    return 0 if report.same else 1


def _amendment(settings: tuple[str, ...]) -> Amend | None:
    from ganger.core.control.commands import Refusal
    from ganger.core.replay import amendment
    from ganger.errors import UsageError

    pairs = [setting.partition("=") for setting in settings]
    if any(not equals for _, equals, _ in pairs):
        raise click.BadParameter("a setting is written KEY=VALUE", param_hint="--set")
    try:
        return amendment((key.strip(), text.strip()) for key, _, text in pairs) if pairs else None
    except Refusal as problem:
        raise UsageError(str(problem), hint="ganger config show lists every setting") from None


def _folder(run: str | None, project: Path | None) -> RunFolder:
    from ganger.app.runs import newest_run

    given = _given(Path(run), project) if run is not None and Path(run).is_dir() else None
    return given or newest_run(look_at_project(project), run)


def _given(folder: Path, project: Path | None) -> RunFolder | None:
    """The run in a folder given by path, which may be one that only shows a run of the project."""
    from ganger.app.run_places import runs_of
    from ganger.app.runs import has_begun
    from ganger.local.run_folder import RunFolder

    shown = folder.resolve()
    own = runs_of(look_at_project(project))
    found = next((run for run in own if run.shown is not None and run.shown.resolve() == shown), RunFolder(folder))
    return found if has_begun(found) else None


def _extract(folder: RunFolder, project: Path | None) -> Extract:
    """Reads each log with its agent's adapter; the log of an agent no longer configured is read as plain text."""
    from ganger.app.compose import make_agents
    from ganger.contracts.parser import Refused, parse_heal, parse_result
    from ganger.errors import GangerError

    try:
        agents = make_agents(look_at_project(project))
    except GangerError:
        agents = {}
    root = folder.path.resolve()

    def extract(log: Log) -> Parsed[Any] | Refused | None:
        path = (root / log.path).resolve()
        if not (path.is_file() and path.is_relative_to(root)):
            return None
        agent: Agent | None = agents.get(log.agent)
        try:
            if not log.task:
                return parse_heal(path) if agent is None else agent.extract_heal(path)
            return parse_result(path, task_id=log.task) if agent is None else agent.extract_result(path, log.task)
        except (OSError, GangerError) as error:
            return Refused("NO_SENTINEL", f"the log cannot be read: {error}")

    return extract

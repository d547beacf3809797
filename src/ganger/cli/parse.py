"""`ganger parse`: the parser that runs use, as a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import json_option, print_json

if TYPE_CHECKING:
    from ganger.contracts.parser import Parsed, Refused
    from ganger.core.masking import Masker


@click.group("parse")
def command() -> None:
    """Read the last complete result or heal block from a log, strictly; or an agent's own event stream.

    \b
    Examples:
      ganger parse events --agent claude .ganger/night/logs/api.worker.1.log
      ganger parse result .ganger/night/logs/api.worker.1.log --task api
      ganger parse heal heal.log --json
    """


@command.command("result")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--task", "task_id", metavar="TASK", help="The task the result must be for.")
@json_option
def parse_result_command(log: Path, task_id: str | None, as_json: bool) -> int:
    """Read a worker's task_result 2.0."""
    from ganger.contracts.parser import parse_result

    return _show(parse_result(log, task_id=task_id), as_json=as_json)


@command.command("heal")
@click.argument("log", type=click.Path(path_type=Path))
@json_option
def parse_heal_command(log: Path, as_json: bool) -> int:
    """Read a healer's heal_decision 2.0."""
    from ganger.contracts.parser import parse_heal

    return _show(parse_heal(log), as_json=as_json)


@command.command("events")
@click.argument("log", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--agent", "kind", metavar="KIND", required=True, help="Whose output it is: claude, codex, …")
@json_option
def parse_events_command(log: Path, kind: str, as_json: bool) -> int:
    """Show what Ganger reads from an agent's output: one line per signal, then the summary.

    \b
    Examples:
      ganger parse events --agent claude .ganger/night/logs/api.worker.1.log
      ganger parse events --agent codex stream.jsonl --json
    """
    from ganger.app.compose import agent_of_kind, signs_in
    from ganger.views.history.signs import as_json as sign_json, heard_json, heard_lines, sign_line

    agent = agent_of_kind(kind)
    signs, heard = signs_in(agent, log)
    masker = _masker()
    if as_json:
        told = {"signs": [sign_json(sign) for sign in signs], "heard": heard_json(heard)}
        print_json("parse", agent=kind, **masker.within(told))
        return 0
    for sign in signs:
        click.echo(printable(masker.text(sign_line(sign))))
    for line in heard_lines(heard):
        click.echo(printable(masker.text(line)))
    return 0


def _masker() -> Masker:
    """Masks the values the project hands to agents; without a project there is nothing to mask."""
    from ganger.app.masks import masker_of
    from ganger.config import project_root, read_project
    from ganger.core.masking import NOTHING
    from ganger.errors import GangerError

    try:
        project, _ = read_project(project_root(None, None, Path.cwd()))
    except GangerError:
        return NOTHING
    return masker_of(project) if project.has_file else NOTHING


def _show(answer: Parsed[Any] | Refused, *, as_json: bool) -> int:
    from ganger.contracts.parser import Refused

    masker = _masker()
    if isinstance(answer, Refused):
        if as_json:
            print_json("parse", ok=False, code=answer.code, message=masker.text(answer.message))
        else:
            click.echo(f"{answer.code}: {printable(masker.text(answer.message))}", err=True)
            click.echo(f"next:  ganger explain {answer.code}", err=True)
        return 1
    if as_json:
        print_json("parse", ok=True, value=masker.within(answer.data), repaired=answer.repaired)
    else:
        click.echo(printable(json.dumps(masker.within(answer.data), indent=2, ensure_ascii=False)))
        if answer.repaired:
            click.echo("note: the block was repaired (fence, comments or trailing commas)", err=True)
    return 0

"""`ganger parse`: the one parser, for people and programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ganger.cli.main import printable
from ganger.cli.options import json_option, print_json
from ganger.errors import NotBuiltYet

if TYPE_CHECKING:
    from ganger.contracts.parser import Parsed, Refused


@click.group("parse")
def command() -> None:
    """Read the last complete result or heal block out of a log, strictly.

    \b
    Examples:
      ganger parse result .ganger/night/logs/api.worker.1.log --task api
      ganger parse heal heal.log --json
    """


@command.command("result")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--task", "task_id", metavar="ID", help="The task the result must be for.")
@json_option
def parse_result_command(log: Path, task_id: str | None, as_json: bool) -> int:
    """A worker's task_result 2.0."""
    from ganger.contracts.parser import parse_result

    return _show(parse_result(log, task_id=task_id), as_json=as_json)


@command.command("heal")
@click.argument("log", type=click.Path(path_type=Path))
@json_option
def parse_heal_command(log: Path, as_json: bool) -> int:
    """A healer's heal_decision 2.0."""
    from ganger.contracts.parser import parse_heal

    return _show(parse_heal(log), as_json=as_json)


@command.command("events", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def parse_events_command() -> int:
    """An agent's event stream (not there yet)."""
    raise NotBuiltYet("ganger parse events is not there yet")


def _show(answer: Parsed[Any] | Refused, *, as_json: bool) -> int:
    from ganger.contracts.parser import Refused

    if isinstance(answer, Refused):
        if as_json:
            print_json("parse", ok=False, code=answer.code, message=answer.message)
        else:
            click.echo(f"{answer.code}: {printable(answer.message)}", err=True)
            click.echo(f"next:  ganger explain {answer.code}", err=True)
        return 1
    if as_json:
        print_json("parse", ok=True, value=answer.data, repaired=answer.repaired)
    else:
        click.echo(printable(json.dumps(answer.data, indent=2, ensure_ascii=False)))
        if answer.repaired:
            click.echo("note: the block was repaired (fence, comments or trailing commas)", err=True)
    return 0

"""The common end of every control command: store it with the run, print the outcome, choose the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import print_json
from ganger.errors import EXIT_ERROR, EXIT_OK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ganger.app.control import Told
    from ganger.core.model.run_state import RunState
    from ganger.local.run_folder import RunFolder


def tell_run(
    opened: tuple[RunFolder, RunState], kind: str, data: Mapping[str, object] | None = None, *, as_json: bool
) -> int:
    from ganger.app.control import tell

    return show(tell(*opened, kind, data or {}), as_json=as_json)


def show(told: Told, *, as_json: bool) -> int:
    """Prints the outcome. 0: carried out, or kept for the next lead; 1: refused."""
    if as_json:
        print_json(
            "command", ok=not told.refused, run_id=told.run_id, kind=told.kind, number=told.number or None,
            led=told.led, taken=bool(told.outcome), outcome=told.outcome or None, message=told.sentence,
        )  # fmt: skip
    else:
        click.echo(printable(told.sentence), err=told.refused)
    return EXIT_ERROR if told.refused else EXIT_OK

"""`ganger explain`: what codes and failure classes mean."""

from __future__ import annotations

import click

from ganger.cli.shell.options import json_option, print_json


@click.command("explain")
@click.argument("code", required=False)
@json_option
def command(code: str | None, as_json: bool) -> int:
    """Explain a code, failure class, status or block reason, and what to do about it. Without CODE: list them all.

    \b
    Examples:
      ganger explain NO_SENTINEL
      ganger explain test_error
    """
    from ganger.views.reference.codes import entries, find

    if code is None:
        rows = entries()
        if as_json:
            print_json("explain", codes=[row.as_json() for row in rows])
        else:
            for row in rows:
                click.echo(f"{row.code:<26} {row.title}")
        return 0
    row = find(code)
    if as_json:
        print_json("explain", **row.as_json())
    else:
        click.echo(f"{row.code}: {row.title}\n\n{row.meaning}\n\nWhat to do: {row.next_step}")
    return 0

"""`ganger schema`: the published JSON Schemas."""

from __future__ import annotations

import json

import click

from ganger.cli.shell.options import json_option

NAMES = ("manifest", "task_result", "heal_decision", "state", "verify_profile", "config", "worker", "events")


@click.command("schema")
@click.argument("name", metavar="FORMAT", type=click.Choice(NAMES))
@json_option
def command(name: str, as_json: bool) -> int:
    """Print the JSON Schema of a file format, of ganger.toml, of a worker's messages, or of an event.

    FORMAT is manifest, task_result, heal_decision, state, verify_profile, config, worker or events.

    \b
    Examples:
      ganger schema manifest > manifest.schema.json
    """
    from ganger.views.reference.schemas import schema

    click.echo(json.dumps(schema(name), indent=None if as_json else 2, ensure_ascii=False))
    return 0

"""`ganger schema`: the published JSON Schemas."""

from __future__ import annotations

import json

import click

NAMES = ("manifest", "task_result", "heal_decision", "state", "verify_profile", "config", "events")


@click.command("schema")
@click.argument("name", type=click.Choice(NAMES))
def command(name: str) -> int:
    """Print the JSON Schema of a file format, of ganger.toml, or of an event.

    \b
    Examples:
      ganger schema manifest > manifest.schema.json
    """
    from ganger.views.schemas import schema

    click.echo(json.dumps(schema(name), indent=2, ensure_ascii=False))
    return 0

"""`ganger agents`: adapters, capabilities, health."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from ganger.cli.options import json_option, open_project, print_json, project_option


@click.command("agents")
@click.option("--check", is_flag=True, help="Also find out whether each is ready.")
@project_option
@json_option
def command(check: bool, project: Path | None, as_json: bool) -> int:
    """The agents of this project, and the kinds there are.

    \b
    Examples:
      ganger agents --check
    """
    from ganger.app import agent_kinds, make_agents

    kinds, announced = agent_kinds()

    agents = make_agents(open_project(project))
    rows = []
    for name, agent in agents.items():
        row: dict[str, object] = {"name": name, "kind": agent.kind, "capabilities": asdict(agent.capabilities)}
        if check:
            health = agent.healthcheck()
            row |= {"ready": health.ready, "version": health.version or None, "details": list(health.details)}
        rows.append(row)
    ready = all(row.get("ready", True) for row in rows)
    if as_json:
        print_json("agents", agents=rows, kinds=kinds, announced=announced)
        return 0 if ready else 1
    for row in rows:
        shown = "" if not check else "  ready" if row["ready"] else "  NOT READY"
        details = "; ".join(row["details"]) if check and isinstance(row["details"], list) else ""
        click.echo(f"{row['name']} ({row['kind']}){shown}  {details}".rstrip())
    if not rows:
        click.echo("no agent is configured; add [agents.NAME] to ganger.toml, or run ganger init")
    click.echo(f"kinds: {', '.join(kinds)}; announced: {', '.join(announced)}", err=True)
    return 0 if ready else 1

"""`ganger agents`: adapters, versions, capabilities, health."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import json_option, open_project, print_json, project_option

if TYPE_CHECKING:
    from ganger.ports.agents import Agent, AgentHealth


@dataclass(frozen=True, slots=True)
class _Row:
    agent: Agent
    health: AgentHealth | None = None

    def as_json(self) -> dict[str, object]:
        row: dict[str, object] = {
            "name": self.agent.name,
            "kind": self.agent.kind,
            "capabilities": asdict(self.agent.capabilities),
        }
        if self.health is None:
            return row
        found = self.health
        return row | {
            "ready": found.ready,
            "version": found.version or None,
            "login": found.login,
            "details": list(found.details),
        }

    def text(self) -> str:
        name = f"{self.agent.name} ({self.agent.kind})"
        if self.health is None:
            able = [word for word, can in asdict(self.agent.capabilities).items() if can]
            return f"{name}  {', '.join(able)}"
        shown = "ready" if self.health.ready else "NOT READY"
        version = f"  {self.health.version}" if self.health.version else ""
        return f"{name}  {shown}{version}  {'; '.join(self.health.details)}"


@click.command("agents")
@click.option("--check", is_flag=True, help="Also look on PATH, ask for versions, and check logins.")
@project_option
@json_option
def command(check: bool, project: Path | None, as_json: bool) -> int:
    """List this project's agents and all known kinds; with --check, what is installed on this machine too.

    The exit code is 1 when a configured agent is not ready.

    \b
    Examples:
      ganger agents
      ganger agents --check
      ganger agents --check --json
    """
    from ganger.app.compose import agent_kinds, make_agents, programs_on_path

    opened = open_project(project)
    configured = [_Row(agent) for agent in make_agents(opened).values()]
    others = []
    if check:
        found = [_Row(agent) for agent in programs_on_path(opened.root)]
        healths = _examined([row.agent for row in (*configured, *found)])
        configured = [_Row(row.agent, healths[id(row.agent)]) for row in configured]
        others = [_Row(row.agent, healths[id(row.agent)]) for row in found]
    ready = all(row.health is None or row.health.ready for row in configured)
    if as_json:
        print_json(
            "agents",
            agents=[row.as_json() for row in configured],
            programs=[row.as_json() for row in others],
            kinds=agent_kinds(),
        )
        return 0 if ready else 1
    for row in configured:
        click.echo(printable(row.text()))
    if not configured:
        click.echo("no agent is configured; add [agents.NAME] to ganger.toml, or run ganger init")
    _show_programs(others, check=check)
    click.echo(f"kinds: {', '.join(agent_kinds())}", err=True)
    return 0 if ready else 1


def _show_programs(rows: list[_Row], *, check: bool) -> None:
    if not check:
        return
    click.echo("on this machine:" if rows else "on this machine: no known agent program is on PATH")
    for row in rows:
        assert row.health is not None
        login = {True: "logged in", False: "not logged in", None: "login unknown"}[row.health.login]
        version = row.health.version or "version unknown"
        words = "; ".join(row.health.details)
        click.echo(printable(f"  {row.agent.kind:<10} {version:<28} {login:<14} {words}"))


def _examined(agents: list[Agent]) -> dict[int, AgentHealth]:
    """In parallel: some programs take seconds to print their version."""
    from concurrent.futures import ThreadPoolExecutor

    if len(agents) > 1:
        click.echo(f"asking {len(agents)} agents…", err=True)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(zip(map(id, agents), pool.map(lambda agent: agent.healthcheck(), agents), strict=True))

"""The agents of a project: made from its settings, for its roles, and checked before anything starts."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ganger.agents.settings import AgentSettings, TerminalSettings
from ganger.agents.streams import signs_of
from ganger.agents.table import PROGRAMS, kinds, make_agent
from ganger.app.checks.project import Checked
from ganger.config import AgentSection, Project, environment
from ganger.core.model.records import TaskSpec
from ganger.core.model.workers import PULL
from ganger.core.signs import Heard, Sign
from ganger.errors import GangerError
from ganger.ports.agents import Agent, AgentHealth

if TYPE_CHECKING:
    from ganger.engine.resources.run_resources import Stronger


def agent_settings(section: AgentSection) -> AgentSettings:
    given = section.model_dump(exclude={"account", "in_place", "argv", "env", "args", "home_files", "terminal"})
    return AgentSettings(
        **given,
        argv=tuple(section.argv),
        env=tuple(section.env),
        args=tuple(section.args),
        home_files=None if section.home_files is None else tuple(f.removeprefix("~/") for f in section.home_files),
        terminal=TerminalSettings(**section.terminal.model_dump()),
    )


def make_agents(project: Project) -> dict[str, Agent]:
    """Every configured agent by its name."""
    return {
        name: make_agent(name, agent_settings(section), project.root, environ_for(project, section))
        for name, section in project.config.agents.items()
    }


def environ_for(project: Project, section: AgentSection) -> dict[str, str]:
    """An agent's environment: without the forge's token, unless the agent's own settings name that variable."""
    return project.handed_on(*section.env, *filter(None, [section.key_env]))


def agent_kinds() -> list[str]:
    return kinds()


def programs_on_path(root: Path) -> list[Agent]:
    """An agent of each known kind whose program is on PATH."""
    environ = environment()
    found = [kind for kind in PROGRAMS if shutil.which(kind, path=environ.get("PATH"))]
    return [make_agent(kind, AgentSettings(kind), root, environ) for kind in found]


def found_programs(root: Path) -> list[tuple[str, AgentHealth]]:
    return [(agent.kind, agent.healthcheck()) for agent in programs_on_path(root)]


def agent_of_kind(kind: str) -> Agent:
    """An agent used only to read the output of its kind."""
    return make_agent(kind, AgentSettings(kind, argv=(kind,)), Path.cwd(), {})


def signs_in(agent: Agent, log: Path) -> tuple[list[Sign], Heard]:
    """The signals in an agent's output, one by one and as a summary."""
    reader = agent.reader()
    try:
        if reader is None:
            return [], agent.hear(log)
        signs, heard = list(signs_of(reader, log)), Heard()
    except OSError as error:
        raise GangerError(f"{log}: cannot be read: {error.strerror}", code="FILE_UNREADABLE") from error
    heard.add(signs)
    return signs, heard


def reading(project: Project, worked_by: str) -> Agent | None:
    """An agent that can read the output of this name and kind; None if there is no such kind."""
    name, _, kind = worked_by.rpartition("/")
    section = project.config.agents.get(name)
    given = agent_settings(section) if section is not None and section.kind == kind else AgentSettings(kind, (kind,))
    try:
        return make_agent(name, given, project.root, environment())
    except GangerError:
        return None


def agent_of_role(project: Project, name: str, *, strong: bool = False) -> Agent:
    """W01 D16: the role's agent with the role's model, effort, turns and arguments."""
    role = project.config.roles[name]
    section = project.config.agents[role.agent]
    given = agent_settings(section)
    model, effort = (role.strong_model, role.strong_effort) if strong else ("", "")
    settings = replace(
        given,
        model=model or role.model or given.model,
        effort=effort or role.effort or given.effort,
        max_turns=role.max_turns or given.max_turns,
        args=(*given.args, *role.args),
    )
    return make_agent(role.agent, settings, project.root, environ_for(project, section))


def strong_agents(project: Project, roles: Collection[str]) -> dict[str, Stronger]:
    """The stronger agents of roles that have a stronger model for some tasks."""
    # Imported here: commands that only read need no engine.
    from ganger.engine.resources.run_resources import Stronger

    config = project.config.roles
    named = [name for name in roles if config[name].strong_model or config[name].strong_effort]
    return {
        name: Stronger(agent_of_role(project, name, strong=True), frozenset(config[name].strong_when)) for name in named
    }


HEALER = "healer"


def agents_by_role(project: Project, checked: Checked) -> dict[str, Agent]:
    """The agents of this run's roles; raises if one is not ready."""
    wanted = dict.fromkeys(spec.role for spec in checked.specs)
    if heals(project):
        wanted[HEALER] = None
    wanted |= dict.fromkeys(reviewers(project, checked.specs))
    roles = {role: agent_of_role(project, role) for role in wanted}
    health_of = {agent.name: agent.healthcheck() for agent in {a.name: a for a in roles.values()}.values()}
    for role, agent in roles.items():
        health = health_of[agent.name]
        if not health.ready:
            raise GangerError(
                f"agent {agent.name} (role {role}) is not ready: {'; '.join(health.details)}",
                hint="ganger agents --check shows every agent",
                code="AGENT_NOT_READY",
            )
    return roles


def reviewers(project: Project, specs: Iterable[TaskSpec]) -> list[str]:
    """The roles that review changes of this run."""
    found: dict[str, None] = {}
    for spec in specs if project.config.workspace.mode != "direct" else ():
        section = project.delivery_of(spec.repo)
        if (spec.review or section.review) == "agent":
            found[section.reviewer] = None
    return list(found)


def fallback_agents(project: Project, roles: Collection[str]) -> dict[str, Agent]:
    """The agents that take over a role's tasks when its own agent stalls repeatedly."""
    names = {role: project.config.roles[role].fallback for role in roles if project.config.roles[role].fallback}
    made = make_agents(project) if names else {}
    return {role: made[name] for role, name in names.items()}


def pull_roles(roles: dict[str, Agent]) -> tuple[str, ...]:
    """Roles whose tasks sessions ask for; no worker is started for them."""
    return tuple(sorted(role for role, agent in roles.items() if agent.kind == PULL))


def heals(project: Project) -> bool:
    return HEALER in project.config.roles and project.config.policy.heal_schedule != "off"


def accounts_of(project: Project, roles: dict[str, Agent]) -> dict[str, str]:
    """The account of each role."""
    agents = project.config.agents
    return {role: agents[agent.name].account or agent.name for role, agent in roles.items()}

"""What a run needs besides its files: agents, git repositories, the sandbox, a place for its state. Lists everything
that is missing at once, checked in the same way as the run does it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from ganger.app.agents import HEALER, agent_of_role, heals, reviewers
from ganger.app.checks.project import Checked, missing_programs
from ganger.app.delivery import completion_of, path_of, section_of
from ganger.app.preflight import delivering_repos, require_token, require_webhook_secret
from ganger.app.sandbox import sandbox_of
from ganger.config import PROJECT_FILE, Project
from ganger.core.names import repo_store
from ganger.errors import Fault, GangerError, InputError
from ganger.workspaces.direct.workspace import DirectWorkspace
from ganger.workspaces.git.bare_repo import BareRepo
from ganger.workspaces.git.checkouts import plain_parts
from ganger.workspaces.remotes.addresses import remote_address
from ganger.workspaces.rules.protected import Protection


def settings_faults(project: Project, problems: Iterable[GangerError]) -> Iterator[Fault]:
    """Each fault's path begins with the file or other source it comes from."""
    for problem in problems:
        if not isinstance(problem, InputError):
            yield Fault("", problem.code, problem.message)
            continue
        source = Path(problem.source)
        name = source.name if source.parent == project.root else problem.source
        yield from (Fault(f"{name}:{one.path}" if one.path else name, one.code, one.message) for one in problem.faults)


def check_ground(project: Project, checked: Checked) -> None:
    """Settings that could only be read in part are not checked: once fixed, they may be quite different."""
    if not project.has_file or project.unread:
        return
    for look in (_agents, _git, _secrets, _sandbox, _state_folder, _named_by_settings):
        checked.faults.extend(look(project, checked))
    for program in missing_programs(project, checked):
        message = f"{program} is not on PATH; verification would fail unless a task provides it"
        checked.warnings.append(Fault(project.config.verify.profiles_file, "PROGRAM_MISSING", message))


def _told(path: str, ask: Callable[[], object]) -> Iterator[Fault]:
    try:
        ask()
    except GangerError as problem:
        yield Fault(path, problem.code, f"{problem.message}; {problem.hint}" if problem.hint else problem.message)


def _agents(project: Project, checked: Checked) -> Iterator[Fault]:
    """Agents of the roles this run needs; of all roles if that is unknown."""
    roles = project.config.roles
    wanted = dict.fromkeys([spec.role for spec in checked.specs] or roles)
    wanted |= dict.fromkeys([*([HEALER] if heals(project) else []), *reviewers(project, checked.specs)])
    seen: set[str] = set()
    for role in wanted:
        if role not in roles or roles[role].agent not in project.config.agents or roles[role].agent in seen:
            continue
        seen.add(roles[role].agent)
        yield from _told(f"{PROJECT_FILE}:agents.{roles[role].agent}", partial(_require_ready, project, role))


def _require_ready(project: Project, role: str) -> None:
    agent = agent_of_role(project, role)
    health = agent.healthcheck()
    if not health.ready:
        raise GangerError(
            f"agent {agent.name} (role {role}) is not ready: {'; '.join(health.details)}", code="AGENT_NOT_READY"
        )


def _git(project: Project, checked: Checked) -> Iterator[Fault]:
    if project.config.workspace.mode == "direct":
        return
    repos = project.config.repos
    used = {spec.repo for spec in checked.specs} or {"", *repos} - ({""} if repos else set())
    for repo in sorted(name for name in used if not name or name in repos):
        store = project.shown_path / repo_store(repo)
        path = f"{PROJECT_FILE}:repos.{repo}.path" if repo else ""
        faults = list(_told(path, BareRepo(path_of(project, repo), store).project_head))
        yield from faults or _remote(project, repo)


def _secrets(project: Project, checked: Checked) -> Iterator[Fault]:
    """Missing tokens and secrets that this run's deliveries need."""
    delivering = delivering_repos(project, checked.specs or None)
    for repo in delivering:
        section = project.delivery_of(repo)
        own = repo and project.config.repos[repo].delivery
        place = f"{PROJECT_FILE}:repos.{repo}.delivery" if own else f"{PROJECT_FILE}:delivery"
        key = "token_env" if section.token_env else "token_file"
        yield from _told(f"{place}.{key}", partial(require_token, project, repo))
    if delivering:
        yield from _told(f"{PROJECT_FILE}:delivery.webhook_secret_env", partial(require_webhook_secret, project))


def _remote(project: Project, repo: str) -> Iterator[Fault]:
    section = section_of(project, repo)
    if not {"pushed", "ci", "mirrored"}.isdisjoint(completion_of(project, section)):
        path = f"{PROJECT_FILE}:repos.{repo}.delivery.remote" if repo else f"{PROJECT_FILE}:delivery.remote"
        yield from _told(path, lambda: remote_address(path_of(project, repo), section.remote))


def _sandbox(project: Project, _checked: Checked) -> Iterator[Fault]:
    yield from _told(f"{PROJECT_FILE}:sandbox.use", lambda: sandbox_of(project))


def _state_folder(project: Project, _checked: Checked) -> Iterator[Fault]:
    yield from _told(f"{PROJECT_FILE}:state_dir", lambda: _require_writable(project.state_path))


def _named_by_settings(project: Project, _checked: Checked) -> Iterator[Fault]:
    """Patterns, files and variables that a run reads at its start."""
    config = project.config
    for name in ("protected", "unprotected"):
        for number, one in enumerate(getattr(config.workspace, name)):
            yield from _told(f"{PROJECT_FILE}:workspace.{name}[{number}]", partial(Protection, (one,)))
    for name in ("linked", "copied"):
        for number, one in enumerate(getattr(config.workspace, name)):
            yield from _told(f"{PROJECT_FILE}:workspace.{name}[{number}]", partial(plain_parts, one))
    for name, role in config.roles.items():
        if role.prompt:
            read = partial(DirectWorkspace(project.root, Protection()).read_text, role.prompt)
            yield from _told(f"{PROJECT_FILE}:roles.{name}.prompt", read)


def _require_writable(folder: Path) -> None:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise GangerError(
            f"{folder} cannot be written, and runs are kept there",
            hint="fix its permissions, or choose another folder with state_dir",
            code="NOT_WRITABLE",
        )

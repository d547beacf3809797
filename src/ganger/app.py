"""Puts a run together: the only module that names concrete adapters."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ganger import __version__
from ganger.agents.table import ANNOUNCED, KINDS, AgentSettings, make_agent
from ganger.check import Checked
from ganger.config import PROJECT_FILE, Project, environment
from ganger.core.environment import child_environment
from ganger.core.events import Recorded, RunStarted
from ganger.core.projection import state_text
from ganger.core.records import Policy, RunState
from ganger.core.transitions import apply
from ganger.core.vocabulary import HealSchedule
from ganger.engine.attempt import Tools
from ganger.engine.files import RunFolder, leading, named_os_errors
from ganger.engine.journal import Journal
from ganger.engine.run import Lead, Order
from ganger.engine.turns import Turns
from ganger.errors import GangerError, NotBuiltYet, NotFoundError
from ganger.launchers.local import LocalLauncher
from ganger.ports import Agent, Listener
from ganger.stores.sqlite import SqliteStore
from ganger.workspaces.direct import DirectWorkspace
from ganger.workspaces.protect import DEFAULT_PROTECTED, Protection


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True)
class RunOptions:
    """What a person asked for on the command line."""

    only: tuple[str, ...] | None = None
    max_tasks: int | None = None
    listeners: tuple[Listener, ...] = field(default=())


def policy_of(project: Project) -> Policy:
    given = project.config.policy
    return Policy(
        heal_schedule=HealSchedule(given.heal_schedule),
        batch_size=given.batch_size,
        failure_threshold=given.failure_threshold,
        max_worker_attempts_per_task=given.max_worker_attempts_per_task,
        max_heal_rounds_per_window=given.max_heal_rounds_per_window,
        max_total_heal_rounds=given.max_total_heal_rounds,
        signature_repeat_limit=given.signature_repeat_limit,
        concurrency=given.concurrency,
        format_retries=given.format_retries,
        respawns=given.respawns,
    )


def require_built(project: Project) -> None:
    """Settings of capabilities that are announced but not there yet are refused, not ignored."""
    config = project.config
    wanted = {
        f"workspace.mode = {config.workspace.mode!r}": config.workspace.mode != "direct",
        "sandbox.use = 'require'": config.sandbox.use == "require",
        f"sandbox.network = {config.sandbox.network!r}": config.sandbox.network != "allow",
        "[repos]": bool(config.repos),
        f"delivery.completion = {config.delivery.completion!r}": set(config.delivery.completion) != {"verified"},
    }
    for name, asked in wanted.items():
        if asked:
            raise NotBuiltYet(
                f"{name} is not there yet", hint=f"remove it from {PROJECT_FILE} (or its variable) for now"
            )


def make_agents(project: Project) -> dict[str, Agent]:
    """Every configured agent by its name."""
    environ = environment()
    made = {}
    for name, section in project.config.agents.items():
        settings = AgentSettings(
            kind=section.kind,
            argv=tuple(section.argv),
            prompt=section.prompt,
            env=tuple(section.env),
            model=section.model,
            script=section.script,
        )
        made[name] = make_agent(name, settings, project.root, environ)
    return made


def agent_kinds() -> tuple[list[str], list[str]]:
    """The kinds there are, and those that are announced."""
    return list(KINDS), list(ANNOUNCED)


def agents_by_role(project: Project, checked: Checked) -> dict[str, Agent]:
    """The agents this manifest's roles need, each found ready before anything is started."""
    agents = make_agents(project)
    roles = {role: agents[project.config.roles[role].agent] for role in dict.fromkeys(s.role for s in checked.specs)}
    for role, agent in roles.items():
        health = agent.healthcheck()
        if not health.ready:
            raise GangerError(
                f"agent {agent.name} (role {role}) is not ready: {'; '.join(health.details)}",
                hint="ganger agents --check shows every agent",
                code="AGENT_NOT_READY",
            )
    return roles


def protection_of(project: Project, manifest: Path) -> Protection:
    """The defaults, the files Ganger itself lives by, and what the operator added."""
    config = project.config
    own = [project.root / PROJECT_FILE, project.state_path, project.manifest_path, project.profiles_path, manifest]
    inside = [path.resolve() for path in own if path.resolve().is_relative_to(project.root.resolve())]
    own_paths = dict.fromkeys(f"/{path.relative_to(project.root.resolve()).as_posix()}" for path in inside)
    patterns = (*DEFAULT_PROTECTED, *own_paths, *config.workspace.protected)
    return Protection(patterns, tuple(config.workspace.unprotected))


@contextmanager
def open_lead(project: Project, checked: Checked, options: RunOptions) -> Iterator[Lead]:
    """Takes the lead of a run, new or continued, and gives it back however this ends."""
    checked.require()
    require_built(project)
    assert checked.manifest is not None and checked.profiles is not None
    agents = agents_by_role(project, checked)
    folder = RunFolder.of(project.state_path, checked.manifest.run_id)
    folder.make()
    _ignore_state_dir(project.state_path)
    with leading(folder):
        store = SqliteStore(folder.database)
        try:
            journal = Journal(store, RunState(), SystemClock())
            journal.replay()
            _require_same_manifest(journal.state, checked)
            _require_known(options, checked)
            journal.listeners.extend(options.listeners)
            launcher = LocalLauncher(grace_sec=project.config.policy.grace_sec, sole=True)
            tools = Tools(
                journal=journal,
                folder=folder,
                workspace=DirectWorkspace(project.root, protection_of(project, checked.source)),
                launcher=launcher,
                clock=journal.clock,
                agents=agents,
                profiles=dict(checked.profiles.profiles),
                tiers=dict(project.config.verify.tiers),
                deny=tuple(project.config.verify.deny),
                verify_env=child_environment(environment(), extra={}),
                verify_timeout_sec=project.config.verify.timeout_sec,
                turns=Turns(),
            )
            yield Lead(tools, _order(project, checked, options), grace_sec=project.config.policy.grace_sec)
        finally:
            store.close()


def _order(project: Project, checked: Checked, options: RunOptions) -> Order:
    assert checked.manifest is not None
    return Order(
        run_id=checked.manifest.run_id,
        manifest_digest=checked.digest,
        tasks=checked.specs,
        policy=policy_of(project),
        pid=os.getpid(),
        version=__version__,
        only=options.only,
        max_tasks=options.max_tasks,
    )


def _ignore_state_dir(state_dir: Path) -> None:
    """Runs are never committed by accident."""
    path = state_dir / ".gitignore"
    if not path.exists():
        with named_os_errors(path):
            path.write_text("*\n")


def _require_same_manifest(state: RunState, checked: Checked) -> None:
    if state.last_seq and state.manifest_digest != checked.digest:
        raise GangerError(
            f"the manifest changed since run {state.run_id} began "
            f"(digest {state.manifest_digest[:12]}, now {checked.digest[:12]})",
            hint="restore the manifest to continue this run, or give it a new run_id to start another",
            code="MANIFEST_CHANGED",
        )


def _require_known(options: RunOptions, checked: Checked) -> None:
    known = {spec.id for spec in checked.specs}
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        raise NotFoundError(
            f"--only names no task of the manifest: {', '.join(unknown)}", hint="ganger plan lists the ids"
        )


def fresh_state_text(project: Project, checked: Checked) -> str:
    """state.json of a run that has not begun."""
    assert checked.manifest is not None
    state = RunState()
    begun = RunStarted(checked.manifest.run_id, checked.digest, policy_of(project), checked.specs, __version__)
    apply(state, Recorded(0, "", begun))
    return state_text(state)

"""Puts a run together: the only module that names concrete adapters."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from ganger import __version__
from ganger.app.agents import (
    HEALER as HEALER,
    accounts_of as accounts_of,
    agent_kinds as agent_kinds,
    agent_of_kind as agent_of_kind,
    agent_of_role as agent_of_role,
    agent_settings as agent_settings,
    agents_by_role as agents_by_role,
    fallback_agents,
    found_programs as found_programs,
    heals as heals,
    make_agents as make_agents,
    programs_on_path as programs_on_path,
    pull_roles,
    reading,
    signs_in as signs_in,
    strong_agents as strong_agents,
)
from ganger.app.checks.project import Checked
from ganger.app.delivery import DeliveryParts, names_of, path_of, rules_of_run
from ganger.app.masks import masker_of
from ganger.app.notices import hook_files, notices_of
from ganger.app.policies import budget_of, limits_of, policy_of as policy_of
from ganger.app.prompt_files import Contents
from ganger.app.run_places import note_lead, place_of, settle, sweep_left_over
from ganger.app.sandbox import granted, sandbox_of, sandbox_settings
from ganger.app.worker_program import worker_program
from ganger.config import PROJECT_FILE, AgentSection, Project
from ganger.contracts.parser import parse_heal
from ganger.core.control.reconcile import ContentDigest, Difference, compare, reconcile
from ganger.core.events import Recorded, RunStarted
from ganger.core.masking import NOTHING, Masker
from ganger.core.model.records import TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.model.workers import PULL
from ganger.core.money.pricing import Price
from ganger.core.names import file_stem, repo_store, shared_folder
from ganger.core.scheduling.health import HealthPolicy
from ganger.core.state.apply import apply
from ganger.core.state.projection import state_text
from ganger.core.verify.environment import child_environment, withheld_names
from ganger.core.vocabulary import MergeMode, Mode
from ganger.endpoint.address import remove as remove_address
from ganger.endpoint.server import ReportServer
from ganger.engine.direct_lock import alone_in
from ganger.engine.healing.learned_rules import learned_elsewhere
from ganger.engine.journal import Journal
from ganger.engine.lead import Lead, Order, Reconcile
from ganger.engine.output.published_files import show_ignored
from ganger.engine.prompts.patched_prompts import PatchedPrompts
from ganger.engine.resources.agent_homes import Homes
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.engine.resources.folder_lock import FolderLock
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.resources.worker_tokens import WorkerTokens
from ganger.engine.verification.checks import Checks
from ganger.engine.verification.steps import Recovery
from ganger.errors import GangerError, NotFoundError
from ganger.launchers.launcher import KeptLauncher
from ganger.local.procfs import boot_id
from ganger.local.run_folder import RunFolder, named_os_errors, write_private
from ganger.ports.agents import Agent
from ganger.ports.changes import Change, RoleRules, Rules
from ganger.ports.clock import Clock
from ganger.ports.processes import Launcher
from ganger.ports.repository import Repository
from ganger.ports.sandbox import Sandbox
from ganger.ports.store import Listener
from ganger.runners.table import KnownRunners
from ganger.sandboxes.bubblewrap import Bubblewrap
from ganger.sandboxes.choose import AnySandbox, keeps_in_place
from ganger.sandboxes.concealed import concealed
from ganger.stores.table import stores_of
from ganger.views.planned.reconcile import difference_lines
from ganger.workspaces.direct.fixed_files import FixedFiles
from ganger.workspaces.direct.project_copy import ProjectCopies
from ganger.workspaces.direct.watch import FolderWatch, Watching, is_unwatched
from ganger.workspaces.direct.workspace import DirectWorkspace, Judge
from ganger.workspaces.files.activity import Newest
from ganger.workspaces.files.removal import discard
from ganger.workspaces.gates.guard import stand
from ganger.workspaces.git.bare_repo import BareRepo
from ganger.workspaces.git.repository import GitRepository, GitSettings
from ganger.workspaces.git.settings import settings_for
from ganger.workspaces.rules.artifacts import is_generated
from ganger.workspaces.rules.masking import Mask
from ganger.workspaces.rules.protected import DEFAULT_PROTECTED, Protection
from ganger.workspaces.rules.roles import gates_of, paths_of
from ganger.workspaces.safeguards import ChangeLimits, require


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True)
class RunOptions:
    """The options given on the command line."""

    only: tuple[str, ...] | None = None
    max_tasks: int | None = None
    reconcile: bool = False
    waits: bool = False
    listeners: tuple[Listener, ...] = field(default=())


CONTENTS = "contents.json"


def protection_of(project: Project, manifest: Path) -> Protection:
    """The protected files: the defaults, Ganger's own files, and what the operator added."""
    config = project.config
    own = [project.root / PROJECT_FILE, project.shown_path, project.manifest_path, project.profiles_path, manifest]
    own += [*hook_files(project), *project.mirror_files("")]
    inside = [path.resolve() for path in own if path.resolve().is_relative_to(project.root.resolve())]
    own_paths = dict.fromkeys(f"/{path.relative_to(project.root.resolve()).as_posix()}" for path in inside)
    patterns = (*DEFAULT_PROTECTED, *own_paths, *config.workspace.protected)
    return Protection(patterns, tuple(config.workspace.unprotected))


@asynccontextmanager
async def open_lead(project: Project, checked: Checked, options: RunOptions) -> AsyncIterator[Lead]:
    """Takes the lead of a run, new or continued, and always releases it at the end."""
    checked.require()
    assert checked.manifest is not None and checked.profiles is not None
    agents = agents_by_role(project, checked)
    for repo in names_of(project, checked.specs):
        BareRepo(path_of(project, repo), project.state_path / repo_store(repo)).project_head()
    project, folder = settle(project, checked.manifest.run_id)
    if folder.shown is None:
        _ignore_state_dir(project.state_path)
    else:
        show_ignored(folder)
    store = stores_of(folder.path).open_async(folder.path)
    try:
        fence = await store.take_lead()
        with _alone(project, checked.manifest.run_id):
            note_lead(project, folder)
            sweep_left_over(project, folder)
            journal = Journal(store, RunState(), SystemClock(), masker_of(project))
            await journal.replay()
            _require_known(options, checked)
            contents = Contents(project.root, folder.path / CONTENTS)
            order = _order(project, checked, options, journal.state, contents, fence, agents)
            journal.listeners.extend(options.listeners)
            tools = _tools(project, checked, folder, journal, agents, contents)
            lead = Lead(tools, order, grace_sec=project.config.policy.grace_sec)
            yield lead
            if lead.state.finished and not lead.state.index.running:
                remove_address(folder.path)
    finally:
        await store.release()
        await store.close()


def _tools(
    project: Project,
    checked: Checked,
    folder: RunFolder,
    journal: Journal,
    agents: dict[str, Agent],
    contents: Contents,
) -> RunResources:
    assert checked.manifest is not None
    config = project.config
    limits = ChangeLimits(protection=protection_of(project, checked.source), secrets=journal.masker)

    def judge(change: Change, rules: Rules) -> None:
        require(change, rules, limits)

    workspace = DirectWorkspace(project.root, limits.protection, judge)
    sandbox = sandbox_of(project)
    git = config.workspace.mode != "direct"
    launcher = KeptLauncher(folder.path, grace_sec=config.policy.grace_sec)
    repositories = {
        repo: repository_of(project, checked.manifest.run_id, judge, sandbox.owner, repo, secrets=journal.masker)
        for repo in names_of(project, checked.specs)
    }
    delivery = DeliveryParts(project, folder, journal.state, journal.clock, verify_environment(project), journal.masker)
    return RunResources(
        journal=journal,
        folder=folder,
        workspace=workspace,
        launcher=launcher,
        clock=journal.clock,
        agents=agents,
        checks=checks_of(project, checked, sandbox, journal.clock, journal.masker),
        sandbox=sandbox,
        repositories=repositories,
        outlets=outlets_of(project, checked, delivery, repositories, launcher, sandbox),
        webhooks=delivery.webhooks,
        shown=delivery.shown,
        watch=None if git else watch_of(project, checked, limits, hidden=hidden_in_place(project, sandbox)),
        copies=None if git else copies_of(project),
        fixed=None if git else fixed_of(project, sandbox),
        roles={name: role_rules(project, name) for name in config.roles},
        strong=strong_agents(project, agents),
        reading=lambda worked_by: reading(project, worked_by),
        prices={name: Price(**given.model_dump()) for name, given in config.prices.items()},
        homes=Homes(folder.path, project.state_path / shared_folder(), discard),
        expected_must_come=config.workspace.expected_files == "fail",
        merge_batch=config.workspace.merge_batch,
        own_gates_only=config.workspace.merge_gates == "own",
        turns=FolderLock(),
        overlay=PatchedPrompts(folder.path, workspace, agents[HEALER].extract_heal if HEALER in agents else parse_heal),
        output_limit_bytes=_output_limit(project),
        rules=learned_elsewhere(folder) if config.healing.learned_rules else (),
        prompt_budget=config.prompts.budget_tokens,
        heal_in_place=config.healing.in_place,
        contents=lambda specs: {name: digest.text for name, digest in contents.of(specs).items()},
        heal_timeout_sec=config.healing.timeout_sec,
        fallback=fallback_agents(project, [role for role in agents if role != HEALER]),
        health=HealthPolicy(**config.health.model_dump(exclude={"look_sec"})),
        look_every_sec=config.health.look_sec,
        remind_sec=config.inbox.remind_sec,
        notices=notices_of(project, checked.manifest.run_id, folder.path, after_seq=journal.state.log.last_seq),
        tell_protocol=config.worker.tell,
        badges=WorkerTokens.of(folder.path / WORKER_KEY) if config.worker.listen else None,
        endpoint=endpoint_of(project, folder, sandbox) if config.worker.listen else None,
        eye=_eye(project),
        worker_program=worker_program(folder) if config.worker.listen else None,
        co_authors=dict(config.workspace.co_authors),
        windows_tokens={n: given.context_tokens for n, given in config.agents.items() if given.context_tokens},
    )


def outlets_of(
    project: Project,
    checked: Checked,
    delivery: DeliveryParts,
    repositories: Mapping[str, Repository],
    launcher: Launcher,
    sandbox: Sandbox,
) -> dict[str, DeliveryTarget]:
    """For every repository whose changes leave the machine."""
    rules = {rule.name: rule for rule in rules_of_run(project, checked.specs)}
    return {
        name: delivery.outlet(name, rules[name], repository, launcher, sandbox)
        for name, repository in repositories.items()
        if rules[name].delivers
    }


WORKER_KEY = "worker.key"


def endpoint_of(project: Project, folder: RunFolder, sandbox: AnySandbox) -> ReportServer:
    config = project.config.worker
    peers = frozenset({sandbox.owner[0]}) if sandbox.owner is not None else frozenset()
    return ReportServer(folder.path, peers=peers, http=config.http, port=config.port)


def _eye(project: Project) -> Callable[[Path], Newest]:
    """Watches a folder for activity; files that Ganger itself writes do not count."""
    own = project.shown_path.name

    def skip(path: str) -> bool:
        return path == own or path.startswith(f"{own}/")

    return lambda folder: Newest(folder, skip=skip)


@contextmanager
def _alone(project: Project, run_id: str) -> Iterator[None]:
    """Holds the project's own folder for one run at a time; workspaces keep runs apart."""
    if project.config.workspace.mode != "direct":
        yield
        return
    with ExitStack() as held:
        # A run begun in the project itself and one kept elsewhere work in the same folder.
        places = {project.state_path, *([project.private] if project.is_exposed and project.private else [])}
        for place in sorted(places):
            held.enter_context(alone_in(place, run_id))
        yield


def verify_environment(project: Project) -> dict[str, str]:
    """The environment of checks. Programs are never looked up in a place where a change could have put them."""
    named = project.config.verify.env
    given = child_environment(project.handed_on(*named), passed=named, extra={})
    places = [place for place in given.get("PATH", "").split(os.pathsep) if place.startswith("/")]
    return given | {"PATH": os.pathsep.join(places)}


def checks_of(project: Project, checked: Checked, sandbox: Sandbox, clock: Clock, masker: Masker = NOTHING) -> Checks:
    assert checked.profiles is not None and checked.manifest is not None
    config = project.config.verify
    return Checks(
        profiles=dict(checked.profiles.profiles),
        tiers=dict(config.tiers),
        expect=dict(config.expect),
        deny=tuple(config.deny),
        env=verify_environment(project),
        masker=masker,
        shown=Mask((), masker).shown,
        withheld=withheld_names(project.handed_on(), config.env),
        timeout_sec=config.timeout_sec,
        sandbox=sandbox,
        clock=clock,
        recovery=Recovery(config.recoveries, config.retry_failed),
        readable=tuple(project.state_path / repo_store(repo) / "objects" for repo in names_of(project, checked.specs)),
        output_limit_bytes=_output_limit(project),
        stand=lambda folder, verify: stand(folder, verify, project.shown_path),
        runners=KnownRunners() if config.census else None,
        planted=config.planted,
        reports=project.state_path / file_stem(checked.manifest.run_id) / "checks",
        network=project.config.sandbox.network,
        project=project.root if project.config.workspace.mode != "direct" else None,
    )


def _output_limit(project: Project) -> int:
    return int(project.config.policy.output_limit_mb * 1024 * 1024)


def role_rules(project: Project, name: str) -> RoleRules:
    role = project.config.roles[name]
    given = None if role.paths is None else tuple(role.paths)
    text = DirectWorkspace(project.root, Protection()).read_text(role.prompt) if role.prompt else ""
    return RoleRules(paths_of(name, given), gates_of(name, role.may_change_gates), text)


def repository_of(
    project: Project,
    run_id: str,
    judge: Judge,
    owner: tuple[int, int] | None,
    repo: str = "",
    *,
    secrets: Masker = NOTHING,
) -> GitRepository:
    """Ganger's copy of the history of the project or one of its repositories, and the workspaces of one run."""
    folder = place_of(project, run_id)
    settings = replace(_git_settings(project, run_id, judge, owner), secrets=secrets)
    if repo:
        path = path_of(project, repo)
        own = (f"/{file.relative_to(path).as_posix()}" for file in project.mirror_files(repo))
        patterns = (*DEFAULT_PROTECTED, *own, *project.config.workspace.protected)
        settings = replace(
            settings_for(settings, repo, path, state=project.state_path, run_folder=folder.path),
            protection=Protection(patterns, tuple(project.config.workspace.unprotected)),
        )
    return GitRepository(settings)


def _git_settings(project: Project, run_id: str, judge: Judge, owner: tuple[int, int] | None) -> GitSettings:
    config, folder = project.config.workspace, place_of(project, run_id)
    return GitSettings(
        project=project.root,
        store=project.state_path / "repo.git",
        run=run_id,
        work=folder.path / "work",
        checks=folder.path / "checks",
        pool=folder.path / "pool",
        author=config.author,
        sign_off=config.sign_off,
        linked=tuple(config.linked),
        copied=tuple(config.copied),
        warm=config.warm,
        judge=judge,
        generated=is_generated,
        protection=protection_of(project, project.manifest_path),
        min_free_bytes=int(config.min_free_mb * 1024 * 1024),
        owner=owner,
    )


def uncommitted(project: Project, specs: Iterable[TaskSpec]) -> tuple[str, ...]:
    """Files of the operator's checkouts that differ from their commits."""
    places = {
        repo: BareRepo(path_of(project, repo), project.state_path / repo_store(repo))
        for repo in names_of(project, specs)
    }
    return tuple(f"{repo}:{path}" if repo else path for repo, bare in places.items() for path in bare.uncommitted())


def hidden_in_place(project: Project, sandbox: Sandbox) -> frozenset[str]:
    """Files of the project that this sandbox hides from agents and checks. They cannot change them, so no copy is
    kept."""
    if sandbox.name != Bubblewrap.name:
        return frozenset()
    root = os.path.realpath(project.root)
    return frozenset(os.path.relpath(path, root) for path in concealed(sandbox_settings(project), root))


def watch_of(
    project: Project, checked: Checked, limits: ChangeLimits, hidden: frozenset[str] = frozenset()
) -> Watching:
    """Direct mode: changes that agents make to the project's own folder are detected and can be undone."""
    state, shown = project.state_path, project.shown_path
    own = shown.relative_to(project.root).as_posix() if shown.is_relative_to(project.root) else ".ganger"

    # The operator may edit prompts while the run goes on.
    theirs = {ref for spec in checked.specs for ref in (spec.prompt_ref, *spec.context_refs)}

    def skip(path: str) -> bool:
        return path in (".git", own) or path in theirs or path in hidden or is_unwatched(path)

    limit = int(project.config.workspace.snapshot_mb * 1024 * 1024)
    watch = FolderWatch(project.root, state / "watch", skip, limit)
    return Watching(project.root, watch, limits, verify_environment(project).get("PATH", ""))


def copies_of(project: Project) -> ProjectCopies:
    shown = project.shown_path
    own = shown.relative_to(project.root).as_posix() if shown.is_relative_to(project.root) else ".ganger"
    limit = int(project.config.workspace.snapshot_mb * 1024 * 1024)
    return ProjectCopies(project.root, lambda path: path in (".git", own), limit)


def fixed_of(project: Project, sandbox: AnySandbox) -> FixedFiles:
    """Direct mode: git's settings and installed packages, which tasks must not change."""
    config = project.config
    # Sessions that ask for tasks run outside Ganger's sandbox.
    pulls = any(agent.kind == PULL for agent in config.agents.values())
    return FixedFiles(
        project.root,
        project.state_path / "watch" / "fixed",
        own=project.shown_path,
        linked=config.workspace.linked,
        opened=[granted(project, name) for name in config.sandbox.writable],
        walled=lambda: not pulls and keeps_in_place(sandbox, sandbox_settings(project)),
        limit_bytes=int(config.workspace.snapshot_mb * 1024 * 1024),
    )


def _edits_in_place(agent: AgentSection) -> bool:
    return agent.kind == PULL if agent.in_place is None else agent.in_place


def difference_of(project: Project, checked: Checked, state: RunState, folder: RunFolder) -> Compared:
    """Compares the manifest and its prompts with those the run began with."""
    return _compared(checked, state, Contents(project.root, folder.path / CONTENTS))


def _compared(checked: Checked, state: RunState, contents: Contents) -> Compared:
    now = contents.of(checked.specs)
    contents.save()
    if not state.log.last_seq:
        return Compared(now, None)
    last = datetime.fromisoformat(state.log.last_at).timestamp()
    return Compared(now, compare(state, checked.digest, checked.specs, now, edited=contents.edited_after(last)))


@dataclass(frozen=True)
class Compared:
    """The current content of the files, and how it differs from the run; None for a run that has not begun."""

    contents: dict[str, ContentDigest]
    difference: Difference | None

    def seen(self, state: RunState) -> dict[str, str]:
        """New text of tasks that were never attempted."""
        return {
            name: digest.text
            for name, digest in self.contents.items()
            if name in state.tasks
            and not state.tasks[name].attempts
            and state.manifest.contents.get(name) != digest.text
        }


def _order(
    project: Project,
    checked: Checked,
    options: RunOptions,
    state: RunState,
    contents: Contents,
    fence: int,
    agents: dict[str, Agent],
) -> Order:
    assert checked.manifest is not None
    compared, workspace = _compared(checked, state, contents), project.config.workspace
    return Order(
        run_id=checked.manifest.run_id,
        manifest_digest=checked.digest,
        tasks=checked.specs,
        policy=policy_of(project),
        pid=os.getpid(),
        version=__version__,
        only=options.only,
        max_tasks=options.max_tasks,
        contents=() if state.log.last_seq else tuple(compared.contents[spec.id].text for spec in checked.specs),
        fence=fence,
        budget=budget_of(project),
        limits=limits_of(project),
        healer=HEALER if heals(project) else "",
        accounts=accounts_of(project, agents),
        mode=Mode(workspace.mode),
        merging=MergeMode(workspace.merging) if workspace.mode != "direct" else MergeMode.QUEUE,
        levels=checked.levels,
        boot_id=boot_id(),
        pull_roles=pull_roles(agents),
        repos=rules_of_run(project, checked.specs),
        in_place=tuple(
            name for name, role in project.config.roles.items() if _edits_in_place(project.config.agents[role.agent])
        ),
        reconcile=_reconcile(compared, checked, options),
        seen=compared.seen(state) if state.log.last_seq else {},
        waits=options.waits,
    )


def _reconcile(compared: Compared, checked: Checked, options: RunOptions) -> Reconcile | None:
    found = compared.difference
    if found is None or found.empty:
        return None
    if not options.reconcile:
        shown = "; ".join(difference_lines(found, 10))
        raise GangerError(
            f"the manifest or a prompt changed since run {found.run_id} began: {shown}",
            hint="ganger run --reconcile applies the changes (--dry-run shows what would happen); "
            "or restore the files, or give the manifest a new run_id",
            code="MANIFEST_CHANGED",
        )
    return Reconcile(found, lambda state: reconcile(state, found, checked.specs, compared.contents))


def _ignore_state_dir(state_dir: Path) -> None:
    """Adds the state folder to git's ignored files, so that runs are not committed by accident."""
    path = state_dir / ".gitignore"
    if not path.exists():
        with named_os_errors(path):
            write_private(path, "*\n")


def _require_known(options: RunOptions, checked: Checked) -> None:
    known = {spec.id for spec in checked.specs}
    unknown = [name for name in options.only or () if name not in known]
    if unknown:
        raise NotFoundError(
            f"--only names no task of the manifest: {', '.join(unknown)}", hint="ganger plan lists the ids"
        )


def fresh_state_text(project: Project, checked: Checked) -> str:
    """The state.json of a run that has not begun."""
    assert checked.manifest is not None
    state = RunState()
    begun = RunStarted(checked.manifest.run_id, checked.digest, policy_of(project), checked.specs, __version__)
    apply(state, Recorded(0, "", begun))
    return state_text(state)

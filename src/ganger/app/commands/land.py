"""Lands a run: moves the operator's branch in each repository to the merged commits, and never to unproved ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ganger.app.checks.project import check_project
from ganger.app.compose import SystemClock, checks_of, repository_of
from ganger.app.delivery import path_of
from ganger.app.run_places import at_place
from ganger.app.runs import is_led
from ganger.app.sandbox import sandbox_of
from ganger.config import Project, environment
from ganger.core.delivery.landings import is_pushed, is_requested, landable, repos_merged
from ganger.core.events import Landed
from ganger.core.model.run_state import RunState
from ganger.core.names import repo_store
from ganger.core.planning.repos import PROJECT, shown
from ganger.core.times import stamp
from ganger.engine.stop_guard import StopGuard
from ganger.engine.verification.checks import why_red
from ganger.errors import GangerError, NotFoundError
from ganger.launchers.launcher import KeptLauncher
from ganger.local.run_folder import RunFolder
from ganger.ports.store import Entry
from ganger.stores.table import stores_of
from ganger.workspaces.git.landing import Landing, LandingPlan

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LandOutcome:
    """What was moved, or would be. `branch` is empty for a detached HEAD, `repo` for the project's own repository."""

    how: str
    branch: str
    before: str
    after: str
    commits: int
    repo: str = ""

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class LandingWay:
    """One repository whose branch is to move."""

    repo: str
    landing: Landing
    plan: LandingPlan

    @property
    def outcome(self) -> LandOutcome:
        plan = self.plan
        return LandOutcome(plan.how, plan.branch, plan.before, plan.tip, plan.commits, self.repo)


async def land(
    project: Project,
    folder: RunFolder,
    state: RunState,
    *,
    say: Say,
    repo: str | None = None,
    branch: str = "",
    dry_run: bool = False,
    led: bool = False,
) -> list[LandOutcome]:
    """Moves the branch that is checked out in each repository of the run, or in `repo` alone, or makes `branch`.

    Raises if that would lose or break something; conflicts are found in every repository before anything moves.
    Changes in change requests are merged on the forge: such a repository is left alone unless it is named.
    `led`: called by the process that leads the run, which has finished.
    """
    project = at_place(project, folder)
    ways = [_way(project, state, one, branch=branch) for one in _chosen(state, repo, say)]
    if branch:
        return [_to_branch(way, branch, dry_run=dry_run) for way in ways]
    for way in ways:
        _require_no_conflict(state, way)
    moving = [] if dry_run else [way for way in ways if way.plan.how != "nothing"]
    for way in moving:
        if way.plan.how == "merge":
            both = f"{way.plan.before[:12]} and {way.plan.head[:12]}"
            say(f"your branch{_of(way.repo)} has new commits: verifying the merge of {both}")
            await _verify(project, folder, state, way)
    for way in moving:
        way.landing.move(way.plan)
        if not led:
            _record(folder, way)
    return [way.outcome for way in ways]


def _chosen(state: RunState, repo: str | None, say: Say) -> list[str]:
    """The repositories to land; for a run that merged nothing, the project or the first one it worked on."""
    used = sorted({spec.repo for spec in state.specs.values()}) or [""]
    if repo is not None:
        name = "" if repo == PROJECT else repo
        if name not in used:
            known = ", ".join(one or PROJECT for one in used)
            raise NotFoundError(f"no task of run {state.run_id!r} works on {repo!r}", hint=f"there are: {known}")
        return [name]
    found = repos_merged(state) or used[:1]
    asked = [one for one in found if is_requested(state, one)]
    for one in asked:
        say(f"{shown(one)} is left alone: its changes are in change requests (ganger ledger)")
    return [one for one in found if one not in asked]


def _way(project: Project, state: RunState, repo: str, *, branch: str) -> LandingWay:
    if repo and repo not in project.config.repos:
        raise NotFoundError(
            f"run {state.run_id!r} worked on {repo}, which is no longer configured", hint=f"add [repos.{repo}] again"
        )
    landing = Landing(path_of(project, repo), project.state_path / repo_store(repo), state.run_id, environment())
    commit = "" if branch else landable(state, repo)
    if not branch and not commit and is_pushed(state, repo) and state.chains.rules[repo].follows_ci:
        raise GangerError(
            f"nothing the run pushed{_of(repo)} is proved yet",
            hint="ganger ledger shows the progress; ganger land --branch NAME creates a branch of it as it is",
            code="LAND_UNPROVED",
        )
    return LandingWay(repo, landing, landing.plan(commit))


def _require_no_conflict(state: RunState, way: LandingWay) -> None:
    if way.plan.conflict is None:
        return
    only = f" --repo {way.repo}" if way.repo else ""
    raise GangerError(
        f"your branch{_of(way.repo)} has new commits that conflict with run {state.run_id} in "
        f"{', '.join(way.plan.conflict.files[:10])}",
        hint=f"ganger land{only} --branch ganger/{state.run_id} creates a branch that you can merge by hand",
        code="LAND_CONFLICT",
    )


def _of(repo: str) -> str:
    return f" in {repo}" if repo else ""


def _to_branch(way: LandingWay, branch: str, *, dry_run: bool) -> LandOutcome:
    """Moves another branch to what the run merged, without a merge."""
    if not dry_run:
        way.landing.to_branch(way.plan, branch)
    return LandOutcome("branch", branch, way.plan.before, way.plan.head, way.plan.commits, way.repo)


async def _verify(project: Project, folder: RunFolder, state: RunState, way: LandingWay) -> None:
    """Verifies the merge with the operator's branch like any other head."""
    checked = check_project(project)
    checked.require()
    sandbox = sandbox_of(project)
    checks = checks_of(project, checked, sandbox, SystemClock())
    plan, repo = way.plan, way.repo
    repository = repository_of(project, state.run_id, lambda _change, _rules: None, sandbox.owner, repo)
    launcher = KeptLauncher(folder.path, grace_sec=project.config.policy.grace_sec)
    name = f"land.{plan.tip[:12]}"
    log = folder.path / "logs" / f"{name}.log"
    merged = [state.specs[task] for task, now in state.tasks.items() if now.work.merged]
    used = dict.fromkeys(spec.verify_profile for spec in merged if spec.repo == repo)
    try:
        place = await repository.checkout(name, plan.tip)
        for profile in used:
            key = f"{log}#{time.time_ns()}"
            gate = StopGuard(launcher, RunState())
            verdict = await checks.run(profile, folder=place, log=log, gate=gate, key=key, named={})
            if not verdict.passed:
                why = why_red(verdict, where=f" on the merge with your branch{_of(repo)}")
                raise GangerError(
                    f"{why.detail}; nothing was moved",
                    hint=f"the log is {log}; ganger land --branch NAME creates a branch of the run's work alone",
                    code="LAND_RED",
                )
    finally:
        await repository.drop_checkout(name)
        await launcher.stop_all(0.0)
        await launcher.close()
        await repository.close()


def _record(folder: RunFolder, way: LandingWay) -> None:
    """Records the landing, unless a process leads the run: only that process writes its events."""
    if is_led(folder):
        return
    stores = stores_of(folder.path)
    store = stores.open(folder.path)
    try:
        with stores.leading(folder.path, store):
            store.append([Entry(stamp(time.time()), Landed(way.plan.branch, way.plan.tip, way.repo))])
    finally:
        store.close()

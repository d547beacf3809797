"""Landing a run: the project's own branch moves to what was merged, and to nothing that was not proved."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from ganger.app import SystemClock, checks_of, repository_of, sandbox_of
from ganger.check import check_project
from ganger.config import Project, environment
from ganger.core.events import Landed
from ganger.core.moments import stamp
from ganger.core.records import RunState
from ganger.engine.files import RunFolder, is_led, leading
from ganger.engine.gate import Gate
from ganger.engine.verification import why_red
from ganger.errors import GangerError
from ganger.launchers.kept import KeptLauncher
from ganger.ports import Entry
from ganger.stores.sqlite import SqliteStore
from ganger.workspaces.landing import Landing, Plan

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done, or would be. `branch` is empty for a detached HEAD."""

    how: str
    branch: str
    before: str
    after: str
    commits: int

    def as_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


def land(
    project: Project,
    folder: RunFolder,
    state: RunState,
    *,
    say: Say,
    branch: str = "",
    dry_run: bool = False,
    led: bool = False,
) -> Outcome:
    """Moves the branch that is checked out, or makes `branch`; raises when that would lose or break something.

    `led`: by the process that leads the run, which is through.
    """
    landing = Landing(project.root, project.state_path / "repo.git", state.run_id, environment())
    plan = landing.plan()
    if branch:
        return _to_branch(landing, plan, branch, dry_run=dry_run)
    outcome = Outcome(plan.how, plan.branch, plan.before, plan.tip, plan.commits)
    if plan.conflict is not None:
        raise GangerError(
            f"your branch went on and conflicts with run {state.run_id} in {', '.join(plan.conflict.files[:10])}",
            hint=f"ganger land --branch ganger/{state.run_id} makes a branch of it that you can merge by hand",
            code="LAND_CONFLICT",
        )
    if plan.how == "nothing" or dry_run:
        return outcome
    if plan.how == "merge":
        say(f"your branch went on meanwhile: verifying the merge of {plan.before[:12]} and {plan.head[:12]}")
        asyncio.run(_verify(project, folder, state, plan))
    landing.move(plan)
    if not led:
        _record(folder, plan)
    return outcome


def _to_branch(landing: Landing, plan: Plan, branch: str, *, dry_run: bool) -> Outcome:
    """Another branch takes what the run merged as it is; nothing has to fit."""
    if not dry_run:
        landing.to_branch(plan, branch)
    return Outcome("branch", branch, plan.before, plan.head, plan.commits)


async def _verify(project: Project, folder: RunFolder, state: RunState, plan: Plan) -> None:
    """A merge nobody has verified is verified like any other head."""
    checked = check_project(project)
    checked.require()
    sandbox = sandbox_of(project)
    checks = checks_of(project, checked, sandbox, SystemClock())
    repository = repository_of(project, state.run_id, lambda _change, _rules: None, sandbox.owner)
    launcher = KeptLauncher(folder.path, grace_sec=project.config.policy.grace_sec)
    name = f"land.{plan.tip[:12]}"
    log = folder.path / "logs" / f"{name}.log"
    used = dict.fromkeys(state.specs[task].verify_profile for task, now in state.tasks.items() if now.merged)
    try:
        place = await repository.checkout(name, plan.tip)
        for profile in used:
            key = f"{log}#{time.time_ns()}"
            gate = Gate(launcher, RunState())
            verdict = await checks.run(profile, folder=place, log=log, gate=gate, key=key, named={})
            if not verdict.passed:
                why = why_red(verdict, checks.env, where=" on the merge with your branch")
                raise GangerError(
                    f"{why.detail}; nothing was moved",
                    hint=f"the log is {log}; ganger land --branch NAME makes a branch of the run alone",
                    code="LAND_RED",
                )
    finally:
        await repository.drop_checkout(name)
        await launcher.stop_all(0.0)
        await launcher.close()
        await repository.close()


def _record(folder: RunFolder, plan: Plan) -> None:
    """A run that is being led tells its own story; the branch shows where it is."""
    if is_led(folder):
        return
    store = SqliteStore(folder.database)
    try:
        with leading(folder, store):
            store.append([Entry(stamp(time.time()), Landed(plan.branch, plan.tip))])
    finally:
        store.close()

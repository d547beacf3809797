"""The checks behind `ganger doctor`: each is one small function that tries the real thing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ganger.app.checks.copies import CODE as COPY_CODE
from ganger.app.checks.project import check_project
from ganger.app.compose import make_agents, programs_on_path
from ganger.app.preflight import delivering_repos, meet
from ganger.app.run_places import gone_projects, runs_of
from ganger.app.runs import is_led, read_state, size_of
from ganger.app.sandbox import sandbox_settings
from ganger.config import PROJECT_FILE, Project, project_root, read_project
from ganger.core.vocabulary import RunStatus
from ganger.errors import GangerError
from ganger.sandboxes.choose import (
    HOW_TO_GET_SANDBOX,
    HOW_TO_SHARE_MEMORY,
    NO_SHARED_MEMORY,
    choose,
    has_shared_memory,
    who,
)
from ganger.sandboxes.landlock import Landlock
from ganger.sandboxes.none import NoSandbox
from ganger.sandboxes.probes.probes import probe
from ganger.stores.sqlite import OLDEST_SQLITE, sqlite_version

_LOW_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    level: str
    name: str
    text: str
    next_step: str = ""

    def as_json(self) -> dict[str, str]:
        return {"level": self.level, "name": self.name, "text": self.text, "next_step": self.next_step}


def examine(project: Path | None, cwd: Path) -> list[DoctorFinding]:
    findings = [check() for check in (_python, _sqlite, _git)]
    findings.append(_programs(cwd))
    try:
        opened, problems = read_project(project_root(project, None, cwd))
    except GangerError as error:
        return [
            *findings,
            DoctorFinding("error", "config", error.message, error.hint or "fix the file, then try again"),
        ]
    findings += [DoctorFinding("error", "config", e.message, e.hint or "fix it, then try again") for e in problems]
    if not problems:
        findings.append(_config(opened))
        for check in (_state_dir, _sandbox, _copies, _agents, _outposts):
            findings.extend(check(opened))
    findings.extend(_left_overs(opened))
    return findings


def _python() -> DoctorFinding:
    text = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    return DoctorFinding("ok" if sys.version_info >= (3, 11) else "error", "python", text)


def _sqlite() -> DoctorFinding:
    version = sqlite_version()
    shown = ".".join(map(str, version))
    if version < OLDEST_SQLITE:
        return DoctorFinding(
            "error", "sqlite", f"SQLite {shown} can corrupt a write-ahead log", "upgrade the apsw package"
        )
    return DoctorFinding("ok", "sqlite", f"SQLite {shown}")


def _git() -> DoctorFinding:
    if shutil.which("git") is None:
        return DoctorFinding("warning", "git", "git was not found", "install git; ganger demo and git modes need it")
    said = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    return DoctorFinding("ok", "git", said)


def _sandbox(project: Project) -> Iterator[DoctorFinding]:
    """Tries every escape within the sandbox that agents and checks will have."""
    try:
        settings = sandbox_settings(project)
        sandbox = choose(settings)
    except GangerError as error:
        yield DoctorFinding("error", "sandbox", error.message, error.hint)
        return
    if isinstance(sandbox, NoSandbox):
        why = "none works on this machine" if settings.use != "off" else "it is switched off"
        text = f"no sandbox: {why}; agents and checks can read and write everything you can"
        yield DoctorFinding(
            "warning", "sandbox", text, HOW_TO_GET_SANDBOX if settings.use != "off" else 'set use = "auto"'
        )
        return
    results = probe(sandbox, settings)
    held = [result.name for result in results if result.held]
    text = (
        f"{sandbox.name}, network {settings.network}, {who(sandbox)}: {len(held)} of {len(results)} escape probes held"
    )
    weaker = f"{HOW_TO_GET_SANDBOX}: it closes these" if isinstance(sandbox, Landlock) else ""
    yield DoctorFinding("ok" if len(held) == len(results) else "warning", "sandbox", text, weaker)
    yield DoctorFinding("ok", "held", ", ".join(held))
    if not has_shared_memory(sandbox, settings):
        yield DoctorFinding("warning", "memory", NO_SHARED_MEMORY, HOW_TO_SHARE_MEMORY)
    yield from (DoctorFinding("warning", "open", f"{r.sentence}: {r.detail}") for r in results if not r.held)


def sandbox_lacks(project: Project) -> list[str]:
    """What checks may need and lack within this sandbox. Only Landlock may be without shared memory."""
    settings = sandbox_settings(project)
    sandbox = choose(settings)
    if not isinstance(sandbox, Landlock) or has_shared_memory(sandbox, settings):
        return []
    return [f"{NO_SHARED_MEMORY}; {HOW_TO_SHARE_MEMORY}"]


def _programs(cwd: Path) -> DoctorFinding:
    found = [agent.kind for agent in programs_on_path(cwd)]
    if found:
        text = f"agent programs on PATH: {', '.join(found)}; ganger agents --check has details"
        return DoctorFinding("ok", "programs", text)
    return DoctorFinding(
        "warning",
        "programs",
        "no known agent program is on PATH",
        'any program works: see [agents.NAME] kind = "command"',
    )


def _config(project: Project) -> DoctorFinding:
    if not project.has_file:
        return DoctorFinding("warning", "config", f"no {PROJECT_FILE} here or above", "ganger init writes one")
    return DoctorFinding("ok", "config", f"{project.root / PROJECT_FILE}")


def _state_dir(project: Project) -> Iterator[DoctorFinding]:
    try:
        place = kept = project.state_path
    except GangerError as error:
        yield DoctorFinding("error", "state_dir", error.message, error.hint)
        return
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        yield DoctorFinding("error", "state_dir", f"{place} cannot be written", "fix its permissions or set state_dir")
    free = shutil.disk_usage(place).free
    text = f"{free / (1 << 30):.1f} GiB free for {kept}"
    yield (
        DoctorFinding("ok", "disk", text)
        if free > _LOW_BYTES
        else DoctorFinding("warning", "disk", text, "free some space")
    )


def _agents(project: Project) -> Iterator[DoctorFinding]:
    try:
        agents = make_agents(project)
    except GangerError as error:
        yield DoctorFinding("error", "agents", error.message, error.hint)
        return
    for place, one in project.unset_names():
        text = f"{place} names {one}, which is not set"
        yield DoctorFinding("warning", "variable", text, "set it, or remove the name")
    for name, agent in agents.items():
        health = agent.healthcheck()
        said = f"{name} ({agent.kind}): {'; '.join(health.details)}"
        yield (
            DoctorFinding("ok", "agent", said)
            if health.ready
            else DoctorFinding("error", "agent", said, "ganger agents --check")
        )


def _copies(project: Project) -> Iterator[DoctorFinding]:
    """Whether a check would test an installed copy of the project."""
    if not project.has_file:
        return
    checked = check_project(project)
    for fault in checked.faults:
        if fault.code == COPY_CODE:
            yield DoctorFinding("error", "copies", fault.message, f"ganger explain {COPY_CODE}")
    if checked.profiles is not None and all(fault.code != COPY_CODE for fault in checked.faults):
        yield DoctorFinding("ok", "copies", "no check tests an installed copy of the project")


def _outposts(project: Project) -> Iterator[DoctorFinding]:
    """Remotes and forges, contacted with the token that a run would use."""
    for met in meet(project, delivering_repos(project)):
        name = met.name.partition(" ")[0]
        text = f"{met.name}: {met.text}" if met.name != name else met.text
        if met.trouble is None:
            yield DoctorFinding("ok", name, text)
        else:
            yield DoctorFinding("warning" if met.warns else "error", name, text, met.trouble.hint)


def _left_overs(project: Project) -> Iterator[DoctorFinding]:
    """Unfinished runs whose lead is gone."""
    try:
        folders = runs_of(project)
    except GangerError as error:
        yield DoctorFinding("error", "run", error.message, error.hint)
        return
    for folder in folders:
        name = folder.path.name
        try:
            state = read_state(folder)
        except GangerError as error:
            yield DoctorFinding("error", "run", error.message, error.hint)
            continue
        led = is_led(folder)
        if led:
            yield DoctorFinding("ok", "run", f"{name} is being led right now")
        unfinished = not led and state.status is RunStatus.RUNNING and not state.finished
        if unfinished:
            yield DoctorFinding("warning", "run", f"{name} was interrupted", "ganger run continues it")
    for gone in gone_projects(project):
        size = f"{size_of(gone.folder) / (1 << 20):.1f} MiB"
        text = f"runs of {gone.project}, which is gone, take {size} in {gone.folder}"
        yield DoctorFinding("warning", "left-over", text, "remove that folder if the project is not coming back")

"""A project with a real repository, a real keeper, and CI that is local commands; each `Lead` is one lead's life."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ganger.core.model.ci import CiRules, Finding, JobFact, RunFact, judge, latest
from ganger.forges.command.forge import CommandCi, CommandForge
from ganger.launchers.connect import KeeperOptions
from ganger.launchers.launcher import KeptLauncher
from ganger.ports.processes import Launch
from ganger.ports.sandbox import Room
from ganger.workspaces.git.repository import GitRepository, GitSettings
from ganger.workspaces.rules.artifacts import is_generated
from tests.patience import Patience

T = TypeVar("T")
PATIENCE_SEC = 30.0
# Each start leaves a line where it can be seen.
TELL = 'echo "$GANGER_CI_JOB.$GANGER_CI_ATTEMPT" >> "$MARKS/told"; '


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "safe.directory=*")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


class OpenSandbox:
    """No walls; remembers who was put inside."""

    name, owner = "none", None

    def __init__(self) -> None:
        self.confined: list[str] = []

    def confine(self, launch: Launch, room: Room) -> Launch:
        assert launch.cwd in room.writable
        self.confined.append(launch.env["GANGER_CI_JOB"])
        return launch

    def shows(self, path: Path, launch: Launch, room: Room) -> bool:
        return True


class Lead:
    """One lead of the run: a launcher, a repository and a forge of its own."""

    def __init__(self, ground: Ground, ci: CommandCi) -> None:
        self.launcher = KeptLauncher(ground.folder, grace_sec=0.2, options=KeeperOptions(idle_sec=5.0))
        self.repository = GitRepository(ground.settings)
        self.sandbox = OpenSandbox()
        self.forge = CommandForge(ci, self.launcher, self.repository, self.sandbox)

    async def seen(self, sha: str, until: Callable[[RunFact], bool]) -> RunFact:
        """Polls as whoever follows CI does."""
        patience = Patience(PATIENCE_SEC)
        while True:
            run = (await self.forge.runs([sha]))[0]
            if until(run):
                return await self.forge.jobs(run)
            assert not patience.is_over(), f"it never came to be: {run}"
            await asyncio.sleep(0.01)

    async def over(self, sha: str) -> RunFact:
        return await self.seen(sha, lambda run: run.word.value not in ("waiting", "running"))

    async def close(self) -> None:
        await self.forge.close()
        await self.launcher.close()
        await self.repository.close()


class Ground:
    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.marks = root, root / "state" / "run-1", root / "marks"
        self.project = root / "project"
        for folder in (self.project, self.folder, self.marks):
            folder.mkdir(parents=True)
        git(self.project, "init", "-q", "-b", "main")
        self.settings = GitSettings(
            project=self.project,
            store=root / "state" / "repo.git",
            run="run-1",
            work=self.folder / "work",
            checks=self.folder / "checks",
            pool=self.folder / "pool",
            judge=lambda change, rules: None,
            generated=is_generated,
            min_free_bytes=0,
            warm=0,
        )
        self.head = self.commit("one")
        self.ci = CommandCi(self.folder / "ci", {}, {"PATH": os.environ["PATH"], "MARKS": str(self.marks)})

    def commit(self, text: str) -> str:
        (self.project / "file").write_text(text)
        git(self.project, "add", "-A")
        git(self.project, "commit", "-qm", text, "--allow-empty")
        return git(self.project, "rev-parse", "HEAD")

    def jobs(self, **scripts: str) -> CommandCi:
        return replace(self.ci, jobs={name: ("sh", "-c", script) for name, script in scripts.items()})

    def lead(self, ci: CommandCi, play: Callable[[Lead], Awaitable[T]]) -> T:
        async def life() -> T:
            lead = Lead(self, ci)
            await lead.repository.open()
            try:
                return await play(lead)
            finally:
                await lead.close()

        return asyncio.run(life())

    def over(self, ci: CommandCi, sha: str = "") -> RunFact:
        return self.lead(ci, lambda lead: lead.over(sha or self.head))

    def told(self) -> list[str]:
        """What jobs left where they can reach it."""
        path = self.marks / "told"
        return path.read_text().split() if path.exists() else []

    def keepers(self) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                named = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
                if os.fsencode(self.folder) in named and b"keeper" in named[6]:
                    found.append(int(entry.name))
        return found

    def clear(self) -> None:
        """Whatever a test left running ends with it."""

        async def stop() -> None:
            launcher = KeptLauncher(self.folder, grace_sec=0.1)
            await launcher.stop_all(0.1)
            await launcher.close()

        asyncio.run(stop())


def words(run: RunFact) -> dict[str, str]:
    return {name: job.word.value for name, job in latest(run).items()}


def found(run: RunFact, *required: str, mirror: str = "") -> Finding:
    return judge(run.sha, [run], CiRules(required, mirror))


def job(run: RunFact, name: str) -> JobFact:
    return latest(run)[name]

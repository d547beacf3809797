"""Projects in git, run for real in `local-git` mode, and what their history tells afterwards."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ganger.core import events as ev
from tests.engine.run_projects import Project, kill, until


def git(folder: Path, *words: str) -> str:
    made = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return made.stdout.strip()


def edits(files: Mapping[str, str], **more: object) -> dict[str, object]:
    """An agent that edits its workspace and says so."""
    return {"files": dict(files), "result": {"status": "DONE", "summary": "did it", **more}}


@dataclass
class GitProject(Project):
    """`check` is a script of the operator's that judges a tree."""

    workspace: str = ""
    check: str = ""
    more: str = ""
    base: Mapping[str, str] = field(default_factory=lambda: {"shared.txt": "one\n"})

    def make(self) -> GitProject:
        if self.check:
            self.steps = ({"name": "test", "cmd": "python3 check.py"},)
        super().make()
        config = self.root / "ganger.toml"
        config.write_text(f'{config.read_text()}\n[workspace]\nmode = "local-git"\n{self.workspace}\n{self.more}\n')
        for name, text in {**self.base, **({"check.py": self.check} if self.check else {})}.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        git(self.root, "init", "-q", "-b", "main")
        git(self.root, "config", "user.name", "Somebody")
        git(self.root, "config", "user.email", "somebody@example.org")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "begin")
        return self

    @property
    def store(self) -> Path:
        return self.root / ".ganger" / "repo.git"

    def in_store(self, *words: str) -> str:
        return git(self.root, f"--git-dir={self.store}", *words)

    def subjects(self) -> list[str]:
        """The run's commits, oldest first."""
        return self.in_store(
            "log", "--reverse", "--format=%s", f"ganger/{self.run_id}", f"^refs/ganger/{self.run_id}/base"
        ).splitlines()

    def shown(self, path: str) -> str:
        return self.in_store("show", f"ganger/{self.run_id}:{path}")

    def merged_files(self) -> list[str]:
        return self.in_store("ls-tree", "-r", "--name-only", f"ganger/{self.run_id}").splitlines()

    def prompt(self, task: str, attempt: int) -> str:
        return (self.folder.path / f"prompts/{task}.{attempt}.md").read_text()

    def folders(self, kind: str = "work") -> list[str]:
        place = self.folder.path / kind
        return sorted(p.name for p in place.iterdir() if not p.name.startswith(".")) if place.is_dir() else []

    def unchanged(self) -> bool:
        """The person's own checkout is as it was."""
        return git(self.root, "log", "--format=%s") == "begin" and not git(
            self.root, "status", "--porcelain", "--untracked-files=no"
        )


def orphan(project: GitProject) -> None:
    """Leads until the agent has written `half.txt`, then dies at once; the agent goes on under its keeper."""
    lead = project.start()
    until(lambda: list(project.folder.path.glob("work/*/half.txt")), beside=lead)
    until(lambda: project.find(ev.AttemptLaunched), beside=lead)
    kill(lead)
    lead.communicate()

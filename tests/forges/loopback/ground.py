"""The bare repository behind the forge: what was pushed to it, in order, and commits that others make."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

NONE = "0" * 40
_SOMEBODY = {
    **{f"GIT_{who}_NAME": "Somebody Else" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "else@example.org" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}
_AFTER = '#!/bin/sh\nexec cat >> "$GIT_DIR/pushes"\n'
_BEFORE = '#!/bin/sh\nif [ -e "$GIT_DIR/refuse" ]; then cat "$GIT_DIR/refuse" >&2; exit 1; fi\n'


@dataclass(frozen=True)
class Push:
    before: str
    after: str
    branch: str


class Ground:
    """Hooks of its own write down each push, and refuse them while a file says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._subjects: dict[str, str] = {}

    @classmethod
    def make(cls, path: Path, source: Path) -> Ground:
        """As `source` is now."""
        subprocess.run(["git", "clone", "-q", "--bare", str(source), str(path)], check=True, capture_output=True)
        for name, text in (("post-receive", _AFTER), ("pre-receive", _BEFORE)):
            hook = path / "hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(text)
            hook.chmod(0o755)
        return cls(path)

    def git(self, *words: str, given: str | None = None, check: bool = True) -> str:
        made = subprocess.run(
            ["git", f"--git-dir={self.path}", *words],
            input=given,
            capture_output=True,
            text=True,
            check=check,
            env={**os.environ, **_SOMEBODY},
        )
        return made.stdout.strip()

    def pushes(self) -> list[Push]:
        """Every branch that was moved by a push, in order; deleted ones left out."""
        file = self.path / "pushes"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [Push(*line.split(" ", 2)) for line in lines]
        return [
            Push(p.before, p.after, p.branch.removeprefix("refs/heads/"))
            for p in found
            if p.after != NONE and p.branch.startswith("refs/heads/")
        ]

    def refuse(self, why: str) -> None:
        (self.path / "refuse").write_text(f"{why}\n")

    def allow(self) -> None:
        (self.path / "refuse").unlink(missing_ok=True)

    def tip(self, branch: str) -> str:
        return self.git("rev-parse", "--verify", "-q", f"refs/heads/{branch}", check=False)

    def holds(self, branch: str, commit: str) -> bool:
        known = self.git("cat-file", "-t", commit, check=False) == "commit"
        return known and commit in self.git("rev-list", f"refs/heads/{branch}", check=False).split()

    def parent(self, commit: str) -> str:
        return self.git("rev-parse", "--verify", "-q", f"{commit}^", check=False)

    def subject(self, commit: str) -> str:
        if commit not in self._subjects:
            self._subjects[commit] = self.git("log", "-1", "--format=%s", commit, check=False)
        return self._subjects[commit]

    def empty_commits(self, branch: str = "--all") -> int:
        """Commits that change nothing."""
        pairs = self.git("log", "--format=%T %P", branch).splitlines()
        trees = [line.split() for line in pairs]
        return sum(len(one) == 2 and self.git("rev-parse", f"{one[1]}^{{tree}}") == one[0] for one in trees)

    def commit(self, branch: str, name: str, text: str, *, on: str = "") -> str:
        """Somebody else puts a file onto a branch; it counts as a push of theirs."""
        before = on or self.tip(branch)
        blob = self.git("hash-object", "-w", "--stdin", given=text)
        tree = self.git("ls-tree", before)
        kept = [line for line in tree.splitlines() if not line.endswith(f"\t{name}")]
        made = self.git("mktree", given="\n".join([*kept, f"100644 blob {blob}\t{name}"]) + "\n")
        commit = self.git("commit-tree", made, "-p", before, "-m", f"somebody else: {name}")
        self.move(branch, commit)
        return commit

    def merge(self, branch: str, into: str) -> str:
        """The commit that joins both, on `into`; empty where they do not go together."""
        ours, theirs = self.tip(into), self.tip(branch)
        if theirs in self.git("rev-list", ours).split():
            return ours
        tree = self.git("merge-tree", "--write-tree", ours, theirs, check=False).split("\n")[0]
        if self.git("cat-file", "-t", tree, check=False) != "tree":
            return ""
        commit = self.git("commit-tree", tree, "-p", ours, "-p", theirs, "-m", f"Merge {branch}")
        self.move(into, commit)
        return commit

    def move(self, branch: str, commit: str) -> None:
        before = self.tip(branch) or NONE
        self.git("update-ref", f"refs/heads/{branch}", commit)
        with (self.path / "pushes").open("a") as file:
            file.write(f"{before} {commit} refs/heads/{branch}\n")

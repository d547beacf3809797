"""The bare repository behind the forge: what was pushed to it, in order, and commits that others make."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

NONE = "0" * 40
_SOMEBODY = {
    **{f"GIT_{who}_NAME": "Somebody Else" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "else@example.org" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}
_AFTER = """#!/bin/sh
at=$(date +%s.%N)
while read -r line; do echo "$line $at" >> "$GIT_DIR/pushes"; done
"""
# `protected` has a line per branch: whether it may be pushed to, whether merge commits may, and its name.
_BEFORE = """#!/bin/sh
if [ -e "$GIT_DIR/refuse" ]; then cat "$GIT_DIR/refuse" >&2; exit 1; fi
[ -e "$GIT_DIR/protected" ] || exit 0
while read -r old new ref; do
    while read -r push linear name; do
        [ "refs/heads/$name" = "$ref" ] || continue
        if [ "$push" = no ]; then echo "$(cat "$GIT_DIR/protected-says") $name" >&2; exit 1; fi
        if [ "$linear" = yes ] && [ -n "$(git rev-list --merges -1 "$new" --not "$old")" ]; then
            echo "$(cat "$GIT_DIR/protected-says") $name: it must not contain merge commits" >&2; exit 1
        fi
    done < "$GIT_DIR/protected"
done
"""


@dataclass(frozen=True)
class Push:
    before: str
    after: str
    branch: str
    at: float = 0.0


class Ground:
    """Hooks of its own write down each push, and refuse them while a file says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._subjects: dict[str, str] = {}
        self._files: dict[str, dict[str, str]] = {}
        self._texts: dict[str, str] = {}

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
        found = [Push(before, after, ref, float(at)) for before, after, ref, at in (line.split(" ") for line in lines)]
        return [
            replace(p, branch=p.branch.removeprefix("refs/heads/"))
            for p in found
            if p.after != NONE and p.branch.startswith("refs/heads/")
        ]

    def refuse(self, why: str) -> None:
        (self.path / "refuse").write_text(f"{why}\n")

    def allow(self) -> None:
        (self.path / "refuse").unlink(missing_ok=True)

    def protect(self, branches: Mapping[str, tuple[bool, bool]], says: str) -> None:
        """By name: whether it may be pushed to, and whether its history must be a line."""
        (self.path / "protected-says").write_text(says)
        rows = [f"{'yes' if p else 'no'} {'yes' if line else 'no'} {name}" for name, (p, line) in branches.items()]
        (self.path / "protected").write_text("".join(f"{row}\n" for row in rows))

    def tip(self, branch: str) -> str:
        return self.git("rev-parse", "--verify", "-q", f"refs/heads/{branch}", check=False)

    def holds(self, branch: str, commit: str) -> bool:
        known = self.git("cat-file", "-t", commit, check=False) == "commit"
        return known and commit in self.git("rev-list", f"refs/heads/{branch}", check=False).split()

    def parent(self, commit: str) -> str:
        return self.git("rev-parse", "--verify", "-q", f"{commit}^", check=False)

    def is_below(self, old: str, new: str) -> bool:
        """Whether `new` holds `old`."""
        return bool(old) and bool(new) and old in self.git("rev-list", new, check=False).split()

    def changed(self, before: str, after: str) -> list[str]:
        return self.git("diff", "--name-only", "--no-renames", before, after).split()

    def files(self, commit: str) -> dict[str, str]:
        """Every file at that commit, and what is in it."""
        if commit not in self._files:
            rows = self.git("ls-tree", "-r", "-z", commit, check=False).split("\0")
            found = [row.partition("\t") for row in rows if row]
            self._files[commit] = {name: self._text(about.split()[2]) for about, _, name in found}
        return self._files[commit]

    def _text(self, blob: str) -> str:
        if blob not in self._texts:
            self._texts[blob] = self.git("cat-file", "blob", blob, check=False)
        return self._texts[blob]

    def subject(self, commit: str) -> str:
        if commit not in self._subjects:
            self._subjects[commit] = self.git("log", "-1", "--format=%s", commit, check=False)
        return self._subjects[commit]

    def empty_commits(self, branch: str = "--all") -> int:
        """Commits that change nothing."""
        pairs = self.git("log", "--format=%T %P", branch).splitlines()
        trees = [line.split() for line in pairs]
        return sum(len(one) == 2 and self.git("rev-parse", f"{one[1]}^{{tree}}") == one[0] for one in trees)

    def commit(self, branch: str, name: str, text: str | None, *, on: str = "", message: str = "") -> str:
        """Somebody else puts a file onto a branch, or removes it; it counts as a push of theirs."""
        before = on or self.tip(branch)
        tree = self.git("ls-tree", before)
        lines = [line for line in tree.splitlines() if not line.endswith(f"\t{name}")]
        if text is not None:
            lines.append(f"100644 blob {self.git('hash-object', '-w', '--stdin', given=text)}\t{name}")
        made = self.git("mktree", given="\n".join(lines) + "\n")
        commit = self.git("commit-tree", made, "-p", before, "-m", message or f"somebody else: {name}")
        self.move(branch, commit)
        return commit

    def merge(self, branch: str, into: str, message: str = "") -> str:
        """The commit that joins both, on `into`; empty where they do not go together."""
        ours, theirs = self.tip(into), self.tip(branch)
        if theirs in self.git("rev-list", ours).split():
            return ours
        tree = self.joined(ours, theirs)
        if not tree:
            return ""
        commit = self.git("commit-tree", tree, "-p", ours, "-p", theirs, "-m", message or f"Merge {branch}")
        self.move(into, commit)
        return commit

    def land(self, branch: str, into: str, how: str, message: str = "") -> str:
        """As `merge`, or by another of the ways that forges have; empty where that cannot be."""
        ours, theirs = self.tip(into), self.tip(branch)
        if how == "merge" or self.is_below(theirs, ours):
            return self.merge(branch, into, message)
        if how == "fast-forward":
            commit = theirs if self.is_below(ours, theirs) else ""
        elif how == "squash":
            tree = self.joined(ours, theirs)
            commit = self.git("commit-tree", tree, "-p", ours, "-m", message or f"Squash {branch}") if tree else ""
        else:
            commit = self._rebased(branch, into)
        if commit:
            self.move(into, commit)
        return commit

    def move(self, branch: str, commit: str) -> float:
        """When it was written down as a push."""
        before = self.tip(branch) or NONE
        self.git("update-ref", f"refs/heads/{branch}", commit)
        at = f"{time.time():.6f}"
        with (self.path / "pushes").open("a") as file:
            file.write(f"{before} {commit} refs/heads/{branch} {at}\n")
        return float(at)

    def cut(self, branch: str, count: int) -> float:
        """The branch is forced back, without its last commits (along first parents)."""
        return self.move(branch, self.git("rev-parse", f"refs/heads/{branch}~{count}"))

    def drop(self, branch: str, above: int) -> float:
        """The branch without that one commit, with what is above it as new commits."""
        tip = self.git("rev-parse", f"refs/heads/{branch}~{above + 1}")
        for commit in self.git("rev-list", "--reverse", f"{branch}~{above}..{branch}").splitlines():
            tip = self._on(tip, commit)
        return self.move(branch, tip)

    def delete(self, branch: str) -> bool:
        there = bool(self.tip(branch))
        if there:
            self.git("update-ref", "-d", f"refs/heads/{branch}")
        return there

    def joined(self, ours: str, theirs: str) -> str:
        """The tree of both; empty where they do not go together."""
        tree = self.git("merge-tree", "--write-tree", ours, theirs, check=False).split("\n")[0]
        return tree if self.git("cat-file", "-t", tree, check=False) == "tree" else ""

    def rebase(self, branch: str, onto: str) -> str:
        """The branch's own commits on top of another; its new tip, empty where they do not go together."""
        tip = self._rebased(branch, onto)
        if tip:
            self.move(branch, tip)
        return tip

    def _rebased(self, branch: str, onto: str) -> str:
        tip = self.tip(onto)
        for commit in self.git("rev-list", "--reverse", "--no-merges", f"{tip}..{self.tip(branch)}").splitlines():
            tip = self._on(tip, commit)
            if not tip:
                return ""
        return tip

    def _on(self, tip: str, commit: str) -> str:
        # With the commit's parent as its own, what is there already differs from it as it shall.
        there = self.git("commit-tree", f"{tip}^{{tree}}", "-p", f"{commit}^", "-m", "there already")
        tree = self.joined(there, commit)
        message = self.git("log", "-1", "--format=%B", commit)
        return self.git("commit-tree", tree, "-p", tip, "-m", message) if tree else ""

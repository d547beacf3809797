"""From the run's branch into the project's own, and what a run leaves on the disk."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ganger.errors import GangerError
from ganger.ports.repository import Conflict
from ganger.workspaces.files.removal import discard
from ganger.workspaces.git.bare_repo import BareRepo
from ganger.workspaces.git.git import Git, git_program
from ganger.workspaces.git.rebase import is_ancestor, join
from ganger.workspaces.git.settings import AttemptPlace, RunRefs, ref_part

# The only place where git runs with the user's own configuration, in the user's own checkout, because they asked for
# it: the files must look as their git writes them. Hooks and background work stay off.
_OWN_CHECKOUT = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")


@dataclass(frozen=True, slots=True)
class LandingPlan:
    """`how` is nothing, fast-forward, merge or conflict. `tip` is the commit the project's branch would move to."""

    branch: str
    before: str
    head: str
    tip: str
    how: str
    commits: int
    conflict: Conflict | None = None


class Landing:
    def __init__(self, project: Path, store: Path, run: str, environ: Mapping[str, str]) -> None:
        """`environ` is the user's own."""
        self._project, self._run, self._environ = project, run, environ
        self._bare = BareRepo(project, store)
        self._git = self._bare.git
        self._refs = RunRefs(run)

    def plan(self, commit: str = "") -> LandingPlan:
        """Compares both branches, or a commit instead of the run's; writes nothing the project can see."""
        head = commit or self._git.resolve(self._refs.branch)
        if not head:
            raise GangerError(
                f"run {self._run!r} has no branch to land", hint="only runs in a git mode have one", code="NO_BRANCH"
            )
        before = self._bare.feed(f"{self._refs.own}/project")
        branch = self._branch()
        count = self._git.ask("rev-list", "--count", head, f"^{before}", doing="counting commits").text
        if is_ancestor(self._git, head, before):
            return LandingPlan(branch, before, head, before, "nothing", 0)
        if is_ancestor(self._git, before, head):
            return LandingPlan(branch, before, head, head, "fast-forward", int(count))
        both = join(self._git, before, head, f"Merge what run {self._run} made\n\nGanger-Run: {self._run}\n")
        if isinstance(both, Conflict):
            return LandingPlan(branch, before, head, before, "conflict", int(count), both)
        return LandingPlan(branch, before, head, both.commit, "merge", int(count))

    def move(self, plan: LandingPlan) -> None:
        """Moves the branch that is checked out and its files; git refuses where that would lose something."""
        self._bare.export(plan.tip, self._project, f"refs/ganger/landed/{ref_part(self._run)}")
        environ = {name: text for name, text in self._environ.items() if not name.startswith("GIT_")}
        words = [git_program(), *_OWN_CHECKOUT, "merge", "--ff-only", "--no-autostash", "--quiet", plan.tip]
        said = subprocess.run(
            words, cwd=self._project, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if said.returncode != 0:
            lines = said.stderr.decode("utf-8", "replace").strip().splitlines()
            raise GangerError(
                f"git refuses to move {plan.branch or 'HEAD'}: {' '.join(lines[:6]) or 'it gave no reason'}",
                hint="commit or stash the files it names, then run ganger land again; nothing was changed",
                code="LAND_REFUSED",
            )

    def to_branch(self, plan: LandingPlan, name: str) -> None:
        """Creates or moves another branch; the checkout stays unchanged."""
        if name == plan.branch:
            raise GangerError(
                f"{name} is checked out", hint="ganger land without --branch moves it, with your files", code="USAGE"
            )
        self._bare.export(plan.tip if plan.how != "conflict" else plan.head, self._project, f"refs/heads/{name}")

    def _branch(self) -> str:
        words = ("symbolic-ref", "--quiet", "--short", "HEAD")
        return Git(self._project / ".git").ask(*words, doing="looking for your branch", fine=(0, 1)).text


_OF_CI = re.compile(r"ci\.[0-9a-f]{7,64}\.")
_STALE_SEC = 86400.0
_FIELDS = "%H%x00%(trailers:only,unfold)%x00"


class KeptWork(StrEnum):
    """Where the work of a workspace is stored besides the folder itself."""

    MERGED = "merged"
    SAVED = "saved"
    UNSAVED = "unsaved"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A workspace that is still there. `task` is its id as a file name."""

    folder: Path
    task: str
    attempt: int
    bytes: int
    state: KeptWork


def workspaces_in(work: Path) -> Iterator[AttemptPlace]:
    """Every attempt that has a workspace."""
    if not work.is_dir():
        return
    for folder in sorted(work.iterdir()):
        task, _, attempt = folder.name.rpartition(".")
        if (
            task
            and not folder.name.startswith(".")
            and attempt.isdigit()
            and folder.is_dir()
            and not folder.is_symlink()
        ):
            yield AttemptPlace(task, int(attempt))


def sweep(above: Path, *, everything: bool = False) -> None:
    """Removes half-made and discarded folders, or all of them except those of CI jobs, which may still run in them."""
    for name in (".new", ".trash"):
        if (above / name).is_dir():
            for left in list((above / name).iterdir()):
                discard(left)
    if everything and above.is_dir():
        for folder in list(above.iterdir()):
            if not _OF_CI.match(folder.name):
                discard(folder)


def remove_indexes(work: Path, name: str) -> None:
    """The private index of one workspace, whatever its commit."""
    if (work / ".index").is_dir():
        for index in (work / ".index").iterdir():
            if index.name.rpartition(".")[0] == name:
                index.unlink(missing_ok=True)


def remove_stale_indexes(work: Path) -> None:
    """An index outlives its workspace when the process was killed between the two."""
    known = {one.name for one in workspaces_in(work)}
    if (work / ".index").is_dir():
        for index in list((work / ".index").iterdir()):
            if index.name.rpartition(".")[0] not in known:
                index.unlink(missing_ok=True)


def remove_stale_objects(store: Path, now: float) -> None:
    """Half-written objects of git processes that were killed long ago."""
    for pattern in ("pack/tmp_*", "??/tmp_obj_*", "tmp_objdir-*", "bulk-fsync-*"):
        for left in (store / "objects").glob(pattern):
            with suppress(OSError):
                if now - left.lstat().st_mtime > _STALE_SEC:
                    discard(left)


def trailers_between(git: Git, start: str, head: str) -> Mapping[str, Mapping[str, str]]:
    """The trailers of every commit after `start` up to `head`, oldest first."""
    words = ("log", "--reverse", "--first-parent", f"--format={_FIELDS}", f"{start}..{head}")
    pieces = os.fsdecode(git.ask(*words, doing="reading the branch").out).split("\0")
    found: dict[str, Mapping[str, str]] = {}
    for oid, text in zip(pieces[0::2], pieces[1::2], strict=False):
        lines = [line.partition(": ") for line in text.splitlines() if ": " in line]
        found[oid.strip()] = {name: value.strip() for name, _, value in lines}
    return found

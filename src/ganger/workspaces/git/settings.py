"""The settings of one of Ganger's git repositories: where everything is, who the author is, what the safeguards are."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ganger.core.masking import NOTHING, Masker
from ganger.core.names import file_stem, repo_place, repo_store
from ganger.ports.changes import Change, Rules
from ganger.workspaces.git.objects import Who, tidy
from ganger.workspaces.rules.protected import Protection


@dataclass(frozen=True, slots=True)
class GitSettings:
    """`store` is shared by all runs of a project; `work`, `checks` and `pool` are this run's.

    `linked` and `copied` are folders of the project that git ignores and that agents need. `warm` is how many
    workspaces are made ahead. `sign_off`: each commit has a Signed-off-by line. `owner` (uid, gid) gets every folder
    an agent or a check works in. `secrets` are what no message may hold.
    """

    project: Path
    store: Path
    run: str
    work: Path
    checks: Path
    pool: Path
    judge: Callable[[Change, Rules], None]
    generated: Callable[[str], bool]
    author: str = "Ganger <ganger@localhost>"
    sign_off: bool = False
    linked: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    warm: int = 0
    protection: Protection = field(default_factory=Protection)
    max_file_bytes: int = 16 << 20
    max_total_bytes: int = 64 << 20
    max_files: int = 2000
    min_free_bytes: int = 64 << 20
    owner: tuple[int, int] | None = None
    secrets: Masker = NOTHING
    now: Callable[[], float] = time.time

    def signed(self, message: str) -> str:
        """The message with a Signed-off-by line below its trailers, where the project wants that."""
        if not self.sign_off:
            return message
        who = Who.parse(self.author)
        return f"{tidy(message)}Signed-off-by: {who.name} <{who.mail}>\n"

    @property
    def brought(self) -> tuple[str, ...]:
        return (*self.linked, *self.copied)


def settings_for(base: GitSettings, repo: str, path: Path, *, state: Path, run_folder: Path) -> GitSettings:
    """The project's settings for another repository of the same run, with a store and folders of its own.

    Its folders lie beside the project's and not inside them: a sweep removes everything it does not know.
    """
    mine = run_folder / repo_place(repo)
    return replace(
        base,
        project=path,
        store=state / repo_store(repo),
        work=mine / "work",
        checks=mine / "checks",
        pool=mine / "pool",
    )


@dataclass(frozen=True, slots=True)
class AttemptPlace:
    """Which attempt a workspace is for; `stem` is its task's id as a file name."""

    stem: str
    number: int

    @classmethod
    def of(cls, task: str, number: int) -> AttemptPlace:
        return cls(file_stem(task), number)

    @property
    def name(self) -> str:
        return f"{self.stem}.{self.number}"


@dataclass(frozen=True, slots=True)
class RunRefs:
    """The refs of one run: its branch, its start, and what its attempts made."""

    run: str

    @property
    def branch(self) -> str:
        return f"refs/heads/ganger/{ref_part(self.run)}"

    @property
    def own(self) -> str:
        return f"refs/ganger/{ref_part(self.run)}"

    @property
    def beginning(self) -> str:
        return f"{self.own}/base"

    def made(self, commit: str) -> str:
        """Keeps a commit that Ganger made, whatever happens to the branch it was made for."""
        return f"{self.own}/made/{commit}"

    def at(self, attempt: AttemptPlace) -> str:
        """The commit the attempt's workspace was made from."""
        return self._of("at", attempt)

    def change(self, attempt: AttemptPlace) -> str:
        return self._of("change", attempt)

    def wip(self, attempt: AttemptPlace) -> str:
        return self._of("wip", attempt)

    def _of(self, kind: str, attempt: AttemptPlace) -> str:
        return f"{self.own}/{kind}/{_allowed(attempt.stem)}/{attempt.number}"


def ref_part(name: str) -> str:
    """Any id as one part of a ref name; different ids stay different."""
    return _allowed(file_stem(name))


def _allowed(stem: str) -> str:
    """Characters that git forbids in a ref are escaped as in file names."""
    stem = stem.replace("~", "%7E").replace("..", ".%2E")
    if stem.endswith("."):
        stem = f"{stem[:-1]}%2E"
    return f"{stem[:-5]}%2Elock" if stem.endswith(".lock") else stem

"""What can happen to the changes of a run: edits, workspaces, recoveries of checks, merges, the landing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import AttemptEvent, RunEvent
from ganger.core.events.wording import files_of, listed
from ganger.core.model.records import VerifyStep


@dataclass(frozen=True, slots=True)
class VerifyRecovered(AttemptEvent):
    """A verification step was run again, or in another spelling, before it counted."""

    shown: ClassVar = True

    task: str
    attempt: int
    step: str
    what: str

    def sentence(self) -> str:
        return f"{self.task}: verification step {self.step} ran again: {self.what}"


@dataclass(frozen=True, slots=True)
class EditsSeen(AttemptEvent):
    """What an agent changed in the project's own folder. `alone`: no other agent worked there meanwhile."""

    task: str
    attempt: int
    files: tuple[str, ...]
    alone: bool = True

    def sentence(self) -> str:
        return f"{self.task}: edited {files_of(self.files)} in place"


@dataclass(frozen=True, slots=True)
class UnclaimedEdits(RunEvent):
    """Files changed in the project's own folder while several agents worked there: now this role works alone."""

    shown: ClassVar = True

    role: str
    files: tuple[str, ...]
    saved: str = ""

    def sentence(self) -> str:
        undone = f" (undone, kept in {self.saved})" if self.saved else ""
        alone = f"role {self.role} works alone from now on"
        return f"{listed(self.files)} changed while several agents worked{undone}; {alone}"


@dataclass(frozen=True, slots=True)
class GatesRestored(AttemptEvent):
    """Gate files that were changed outside of a task's writes, and restored before verification."""

    shown: ClassVar = True

    task: str
    attempt: int
    files: tuple[str, ...]

    def sentence(self) -> str:
        return f"{self.task}: changed gate files restored before verification: {listed(self.files)}"


@dataclass(frozen=True, slots=True)
class ExpectedMissing(AttemptEvent):
    """Files of metadata.expected_files that are missing after an attempt, if that is not a failure (W04)."""

    shown: ClassVar = True

    task: str
    attempt: int
    files: tuple[str, ...]

    def sentence(self) -> str:
        return f"{self.task}: warning: expected files are missing: {listed(self.files)}"


@dataclass(frozen=True, slots=True)
class FixedRestored(RunEvent):
    """Git settings, installed packages or linked folders changed while these tasks ran, and were restored.

    `saved` is where the changed versions are; `left` could not be restored.
    """

    shown: ClassVar = True

    files: tuple[str, ...]
    saved: str
    tasks: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def sentence(self) -> str:
        lost = f"; could not be restored: {listed(self.left)}" if self.left else ""
        return (
            f"git settings or installed packages changed while {listed(self.tasks)} ran and were restored: "
            f"{listed(self.files)}; the changed versions are in {self.saved}{lost}"
        )


@dataclass(frozen=True, slots=True)
class RefsMoved(RunEvent):
    """Refs of the person's repository that moved, but not by this run; `tasks` ran meanwhile."""

    shown: ClassVar = True

    moves: tuple[str, ...]
    tasks: tuple[str, ...] = ()

    def sentence(self) -> str:
        when = f"while {listed(self.tasks)} ran" if self.tasks else "while no agent ran"
        return f"refs moved {when}, and not by this run: {listed(self.moves)}"


@dataclass(frozen=True, slots=True)
class WorkspaceReady(AttemptEvent):
    task: str
    attempt: int
    base: str


@dataclass(frozen=True, slots=True)
class ChangeTaken(AttemptEvent):
    """What the attempt changed, judged and committed on its base. An empty change is its base.

    `dropped` are generated files that were left out, `missing` expected files that are not in it.
    """

    task: str
    attempt: int
    base: str
    commit: str
    files: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def sentence(self) -> str:
        extra = f", left out {len(self.dropped)} generated" if self.dropped else ""
        lack = f"; missing expected files: {listed(self.missing)}" if self.missing else ""
        return f"{self.task}: changed {files_of(self.files)}{extra}{lack}"


@dataclass(frozen=True, slots=True)
class WorkSaved(AttemptEvent):
    """Work of an attempt that did not count, kept for the next one and for people. `place` is a commit or a folder.

    `refused`: a safeguard refused it, so it is kept for people only."""

    shown: ClassVar = True

    task: str
    attempt: int
    place: str
    files: tuple[str, ...]
    refused: bool = False

    def sentence(self) -> str:
        return f"{self.task}: unfinished work on {files_of(self.files)} saved as {self.place[:40]}"


@dataclass(frozen=True, slots=True)
class MergeQueued(AttemptEvent):
    """Verified, and waiting to be merged; its worker's slot is free again."""

    task: str
    attempt: int
    commit: str

    def sentence(self) -> str:
        return f"{self.task}: waiting to be merged"


@dataclass(frozen=True, slots=True)
class GatesChecked(RunEvent):
    """The gates ran on a commit that combines several changes, or a change and a newer head."""

    shown: ClassVar = True

    commit: str
    tree: str
    tasks: tuple[str, ...]
    profile: str
    passed: bool
    log: str
    duration_sec: float
    steps: tuple[VerifyStep, ...]
    evidence: str = ""
    cached: bool = False

    def sentence(self) -> str:
        ended = "passed" if self.passed else "failed"
        return f"profile '{self.profile}' {ended} on the merged head ({listed(self.tasks)})"


@dataclass(frozen=True, slots=True)
class HeadIntended(RunEvent):
    """Recorded before the branch moves from `head` to `tip`, which contains these tasks' commits."""

    head: str
    tip: str
    tasks: tuple[str, ...]
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeadKept(RunEvent):
    """The branch did not move as intended."""

    shown: ClassVar = True

    head: str
    why: str
    repo: str = ""

    def sentence(self) -> str:
        return f"{self.repo or 'the project'}: the branch did not move: {self.why}"


@dataclass(frozen=True, slots=True)
class Merged(AttemptEvent):
    """The branch contains this task's change, as this commit. A verified empty change has none."""

    task: str
    attempt: int
    commit: str
    head: str

    def sentence(self) -> str:
        return f"{self.task}: merged as {self.commit[:12]}" if self.commit else ""


@dataclass(frozen=True, slots=True)
class Landed(RunEvent):
    """The run's branch was landed in the project's own, or in another repository's, by a person or by the settings."""

    branch: str
    commit: str
    repo: str = ""

    def sentence(self) -> str:
        return f"landed: {self.branch or 'HEAD'}{f' of {self.repo}' if self.repo else ''} is at {self.commit[:12]}"

"""What can happen to the changes of a run: edits, workspaces, recoveries of checks, merges, the landing."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.records import VerifyStep


@dataclass(frozen=True, slots=True)
class VerifyRecovered:
    """A verification step was run again, or in another spelling, before it counted."""

    task: str
    attempt: int
    step: str
    what: str


@dataclass(frozen=True, slots=True)
class EditsSeen:
    """What an agent changed in the project's own folder. `alone`: no other agent worked there meanwhile."""

    task: str
    attempt: int
    files: tuple[str, ...]
    alone: bool = True


@dataclass(frozen=True, slots=True)
class UnclaimedEdits:
    """Files changed in the project's own folder while several agents worked there: now this role works alone."""

    role: str
    files: tuple[str, ...]
    saved: str = ""


@dataclass(frozen=True, slots=True)
class GatesRestored:
    """Gate files that were changed outside of a task's writes, and restored before verification."""

    task: str
    attempt: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExpectedMissing:
    """Files of metadata.expected_files that are missing after an attempt, if that is not a failure (W04)."""

    task: str
    attempt: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FixedRestored:
    """Git settings, installed packages or linked folders changed while these tasks ran, and were restored.

    `saved` is where the changed versions are; `left` could not be restored.
    """

    files: tuple[str, ...]
    saved: str
    tasks: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefsMoved:
    """Refs of the person's repository that moved, but not by this run; `tasks` ran meanwhile."""

    moves: tuple[str, ...]
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceReady:
    task: str
    attempt: int
    base: str


@dataclass(frozen=True, slots=True)
class ChangeTaken:
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


@dataclass(frozen=True, slots=True)
class WorkSaved:
    """Work of an attempt that did not count, kept for the next one and for people. `place` is a commit or a folder.

    `refused`: a safeguard refused it, so it is kept for people only."""

    task: str
    attempt: int
    place: str
    files: tuple[str, ...]
    refused: bool = False


@dataclass(frozen=True, slots=True)
class MergeQueued:
    """Verified, and waiting to be merged; its worker's slot is free again."""

    task: str
    attempt: int
    commit: str


@dataclass(frozen=True, slots=True)
class GatesChecked:
    """The gates ran on a commit that combines several changes, or a change and a newer head."""

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


@dataclass(frozen=True, slots=True)
class HeadIntended:
    """Recorded before the branch moves from `head` to `tip`, which contains these tasks' commits."""

    head: str
    tip: str
    tasks: tuple[str, ...]
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeadKept:
    """The branch did not move as intended."""

    head: str
    why: str
    repo: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """The branch contains this task's change, as this commit. A verified empty change has none."""

    task: str
    attempt: int
    commit: str
    head: str


@dataclass(frozen=True, slots=True)
class Landed:
    """The run's branch was landed in the project's own, or in another repository's, by a person or by the settings."""

    branch: str
    commit: str
    repo: str = ""

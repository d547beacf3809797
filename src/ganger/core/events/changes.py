"""What can happen to the changes of a run: edits, workspaces, recoveries of checks, merges, the landing."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.records import VerifyStep


@dataclass(frozen=True, slots=True)
class VerifyRecovered:
    """A verification step was run once more, or in another spelling, before it counted."""

    task: str
    attempt: int
    step: str
    what: str


@dataclass(frozen=True, slots=True)
class EditsSeen:
    """What an agent changed in the project's own folder. `alone`: nobody else worked there meanwhile."""

    task: str
    attempt: int
    files: tuple[str, ...]
    alone: bool = True


@dataclass(frozen=True, slots=True)
class UnclaimedEdits:
    """Files were changed in the project's own folder while several worked there: from now on this role works alone."""

    role: str
    files: tuple[str, ...]
    saved: str = ""


@dataclass(frozen=True, slots=True)
class GatesRestored:
    """Gate files that were changed behind Ganger's back and put back before they judge."""

    task: str
    attempt: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExpectedMissing:
    """Files of metadata.expected_files that are not there after an attempt, where that is no failure (W04)."""

    task: str
    attempt: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FixedRestored:
    """Git's settings, installed packages or linked folders were changed while these tasks were worked on, and put back.

    `saved` is where what was found is; `left` could not be put back.
    """

    files: tuple[str, ...]
    saved: str
    tasks: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefsMoved:
    """Refs of the person's repository that this run did not move; `tasks` were worked on meanwhile."""

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

    `refused`: a safeguard said no to it, so it is kept for people only."""

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
    """The gates ran on a commit that several changes, or a change and a newer head, make together."""

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
    """Recorded before the branch moves from `head` to `tip`, which holds these tasks' commits."""

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
    """The branch holds this task's change, as this commit. A verified change of nothing has none."""

    task: str
    attempt: int
    commit: str
    head: str


@dataclass(frozen=True, slots=True)
class Landed:
    """A person, or the settings, took the branch over into the project's own, or into another repository's."""

    branch: str
    commit: str
    repo: str = ""

"""What can happen to a merged change: pushes, CI, mirrors, change requests, reviews; and to chains of repositories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ganger.core.events.event import AttemptEvent, B, E, F, P, R, RunEvent, TaskEvent
from ganger.core.events.wording import SHORT, listed
from ganger.core.model.ci import RunFact
from ganger.core.model.ledger import Milestone

# As recorded in `Pushed`.
_PUSHED = {"found": "is already on", "together": "was pushed together with others to"}
_WAYS = {"empty_commit": "an empty commit", "cancel": "canceling its run and rerunning it"}


@dataclass(frozen=True, slots=True)
class PushIntended(AttemptEvent):
    """Recorded before `commit` goes to `branch`; from here on it is what is tracked. `cause` is `change`, `update` (a
    change request is brought up to date), or why CI runs again. `upstream` are the newest proved commits of what
    the repository builds on. `own` is the task's own commit, if `commit` is a later tip that contains it; `onto`
    is where the branch was before. `replaces`: it does not build on that commit, so the branch is moved, and only from
    there."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    repo: str
    branch: str
    commit: str
    tree: str
    cause: str = "change"
    upstream: tuple[tuple[str, str], ...] = ()
    own: str = ""
    onto: str = ""
    replaces: str = ""

    def sentence(self) -> str:
        why = "" if self.cause in ("change", "update") else f" to run CI again ({self.cause})"
        held = f" (includes {self.own[:SHORT]})" if self.own not in ("", self.commit) else ""
        return f"{self.task}: pushing {self.commit[:SHORT]}{held} to {self.branch}{why}"


@dataclass(frozen=True, slots=True)
class Pushed(AttemptEvent):
    """The remote branch contains the commit. `how` is `pushed`, `found` if it was already there, or `together` if it
    went with the push of another task."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    commit: str
    branch: str
    how: str = "pushed"

    def sentence(self) -> str:
        return f"{self.task}: {self.commit[:SHORT]} {_PUSHED.get(self.how, 'was pushed to')} {self.branch}"


@dataclass(frozen=True, slots=True)
class PushRefused(AttemptEvent):
    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    commit: str
    why: str

    def sentence(self) -> str:
        return f"{self.task}: the push of {self.commit[:SHORT]} was refused: {self.why}"


@dataclass(frozen=True, slots=True)
class RebaseIntended(RunEvent):
    """Recorded before the run's branch moves from `head` to `tip`: what came after `onto`, rebased onto it
    without merges. `commits` are pairs of an old commit and the one that replaces it."""

    told_in_notices: ClassVar = True

    repo: str
    head: str
    tip: str
    onto: str
    commits: tuple[tuple[str, str], ...]

    def sentence(self) -> str:
        count = f"{len(self.commits)} commit{'s' if len(self.commits) != 1 else ''}"
        return f"{self.repo or 'the project'}: rebasing {count} of the run's branch onto {self.onto[:SHORT]}"


@dataclass(frozen=True, slots=True)
class HeadMoved(RunEvent):
    """The run's branch took in what others had pushed to the remote."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    repo: str
    before: str
    head: str
    why: str

    def sentence(self) -> str:
        return f"{self.repo or 'the project'}: the run's branch is at {self.head[:SHORT]}: {self.why}"


@dataclass(frozen=True, slots=True)
class CiSeen(AttemptEvent):
    """CI's report on `sha` has changed. `finding` is one of `core.model.ci.Ci`; `source` is where it comes from."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    sha: str
    runs: tuple[RunFact, ...]
    finding: str
    why: str
    passed: int = 0
    total: int = 0
    current: str = ""
    mirror: str = ""
    source: str = ""

    def sentence(self) -> str:
        jobs = f", {self.passed} of {self.total} jobs passed" if self.total else ""
        return f"{self.task}: CI of {self.sha[:SHORT]} is {self.finding}{jobs}: {self.why}"


@dataclass(frozen=True, slots=True)
class CiJudged(AttemptEvent):
    """CI's verdict on `sha`: `green` or `red`. `signature` and `log` belong to a red one."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    sha: str
    verdict: str
    why: str
    source: str = ""
    failure_class: str = ""
    signature: str = ""
    log: str = ""

    def sentence(self) -> str:
        return f"{self.task}: CI verdict on {self.sha[:SHORT]} is {self.verdict}: {self.why}"


@dataclass(frozen=True, slots=True)
class CiWaived(AttemptEvent):
    """`sha` does not need green CI. `cause` is `base_red` (it is as red as `base` was before the run) or `not_expected`
    (by a setting, no workflow runs on what it changes, and none did); `why` is the proof in words."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    sha: str
    cause: str
    why: str
    base: str = ""

    def sentence(self) -> str:
        if self.cause == "not_expected":
            return f"{self.task}: no CI run is expected for {self.sha[:SHORT]}: {self.why}"
        return f"{self.task}: {self.sha[:SHORT]} does not need green CI: {self.why}"


@dataclass(frozen=True, slots=True)
class TargetJudged(RunEvent):
    """CI's verdict on the target without this run. `jobs` are those that failed, `faults` the errors in their logs:
    none if the forge gives no logs."""

    told_in_notices: ClassVar = True

    repo: str
    commit: str
    verdict: str
    why: str
    jobs: tuple[str, ...] = ()
    url: str = ""
    source: str = ""
    faults: tuple[str, ...] = ()

    def sentence(self) -> str:
        return (
            f"{self.repo or 'the project'}: CI is {self.verdict} without this run, at {self.commit[:SHORT]}: {self.why}"
        )


@dataclass(frozen=True, slots=True)
class HalfJudged(RunEvent):
    """CI's verdict on `commit`, a part of the red `tip`, requested on a branch of its own. `verdict` is `green`, `red`
    or `unknown`."""

    told_in_notices: ClassVar = True

    repo: str
    tip: str
    commit: str
    verdict: str
    why: str = ""

    def sentence(self) -> str:
        reason = f": {self.why}" if self.why else ""
        return f"CI of {self.commit[:SHORT]} is {self.verdict} (part of the red {self.tip[:SHORT]}){reason}"


@dataclass(frozen=True, slots=True)
class CulpritFound(RunEvent):
    """The task whose change turned `tip` red; the others in it wait until it is fixed. `how` it was found."""

    told_in_notices: ClassVar = True

    repo: str
    tip: str
    task: str
    how: str

    def sentence(self) -> str:
        return f"{self.task}: turned {self.tip[:SHORT]} red ({self.how}); the other tasks in it wait for its fix"


@dataclass(frozen=True, slots=True)
class MirrorProved(AttemptEvent):
    """`how` is the job, or the command that showed it."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    sha: str
    how: str
    raw: str = ""

    def sentence(self) -> str:
        return f"{self.task}: the mirror has {self.sha[:SHORT]} ({self.how})"


@dataclass(frozen=True, slots=True)
class RetriggerIntended(AttemptEvent):
    """CI is about to run again for `cause`. `how` is `rerun` (of `run`), `cancel` (of `run`, which starts again once it
    has ended) or `empty_commit`."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    sha: str
    cause: str
    how: str
    run: str = ""

    def sentence(self) -> str:
        return f"{self.task}: CI will run again ({self.cause}) by {_WAYS.get(self.how, 'a rerun')}"


@dataclass(frozen=True, slots=True)
class Retriggered(AttemptEvent):
    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    sha: str
    cause: str
    how: str

    def sentence(self) -> str:
        return f"{self.task}: CI is running again ({self.cause}) by {_WAYS.get(self.how, 'a rerun')}"


@dataclass(frozen=True, slots=True)
class RequestIntended(AttemptEvent):
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    branch: str
    into: str
    draft: bool = False

    def sentence(self) -> str:
        return f"{self.task}: opening a change request from {self.branch} into {self.into}"


@dataclass(frozen=True, slots=True)
class RequestOpened(AttemptEvent):
    """`found`: it already existed. `title` is the one it has, or was meant to have."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    number: str
    url: str
    found: bool = False
    title: str = ""

    def sentence(self) -> str:
        return f"{self.task}: change request #{self.number} {'already exists' if self.found else 'is open'}: {self.url}"


@dataclass(frozen=True, slots=True)
class RequestChanged(AttemptEvent):
    """`what` is `ready`, `merged`, `closed`, `branch_gone` (someone removed its branch), `rewritten` (its title and
    text describe `commit`) or `branch_removed` (it was merged, and its branch, which was at `commit`, was removed).
    `commit` is otherwise what the merge made of `tested`; `same`: with the same tree. `by` is `person` if Ganger had
    not requested it."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    number: str
    what: str
    commit: str = ""
    title: str = ""
    tested: str = ""
    same: bool = True
    by: str = ""

    def sentence(self) -> str:
        if self.what == "branch_gone":
            return f"{self.task}: the branch of change request #{self.number} no longer contains its commit"
        if self.what == "merged":
            by = " by a person" if self.by else ""
            return f"{self.task}: change request #{self.number} was merged{by} as {self.commit[:SHORT]}"
        known = {
            "rewritten": f"now describes {self.commit[:SHORT]}",
            "branch_removed": "was merged and its branch was removed",
        }
        return f"{self.task}: change request #{self.number} {known.get(self.what, f'is {self.what}')}"


@dataclass(frozen=True, slots=True)
class Remarked(AttemptEvent):
    """Ganger's comment about the task on its change request. `url` is empty if the forge accepts no comment; `mark`
    distinguishes one text from the next."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    number: str
    url: str
    mark: str

    def sentence(self) -> str:
        return f"{self.task}: " + (
            f"commented at {self.url}"
            if self.url
            else f"the forge did not accept a comment on change request #{self.number}"
        )


@dataclass(frozen=True, slots=True)
class ReviewAsked(AttemptEvent):
    """`of` is `person`, the name of a role, or `forge`: only people there can decide."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    attempt: int
    of: str
    commit: str

    def sentence(self) -> str:
        by = {"person": "by a person", "forge": "on the forge"}.get(self.of, f"by the {self.of}")
        return f"{self.task}: {self.commit[:SHORT]} is waiting for a review {by}"


@dataclass(frozen=True, slots=True)
class Reviewed(TaskEvent):
    """`verdict` is `approved` or `rework`, on `commit` and no other; `withdrawn`: no objection on the forge stands any
    more. `who` decided so on the forge, at `url`, in the reviews of these names; both are empty if it was decided
    here."""

    fits: ClassVar = {P: P, R: R, B: B, F: F, E: E}
    shown: ClassVar = True
    told_in_notices: ClassVar = True

    task: str
    verdict: str
    by: str
    text: str = ""
    commit: str = ""
    who: str = ""
    url: str = ""
    reviews: tuple[str, ...] = ()

    def sentence(self) -> str:
        by = f"{self.who} on the forge" if self.who else "a person" if self.by == "person" else f"the {self.by}"
        if self.verdict == "withdrawn":
            return f"{self.task}: the request for changes to {self.commit[:SHORT]} was withdrawn on the forge"
        said = "was approved" if self.verdict == "approved" else "was sent back"
        return f"{self.task}: {self.commit[:SHORT]} {said} by {by}" + (f": {self.text}" if self.text else "")


@dataclass(frozen=True, slots=True)
class MilestoneReached(AttemptEvent):
    """D07, D40. A move that is not in the table is refused, and kept as refused."""

    told_in_notices: ClassVar = True

    task: str
    attempt: int
    milestone: Milestone
    substate: str = ""

    def sentence(self) -> str:
        return f"{self.task}: {self.milestone.value}{f' ({self.substate})' if self.substate else ''}"


@dataclass(frozen=True, slots=True)
class ChainHalted(RunEvent):
    """D12: continuing could do harm. Nothing in this repository's chain starts or is pushed until a person says so."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    repo: str
    task: str
    why: str

    def sentence(self) -> str:
        return f"{self.repo or 'the project'} and its chain are halted: {self.why}"


@dataclass(frozen=True, slots=True)
class ChainPaused(RunEvent):
    """D13: `sha` turned this repository red; what depends on it waits."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    repo: str
    task: str
    sha: str
    why: str
    downstream: tuple[str, ...] = ()

    def sentence(self) -> str:
        waits = (
            f"; {listed(self.downstream)} {'waits' if len(self.downstream) == 1 else 'wait'}" if self.downstream else ""
        )
        return f"{self.task}: turned {self.repo or 'the project'} red: {self.why}{waits}"


@dataclass(frozen=True, slots=True)
class ChainCleared(RunEvent):
    """The repository is green again."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    repo: str
    sha: str

    def sentence(self) -> str:
        return f"{self.repo or 'the project'} is green again"


@dataclass(frozen=True, slots=True)
class RepoUnlocked(RunEvent):
    """A person released the locks of these tasks (D09). `lifts`: and any halt or pause with them."""

    shown: ClassVar = True
    told_in_notices: ClassVar = True

    repo: str
    why: str
    tasks: tuple[str, ...] = ()
    lifts: bool = True

    def sentence(self) -> str:
        freed = f" ({listed(self.tasks)})" if self.tasks else ""
        return f"{self.repo or 'the project'} is unlocked{freed}: {self.why}"

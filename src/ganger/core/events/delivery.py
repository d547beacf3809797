"""What can happen to a merged change: pushes, CI, mirrors, change requests, reviews; and to chains of repositories."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.ci import RunFact
from ganger.core.model.ledger import Milestone


@dataclass(frozen=True, slots=True)
class PushIntended:
    """Recorded before `commit` goes to `branch`; from here on it is what is tracked. `cause` is `change`, `update` (a
    change request is brought up to date), or why CI runs again. `upstream` are the newest proved commits of what
    the repository builds on. `own` is the task's own commit, if `commit` is a later tip that contains it; `onto`
    is where the branch was before. `replaces`: it does not build on that commit, so the branch is moved, and only from
    there."""

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


@dataclass(frozen=True, slots=True)
class Pushed:
    """The remote branch contains the commit. `how` is `pushed`, `found` if it was already there, or `together` if it
    went with the push of another task."""

    task: str
    attempt: int
    commit: str
    branch: str
    how: str = "pushed"


@dataclass(frozen=True, slots=True)
class PushRefused:
    task: str
    attempt: int
    commit: str
    why: str


@dataclass(frozen=True, slots=True)
class RebaseIntended:
    """Recorded before the run's branch moves from `head` to `tip`: what came after `onto`, rebased onto it
    without merges. `commits` are pairs of an old commit and the one that replaces it."""

    repo: str
    head: str
    tip: str
    onto: str
    commits: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HeadMoved:
    """The run's branch took in what others had pushed to the remote."""

    repo: str
    before: str
    head: str
    why: str


@dataclass(frozen=True, slots=True)
class CiSeen:
    """CI's report on `sha` has changed. `finding` is one of `core.model.ci.Ci`; `source` is where it comes from."""

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


@dataclass(frozen=True, slots=True)
class CiJudged:
    """CI's verdict on `sha`: `green` or `red`. `signature` and `log` belong to a red one."""

    task: str
    attempt: int
    sha: str
    verdict: str
    why: str
    source: str = ""
    failure_class: str = ""
    signature: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class CiWaived:
    """`sha` does not need green CI. `cause` is `base_red` (it is as red as `base` was before the run) or `not_expected`
    (by a setting, no workflow runs on what it changes, and none did); `why` is the proof in words."""

    task: str
    attempt: int
    sha: str
    cause: str
    why: str
    base: str = ""


@dataclass(frozen=True, slots=True)
class TargetJudged:
    """CI's verdict on the target without this run. `jobs` are those that failed, `faults` the errors in their logs:
    none if the forge gives no logs."""

    repo: str
    commit: str
    verdict: str
    why: str
    jobs: tuple[str, ...] = ()
    url: str = ""
    source: str = ""
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HalfJudged:
    """CI's verdict on `commit`, a part of the red `tip`, requested on a branch of its own. `verdict` is `green`, `red`
    or `unknown`."""

    repo: str
    tip: str
    commit: str
    verdict: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class CulpritFound:
    """The task whose change turned `tip` red; the others in it wait until it is fixed. `how` it was found."""

    repo: str
    tip: str
    task: str
    how: str


@dataclass(frozen=True, slots=True)
class MirrorProved:
    """`how` is the job, or the command that showed it."""

    task: str
    attempt: int
    sha: str
    how: str
    raw: str = ""


@dataclass(frozen=True, slots=True)
class RetriggerIntended:
    """CI is about to run again for `cause`. `how` is `rerun` (of `run`), `cancel` (of `run`, which starts again once it
    has ended) or `empty_commit`."""

    task: str
    attempt: int
    sha: str
    cause: str
    how: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class Retriggered:
    task: str
    attempt: int
    sha: str
    cause: str
    how: str


@dataclass(frozen=True, slots=True)
class RequestIntended:
    task: str
    attempt: int
    branch: str
    into: str
    draft: bool = False


@dataclass(frozen=True, slots=True)
class RequestOpened:
    """`found`: it already existed. `title` is the one it has, or was meant to have."""

    task: str
    attempt: int
    number: str
    url: str
    found: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class RequestChanged:
    """`what` is `ready`, `merged`, `closed`, `branch_gone` (someone removed its branch), `rewritten` (its title and
    text describe `commit`) or `branch_removed` (it was merged, and its branch, which was at `commit`, was removed).
    `commit` is otherwise what the merge made of `tested`; `same`: with the same tree. `by` is `person` if Ganger had
    not requested it."""

    task: str
    attempt: int
    number: str
    what: str
    commit: str = ""
    title: str = ""
    tested: str = ""
    same: bool = True
    by: str = ""


@dataclass(frozen=True, slots=True)
class Remarked:
    """Ganger's comment about the task on its change request. `url` is empty if the forge accepts no comment; `mark`
    distinguishes one text from the next."""

    task: str
    attempt: int
    number: str
    url: str
    mark: str


@dataclass(frozen=True, slots=True)
class ReviewAsked:
    """`of` is `person`, the name of a role, or `forge`: only people there can decide."""

    task: str
    attempt: int
    of: str
    commit: str


@dataclass(frozen=True, slots=True)
class Reviewed:
    """`verdict` is `approved` or `rework`, on `commit` and no other; `withdrawn`: no objection on the forge stands any
    more. `who` decided so on the forge, at `url`, in the reviews of these names; both are empty if it was decided
    here."""

    task: str
    verdict: str
    by: str
    text: str = ""
    commit: str = ""
    who: str = ""
    url: str = ""
    reviews: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MilestoneReached:
    """D07, D40. A move that is not in the table is refused, and kept as refused."""

    task: str
    attempt: int
    milestone: Milestone
    substate: str = ""


@dataclass(frozen=True, slots=True)
class ChainHalted:
    """D12: continuing could do harm. Nothing in this repository's chain starts or is pushed until a person says so."""

    repo: str
    task: str
    why: str


@dataclass(frozen=True, slots=True)
class ChainPaused:
    """D13: `sha` turned this repository red; what depends on it waits."""

    repo: str
    task: str
    sha: str
    why: str
    downstream: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ChainCleared:
    """The repository is green again."""

    repo: str
    sha: str


@dataclass(frozen=True, slots=True)
class RepoUnlocked:
    """A person released the locks of these tasks (D09). `lifts`: and any halt or pause with them."""

    repo: str
    why: str
    tasks: tuple[str, ...] = ()
    lifts: bool = True

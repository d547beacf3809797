"""What can happen to a merged change: pushes, CI, mirrors, change requests, reviews; and to chains of repositories."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.model.ci import RunFact
from ganger.core.model.ledger import Milestone


@dataclass(frozen=True, slots=True)
class PushIntended:
    """Recorded before `commit` goes to `branch`; from here on it is what is tracked. `cause` is `change`, `update` (a
    change request is brought up to date), or why CI is to run again. `upstream` are the newest proved commits of what
    the repository builds on. `own` is the task's own commit, where `commit` is a later tip that holds it; `onto` is
    what the branch was at before. `replaces`: it does not build on that commit, so the branch is moved from there, and
    from nowhere else."""

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
    """The remote's branch holds the commit. `how` is `pushed`, `found` when it was there already, or `together` when
    it went with the push of another task."""

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
    """Recorded before the run's branch moves from `head` to `tip`: what came after `onto`, without merges and on top of
    it. `commits` are pairs of what a commit was and what has its place then."""

    repo: str
    head: str
    tip: str
    onto: str
    commits: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class HeadMoved:
    """A run's branch took over what others had put on the remote's."""

    repo: str
    before: str
    head: str
    why: str


@dataclass(frozen=True, slots=True)
class CiSeen:
    """What CI says of `sha` has changed. `finding` is one of `core.model.ci.Ci`; `source` is who said it."""

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
    """CI's verdict on `sha`: `green` or `red`. `signature` and `log` are of a red one."""

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
    """`sha` needs no green verdict of CI. `cause` is `base_red` (it is as red as `base` was before the run) or
    `not_expected` (by a setting no workflow runs on what it changes, and none did); `why` is the proof in words."""

    task: str
    attempt: int
    sha: str
    cause: str
    why: str
    base: str = ""


@dataclass(frozen=True, slots=True)
class TargetJudged:
    """CI's verdict on what the target held without this run. `jobs` are those that failed, `faults` what is wrong by
    their logs: none where the forge gives no logs."""

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
    """CI's verdict on `commit`, a part of the red `tip`, asked for on a branch of its own. `verdict` is `green`, `red`
    or `unknown`."""

    repo: str
    tip: str
    commit: str
    verdict: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class CulpritFound:
    """Whose change turned `tip` red; the others in it wait until that is mended. `how` it was found."""

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
    """CI shall run again for `cause`. `how` is `rerun` (of `run`), `cancel` (of `run`, which begins again once it is
    over) or `empty_commit`."""

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
    """`found`: it was there already. `title` is the one it was given, or was to be given."""

    task: str
    attempt: int
    number: str
    url: str
    found: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class RequestChanged:
    """`what` is `ready`, `merged`, `closed`, `branch_gone` (somebody took its branch away), `rewritten` (its title and
    text tell of `commit`) or `branch_removed` (it is merged, and its branch, which stood at `commit`, is removed).
    `commit` is otherwise what the merge made of `tested`; `same`: with its very tree. `by` is `person` where Ganger had
    not asked for it."""

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
    """What Ganger says of the task below its change request. `url` is empty where the forge takes no comment; `mark`
    tells one text from the next."""

    task: str
    attempt: int
    number: str
    url: str
    mark: str


@dataclass(frozen=True, slots=True)
class ReviewAsked:
    """`of` is `person`, the name of a role, or `forge`: only people there can go on."""

    task: str
    attempt: int
    of: str
    commit: str


@dataclass(frozen=True, slots=True)
class Reviewed:
    """`verdict` is `approved` or `rework`, on `commit` and no other; `withdrawn`: nobody on the forge objects any more.
    `who` said so on the forge, at `url`, in the reviews of these names; both are empty where it was said here."""

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
    """D07, D40. A move the table does not have is refused, and kept as refused."""

    task: str
    attempt: int
    milestone: Milestone
    substate: str = ""


@dataclass(frozen=True, slots=True)
class ChainHalted:
    """D12: going on could do harm. Nothing starts or is pushed in this repository's chain until a person says so."""

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
    """A person took the locks of these tasks away (D09). `lifts`: and any halt or pause with them."""

    repo: str
    why: str
    tasks: tuple[str, ...] = ()
    lifts: bool = True

"""How a task's change leaves the machine: what a completion needs, the milestones, and the ledger of facts.

Every fact is about one commit. A fact about another one can not enter (D02).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ganger.core.model.ci import CiRules, RunFact

VERIFIED, COMMITTED, PUSHED, CI, MIRRORED = STEPS = ("verified", "committed", "pushed", "ci", "mirrored")


class Milestone(StrEnum):
    """What a running task is doing (D07)."""

    WORKING = "WORKING"
    PUSHED_TO_CI = "PUSHED_TO_CI"
    FIXING_CI = "FIXING_CI"
    DONE = "DONE"


MOVES: Mapping[Milestone, frozenset[Milestone]] = {
    Milestone.WORKING: frozenset({Milestone.PUSHED_TO_CI}),
    Milestone.PUSHED_TO_CI: frozenset({Milestone.FIXING_CI, Milestone.DONE}),
    Milestone.FIXING_CI: frozenset({Milestone.PUSHED_TO_CI}),
    Milestone.DONE: frozenset(),
}
# What the ledger says where a person took a delivery up again.
TAKEN_UP = "taken up again"
# Why a commit is pushed that no worker made: what is in the target by now is joined with what was tested.
UPDATE = "update"
# Who takes a change back.
BY_GANGER, BY_WORKER = "ganger", "worker"
# D40, in the order they are gone through. The last of them is the one before the next milestone.
SUBSTATES: Mapping[Milestone, tuple[str, ...]] = {
    Milestone.WORKING: ("analysing", "reading", "writing", "testing", "verifying", "preparing_commit"),
    Milestone.PUSHED_TO_CI: (
        *("push_complete", "ci_queued", "ci_running", "ci_finishing", "awaiting_merge", "landed", "awaiting_review"),
    ),
    Milestone.FIXING_CI: ("fetching_logs", "diagnosing", "implementing_fix", "verifying", "preparing_fix"),
    Milestone.DONE: (),
}


@dataclass(frozen=True, slots=True)
class RepoRules:
    """What holds for the tasks of one repository; the one without a name is the project itself.

    `locks` is `exclusive`, `shared`, or `none` where there is no graph. `style` is `branch` (what is merged goes to
    the remote's branch) or `request` (each task has a branch and a change request of its own). `pushes`: what is merged
    while CI is at work goes to the branch together afterwards (`train`), or one after the other (`each`). `review` is
    `person`, `agent` or empty; `review_when` is `before` or `after` the push. `interface` are globs of files from which
    nothing may be taken away. `history`: others' commits are taken in by a merge (`merge`), or what is not pushed yet
    is put on top of them (`rebase`). `base_red` says what happens where CI was red before the run: `stop` (it does not
    begin), `mend` (the first task fixes that too) or `ignore` (nobody is charged for what was wrong before).
    `expects_ci`: whether CI runs on what is pushed, `ci_paths_ignore` are globs of files that start no run of it.
    """

    name: str = ""
    depends_on: tuple[str, ...] = ()
    locks: str = "none"
    completion: tuple[str, ...] = (VERIFIED,)
    style: str = "branch"
    branch: str = ""
    forge: str = ""
    required_jobs: tuple[str, ...] = ()
    mirror_job: str = ""
    mirror_command: bool = False
    events: tuple[str, ...] = ("push",)
    fixes: int = 5
    ask_after: int = 3
    retriggers: int = 2
    appear_sec: float = 120.0
    ci_sec: float = 900.0
    ci_warn_sec: float = 600.0
    ci_most_sec: float = 21600.0
    fix_sec: float = 900.0
    fix_warn_sec: float = 0.0
    review: str = ""
    review_when: str = "after"
    reviewer: str = "reviewer"
    auto_merge: bool = False
    merge_method: str = ""
    updates: int = 5
    interface: tuple[str, ...] = ()
    pushes: str = "train"
    base_red: str = "stop"
    expects_ci: bool = True
    ci_paths_ignore: tuple[str, ...] = ()
    forge_reviews: bool = True
    delete_branch: bool = False
    history: str = "merge"

    @property
    def delivers(self) -> bool:
        return bool({PUSHED, CI, MIRRORED}.intersection(self.completion))

    @property
    def is_linear(self) -> bool:
        """Whether nothing that goes out may hold a merge."""
        return self.history == "rebase"

    @property
    def merges(self) -> bool:
        """Whether change requests are merged by Ganger itself."""
        return self.style == "request" and self.auto_merge

    @property
    def warns_of_fix_sec(self) -> float:
        """When an attempt to fix what CI found is warned of its time: two thirds of it, unless that is set."""
        return self.fix_warn_sec or self.fix_sec * 2 / 3

    @property
    def follows_ci(self) -> bool:
        return CI in self.completion or (MIRRORED in self.completion and not self.mirror_command)

    @property
    def ci_rules(self) -> CiRules:
        by_job = MIRRORED in self.completion and not self.mirror_command
        return CiRules(self.required_jobs, self.mirror_job if by_job else "", self.events)


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the ledger: when, from where, what."""

    at: str
    source: str
    what: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Retrigger:
    """CI is asked to run again, and it is not known yet whether that was done."""

    sha: str
    cause: str
    how: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class RequestRef:
    """A change request on the forge. `number` is empty until it is known to be there. `title` is the one it was given
    last, `shows` the commit its text tells of; `remark` is where Ganger's own comment is, `mark` which one it is.

    `onto` is the tip of the target that the tracked commit holds since it was brought up to date, `updates` how often
    that was done; `replaces` is where the branch must be for the tracked commit to take its place. `merging` is the
    commit that the forge was asked to merge (`how`). `merged` is what it made of `tested`; `same`: with its very tree.
    `settled`: CI has nothing more to say of what landed. `branch_removed`: its branch is gone from the remote. `alike`
    are earlier commits that differ from the tracked one by what the target had meanwhile, and by nothing else.
    """

    branch: str
    into: str
    number: str = ""
    url: str = ""
    draft: bool = False
    merged: str = ""
    title: str = ""
    shows: str = ""
    remark: str = ""
    mark: str = ""
    branch_removed: bool = False
    alike: tuple[str, ...] = ()
    onto: str = ""
    updates: int = 0
    replaces: str = ""
    merging: str = ""
    how: str = ""
    tested: str = ""
    same: bool = True
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Revert:
    """A person wants the change out of the branch. `how`: by commits of Ganger's own (`ganger`), or by its worker
    (`worker`). `at` is when it was chosen. `merged`: the run's branch holds what takes the change back."""

    question: str
    how: str
    at: str
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where one task's delivery stands. `commit` is what is tracked: on its way to the remote, or there (`pushed`).

    `pending`: merged and not judged, so whoever takes the task up again goes on here, and no worker is needed. `runs`
    are those of `commit` alone. `landed` are the commits that its change requests were merged as, one after the other.
    `green` and `mirrored` are the commits that was proved for. `retriggered` are the causes for which CI was asked to
    run again; `signatures` are of its failures, oldest first, `log` is of the last one. `review_of` is who was asked
    for the review, `review_url` where it was given on the forge; `heeded` are the reviews there that sent the change
    back.

    `merges` are the task's own commits in the run's branch, the newest last; `commit` is that one, or a later tip of
    the branch that was pushed with it inside. `onto` is what the branch was at before the push. `place` is when it was
    merged, compared with others. `waits_for` is the task that mends what CI found in that tip, where that is another.
    `waived` is the commit that needs no green verdict of CI, why, and the `waived_cause` (see `CiWaived`).
    `revert` is there while the change is being taken back; `gone` of the `merges` are out of the branch again, and
    `reverted` is the proved commit without them.
    """

    milestone: Milestone = Milestone.WORKING
    substate: str = ""
    since: str = ""
    repo: str = ""
    branch: str = ""
    commit: str = ""
    pending: bool = False
    tree: str = ""
    pushed: str = ""
    pushed_at: str = ""
    pushes: int = 0
    runs: tuple[RunFact, ...] = ()
    finding: str = ""
    why: str = ""
    passed: int = 0
    total: int = 0
    current: str = ""
    mirror: str = ""
    green: str = ""
    mirrored: str = ""
    fixes: int = 0
    signatures: tuple[str, ...] = ()
    log: str = ""
    retrigger: Retrigger | None = None
    retriggered: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    request: RequestRef | None = None
    landed: tuple[str, ...] = ()
    review: str = ""
    reviewed: str = ""
    review_of: str = ""
    review_url: str = ""
    heeded: tuple[str, ...] = ()
    upstream: tuple[tuple[str, str], ...] = ()
    facts: tuple[Fact, ...] = ()
    merges: tuple[str, ...] = ()
    place: int = 0
    waits_for: str = ""
    onto: str = ""
    waived: str = ""
    waived_why: str = ""
    waived_cause: str = ""
    revert: Revert | None = None
    gone: int = 0
    reverted: str = ""

    @property
    def standing(self) -> tuple[str, ...]:
        """Its commits that are in the branch and not taken back."""
        return self.merges[self.gone :]

    @property
    def prepares_revert(self) -> bool:
        """Whether the commits that take it back are still to be made and merged: what is tracked is the old change."""
        return self.revert is not None and self.revert.how == BY_GANGER and not self.revert.merged

    @property
    def needs_no_ci(self) -> bool:
        """CI has nothing more to say of what is tracked: it is green, or needs no green verdict."""
        return bool(self.commit) and self.commit in (self.green, self.waived)

    @property
    def own(self) -> str:
        """The newest commit that holds this task's change alone; of runs that began before it was kept, what is
        tracked."""
        return self.merges[-1] if self.merges else self.commit

    @property
    def fixing(self) -> bool:
        return self.milestone is Milestone.FIXING_CI


@dataclass(frozen=True, slots=True)
class RepoVerdict:
    """What CI said of one commit of a repository, and which commits it built on then: for tracing what broke it."""

    repo: str
    commit: str
    task: str
    green: bool
    at: str
    upstream: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """What CI said of what the target held without this run."""

    commit: str
    verdict: str
    why: str
    jobs: tuple[str, ...] = ()
    url: str = ""
    faults: tuple[str, ...] = ()


NO_RULES = RepoRules()
_FULL = (VERIFIED, COMMITTED, PUSHED, CI)


def completion_in(mode: str, completion: Sequence[str], forge: str) -> tuple[str, ...]:
    """Forge mode without a word on it means what its name says: pushed, and green where there is CI to follow."""
    if mode != "forge" or set(completion) != {VERIFIED}:
        return tuple(completion)
    return _FULL if forge else _FULL[:-1]


def style_in(mode: str, style: str, forge: str) -> str:
    """How changes leave the machine where the settings leave that open."""
    return style or ("request" if mode == "forge" and forge not in ("", "command") else "branch")


def may_move(before: Milestone, after: Milestone) -> bool:
    return after in MOVES[before]


def missing(rules: RepoRules, delivery: Delivery | None, *, verified: bool, committed: bool) -> tuple[str, ...]:
    """Which parts of the completion have no proof (D01); empty: the task may be DONE."""
    now = delivery or Delivery()
    proved = {
        VERIFIED: verified,
        COMMITTED: committed,
        PUSHED: bool(now.commit) and now.pushed == now.commit,
        CI: now.needs_no_ci,
        MIRRORED: bool(now.commit) and now.mirrored == now.commit,
    }
    return tuple(step for step in STEPS if step in rules.completion and not proved[step])

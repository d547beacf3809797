"""How a task's change leaves the machine: what a completion requires, the milestones, and the ledger of facts.

Every fact is about one commit. Facts about another commit are rejected (D02).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ganger.core.model.ci import CiRules, RunFact
from ganger.core.vocabulary import Mode, PushStyle

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
# What the ledger records when a person resumes a delivery.
TAKEN_UP = "taken up again"
# Why a commit is pushed that no worker made: it joins the current target with what was tested.
UPDATE = "update"
# Who reverts a change.
BY_GANGER, BY_WORKER = "ganger", "worker"
# D40, in order. The last one is the one before the next milestone.
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
    """The rules for the tasks of one repository; the one without a name is the project itself.

    `locks` is `exclusive`, `shared`, or `none` where there is no graph. `style` is `branch` (what is merged goes to
    the remote's branch) or `request` (each task has a branch and a change request of its own). `pushes`: what is merged
    while CI runs is pushed together afterwards (`train`), or one after the other (`each`). `review` is
    `person`, `agent` or empty; `review_when` is `before` or `after` the push. `interface` are globs of files from which
    nothing may be removed. `history`: others' commits are merged in (`merge`), or what is not pushed yet is
    rebased onto them (`rebase`). `base_red` says what happens if CI was red before the run: `stop` (the run does not
    start), `mend` (the first task fixes that too) or `ignore` (no task is charged for earlier faults).
    `expects_ci`: whether CI runs on what is pushed, `ci_paths_ignore` are globs of files that start no CI run.
    """

    name: str = ""
    depends_on: tuple[str, ...] = ()
    locks: str = "none"
    completion: tuple[str, ...] = (VERIFIED,)
    style: PushStyle = PushStyle.BRANCH
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
        """Whether nothing that is pushed may contain a merge."""
        return self.history == "rebase"

    @property
    def merges(self) -> bool:
        """Whether Ganger itself merges change requests."""
        return self.style is PushStyle.REQUEST and self.auto_merge

    @property
    def warns_of_fix_sec(self) -> float:
        """When an attempt to fix CI gets a time warning: after two thirds of its limit, unless that is set."""
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
    """A request to run CI again whose outcome is not known yet."""

    sha: str
    cause: str
    how: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class RequestRef:
    """A change request on the forge. `number` is empty until it is known to exist. `title` is the last given one,
    `shows` the commit its text describes; `remark` is where Ganger's own comment is, `mark` identifies it.

    `onto` is the tip of the target that the tracked commit contains since its last update, `updates` the number of
    updates; `replaces` is where the branch must be for the tracked commit to replace it. `merging` is the commit that
    the forge was requested to merge (`how`). `merged` is what it made of `tested`; `same`: with the same tree.
    `settled`: no more CI verdict is expected for what landed. `branch_removed`: its branch is gone from the remote.
    `alike` are earlier commits that differ from the tracked one only by what the target had gained meanwhile.
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
    """A person wants the change reverted. `how`: by Ganger's own commits (`ganger`), or by its worker (`worker`). `at`
    is when it was chosen. `merged`: the run's branch contains the revert."""

    question: str
    how: str
    at: str
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state of one task's delivery. `commit` is what is tracked: on its way to the remote, or there (`pushed`).

    `pending`: merged and not judged, so the next attempt continues here without a worker. `runs` are those of `commit`
    alone. `landed` are the commits that its change requests were merged as, in order. `green` and `mirrored` are the
    commits for which that is proved. `retriggered` are the causes for which CI was run again; `signatures` are those
    of its failures, oldest first, `log` is that of the last one. `review_of` is who was asked for the review,
    `review_url` where it was given on the forge; `heeded` are the reviews there that sent the change back.

    `merges` are the task's own commits in the run's branch, the newest last; `commit` is that one, or a later tip of
    the branch that was pushed and contains it. `onto` is where the branch was before the push. `place` is its position
    in the order of merges. `waits_for` is another task that fixes what CI found in that tip. `waived` is the commit
    that does not need green CI, with the reason and the `waived_cause` (see `CiWaived`). `revert` is set while the
    change is being reverted; `gone` is how many of the `merges` are reverted, `reverted` the proved commit without
    them.
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
        """Its commits that are in the branch and not reverted."""
        return self.merges[self.gone :]

    @property
    def prepares_revert(self) -> bool:
        """Whether the reverting commits are not made and merged yet: what is tracked is the old change."""
        return self.revert is not None and self.revert.how == BY_GANGER and not self.revert.merged

    @property
    def needs_no_ci(self) -> bool:
        """No more CI verdict is needed for what is tracked: it is green, or does not need to be."""
        return bool(self.commit) and self.commit in (self.green, self.waived)

    @property
    def own(self) -> str:
        """The newest commit with only this task's change; for runs older than this record, what is tracked."""
        return self.merges[-1] if self.merges else self.commit

    @property
    def fixing(self) -> bool:
        return self.milestone is Milestone.FIXING_CI


@dataclass(frozen=True, slots=True)
class RepoVerdict:
    """CI's verdict on one commit of a repository, and the commits it built on: for tracing what broke it."""

    repo: str
    commit: str
    task: str
    green: bool
    at: str
    upstream: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """CI's verdict on the target without this run."""

    commit: str
    verdict: str
    why: str
    jobs: tuple[str, ...] = ()
    url: str = ""
    faults: tuple[str, ...] = ()


NO_RULES = RepoRules()
_FULL = (VERIFIED, COMMITTED, PUSHED, CI)


def completion_in(mode: str, completion: Sequence[str], forge: str) -> tuple[str, ...]:
    """By default, forge mode means pushed, and green if there is CI to follow."""
    if mode != Mode.FORGE or set(completion) != {VERIFIED}:
        return tuple(completion)
    return _FULL if forge else _FULL[:-1]


def style_in(mode: str, style: str, forge: str) -> PushStyle:
    """How changes leave the machine if the settings do not say."""
    if style:
        return PushStyle(style)
    requests = mode == Mode.FORGE and forge not in ("", "command")
    return PushStyle.REQUEST if requests else PushStyle.BRANCH


def may_move(before: Milestone, after: Milestone) -> bool:
    return after in MOVES[before]


def missing(rules: RepoRules, delivery: Delivery | None, *, verified: bool, committed: bool) -> tuple[str, ...]:
    """The parts of the completion without proof (D01); empty: the task may be DONE."""
    now = delivery or Delivery()
    proved = {
        VERIFIED: verified,
        COMMITTED: committed,
        PUSHED: bool(now.commit) and now.pushed == now.commit,
        CI: now.needs_no_ci,
        MIRRORED: bool(now.commit) and now.mirrored == now.commit,
    }
    return tuple(step for step in STEPS if step in rules.completion and not proved[step])

"""What must hold of every delivery and every lock, told by the events alone: one commit, proved step by step.

An account of its own, so that a mistake in `delivery_changes` does not excuse itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ganger.core import events as ev
from ganger.core.delivery.shared_pushes import is_free
from ganger.core.model.ci import RunFact, Word
from ganger.core.model.ledger import MIRRORED, MOVES, NO_RULES, UPDATE, Milestone, RepoRules
from ganger.core.model.run_state import RunState
from ganger.core.planning.repos import graph_of
from ganger.core.vocabulary import TaskStatus

M = Milestone
# Rule and what is wrong.
Wrong = tuple[str, str]


@dataclass(slots=True)
class _Ledger:
    """One task's delivery as its events tell it. `finding` and `runs` are of `pushed` alone."""

    milestone: Milestone = M.WORKING
    merged: bool = False
    at: str = ""
    merges: list[str] = field(default_factory=list)
    is_done: bool = False
    intended: str = ""
    branch: str = ""
    pushed: str = ""
    finding: str = ""
    runs: tuple[RunFact, ...] = ()
    verdict: str = ""
    green: str = ""
    waived: str = ""
    mirrored: str = ""
    causes: list[str] = field(default_factory=list)
    fixes: int = 0
    asked: str = ""
    request: str = ""
    request_is_merged: bool = False
    remark: str = ""
    request_is_over: bool = False


class LedgerWalk:
    """Takes one event after the other and says what may not be."""

    def __init__(self) -> None:
        self.rules: dict[str, RepoRules] = {}
        self.repos: dict[str, str] = {}
        self.ledgers: dict[str, _Ledger] = {}
        self.sent: set[tuple[str, str, str]] = set()
        self.holders: dict[str, str] = {}
        self.live: set[str] = set()
        self.halted: set[str] = set()
        self.reverting: dict[str, str] = {}
        self.person_acted = False
        self._most: dict[str, tuple[int, int]] = {}
        self.red: dict[str, str] = {}
        self.moves: dict[str, ev.SetBackIntended] = {}
        self.rebases: dict[str, ev.RebaseIntended] = {}

    def take(self, event: ev.Event) -> Iterator[Wrong]:
        rule = _RULES.get(type(event))
        if rule is not None:
            yield from rule(self, event)

    def at_end(self, state: RunState) -> list[str]:
        """Own account against the state."""
        held = {(name, repo) for repo, names in state.index.locks.items() for name in names}
        wrong = [f"locks: {name} holds {repo or 'the project'} by its events, and not in the state"
                 for name, repo in sorted(self.holders.items() - held)]  # fmt: skip
        wrong += [f"locks: {name} holds {repo or 'the project'} in the state, and not by its events"
                  for name, repo in sorted(held - self.holders.items())]  # fmt: skip
        for name, task in state.tasks.items():
            now, own = task.delivery, self.ledgers.get(name, _Ledger())
            if now is not None and (now.pushed, now.green, now.mirrored) != (own.pushed, own.green, own.mirrored):
                wrong.append(f"account: what was pushed, green and mirrored of {name} differs from its events")
            if now is not None and now.milestone is not own.milestone:
                wrong.append(f"account: {name} is {own.milestone} by its events and {now.milestone} in the state")
        return wrong

    def of(self, task: str) -> _Ledger:
        return self.ledgers.setdefault(task, _Ledger())

    def rules_of(self, task: str) -> RepoRules:
        return self.rules.get(self.repos.get(task, ""), NO_RULES)

    # --- the run ----------------------------------------------------------------------------------------------------

    def run_started(self, event: ev.RunStarted) -> Iterator[Wrong]:
        self.repos = {spec.id: spec.repo for spec in event.tasks}
        yield from ()

    def lead_started(self, event: ev.LeadStarted) -> Iterator[Wrong]:
        """A later, narrower rule does not forbid what an earlier one allowed."""
        rules = {one.name: one for one in event.repos}
        self.person_acted = self.person_acted or bool(self.rules and rules != self.rules)
        self.rules = rules
        for name, one in rules.items():
            retriggers, fixes = self._most.get(name, (0, 0))
            self._most[name] = (max(retriggers, one.retriggers), max(fixes, one.fixes))
        yield from ()

    def reconciled(self, event: ev.Reconciled) -> Iterator[Wrong]:
        self.person_acted = True
        self.repos = {spec.id: spec.repo for spec in event.tasks}
        for name in {*event.added, *event.changed, *event.removed}:
            self.ledgers.pop(name, None)
            self.holders.pop(name, None)
        yield from ()

    # --- locks and halts --------------------------------------------------------------------------------------------

    def attempt_started(self, event: ev.AttemptStarted) -> Iterator[Wrong]:
        task, rules = event.task, self.rules_of(event.task)
        self.live.add(task)
        self.of(task).is_done = False
        if not event.delivers:
            self.of(task).at = ""
        if not event.delivers:
            yield from self._halts(task, "it starts")
            yield from self._in_its_way(task, rules)
        if rules.locks == "none":
            self.holders.pop(task, None)
        else:
            self.holders[task] = self.repos[task]

    def _chain(self, task: str) -> set[str]:
        repo = self.repos.get(task, "")
        return {repo, *graph_of(self.rules).chain(repo)}

    def _halts(self, task: str, what: str) -> Iterator[Wrong]:
        halted = sorted(self._chain(task) & self.halted)
        if halted:
            yield "halts", f"{what} although {halted[0] or 'the project'} is halted"

    def _in_its_way(self, task: str, rules: RepoRules) -> Iterator[Wrong]:
        """Only what a person did can leave a lock behind that gives way; one that is at work never does."""
        if rules.locks == "none":
            return
        closed = self._chain(task) - ({self.repos[task]} if rules.locks == "shared" else set())
        for other, repo in self.holders.items():
            if other != task and repo in closed and (other in self.live or not self.person_acted):
                yield "locks", f"{other} holds {repo or 'the project'}"

    def halt(self, event: ev.ChainHalted) -> Iterator[Wrong]:
        self.halted.add(event.repo)
        yield from ()

    def revert_chosen(self, event: ev.RevertChosen) -> Iterator[Wrong]:
        """A person did, and that passes a halt of its own repository."""
        self.person_acted = True
        self.reverting[event.task] = event.how
        yield from ()

    def revert_failed(self, event: ev.RevertFailed) -> Iterator[Wrong]:
        self.reverting.pop(event.task, None)
        yield from ()

    def reverted(self, event: ev.Reverted) -> Iterator[Wrong]:
        """Proved like what is DONE, by CI of exactly that commit."""
        now = self.of(event.task)
        if self.reverting.pop(event.task, None) is None:
            yield "reverts", "nobody had chosen that"
        if event.commit != now.pushed:
            yield "reverts", f"{event.commit[:12]} is not what was pushed ({now.pushed[:12] or 'nothing'})"
        if "ci" in self.rules_of(event.task).completion and event.commit not in (now.green, now.waived):
            yield "reverts", f"CI is not green for {event.commit[:12]}"

    def unlocked(self, event: ev.RepoUnlocked) -> Iterator[Wrong]:
        self.person_acted = True
        for name in event.tasks:
            self.holders.pop(name, None)
        if event.lifts:
            self.halted.discard(event.repo)
        yield from ()

    # --- the push ---------------------------------------------------------------------------------------------------

    def merged(self, event: ev.Merged) -> Iterator[Wrong]:
        """A mend of CI that changed nothing leaves what is tracked, and what was tried."""
        now = self.of(event.task)
        now.merged, now.at = True, event.commit or event.head
        now.merges += [event.commit] if event.commit else []
        if event.commit or now.milestone is not M.FIXING_CI:
            now.causes, now.verdict = [], ""
        yield from ()

    def push_intended(self, event: ev.PushIntended) -> Iterator[Wrong]:
        now = self.of(event.task)
        if not now.merged:
            yield "pushes", "nothing of it was merged"
        if self.reverting.get(event.task) is None or self._chain(event.task) & self.halted != {event.repo}:
            yield from self._halts(event.task, "it is to be pushed")
        if event.cause not in ("change", UPDATE):
            yield from self._cause(event.task, event.cause)
        if event.commit != now.intended:
            now.finding, now.runs = "", ()
        now.intended, now.branch = event.commit, event.branch

    def pushed(self, event: ev.Pushed) -> Iterator[Wrong]:
        now, key = self.of(event.task), (self.repos.get(event.task, ""), event.branch, event.commit)
        if (event.commit, event.branch) != (now.intended, now.branch):
            yield "pushes", f"{event.commit[:12]} was pushed to {event.branch} without a recorded intent"
        if event.how == "pushed":
            if key in self.sent:
                yield "pushes", f"{event.commit[:12]} was pushed to {event.branch} before"
            self.sent.add(key)
        now.pushed = event.commit
        yield from self._move(now, M.PUSHED_TO_CI)

    def push_lost(self, event: ev.PushLost) -> Iterator[Wrong]:
        """Whoever pushed it may push it again, as someone took it out."""
        now = self.of(event.task)
        if event.commit != now.pushed:
            yield "pushes", f"{event.commit[:12]} is lost, and {now.pushed[:12] or 'nothing'} was pushed"
        self.sent.discard((self.repos.get(event.task, ""), now.branch, event.commit))
        now.pushed = ""

    def removal_decided(self, event: ev.RemovalDecided) -> Iterator[Wrong]:
        if event.what == "put_back":
            self.sent = {key for key in self.sent if key[0] != event.repo}
        yield from ()

    def rebase_intended(self, event: ev.RebaseIntended) -> Iterator[Wrong]:
        self.rebases[event.repo] = event
        yield from ()

    def set_back_intended(self, event: ev.SetBackIntended) -> Iterator[Wrong]:
        self.moves[event.repo] = event
        for name in event.left:
            if name in self.live or self.of(name).is_done:
                yield "pushes", f"{name} is to be left out while it is at work, or DONE"

    def head_moved(self, event: ev.HeadMoved) -> Iterator[Wrong]:
        """What was pushed with a commit that is not in the branch any more counts for nothing."""
        rebase, move = self.rebases.get(event.repo), self.moves.get(event.repo)
        if rebase is not None and (rebase.head, rebase.tip) == (event.before, event.head):
            places = dict(rebase.commits)
            for name, now in self.ledgers.items():
                if self.repos.get(name, "") == event.repo:
                    now.merges = [places.get(one, one) for one in now.merges]
        if move is None or (move.head, move.tip) != (event.before, event.head):
            return
        for name, now in self.ledgers.items():
            is_out = name in move.left or (now.at in move.gone and not now.is_done)
            if is_out and self.repos.get(name, "") == event.repo:
                now.pushed = now.at = ""
            if self.repos.get(name, "") == event.repo:
                now.merges = [one for one in now.merges if one not in move.gone]
            if name in move.left and now.merges:
                # What nobody removed of it is on the remote as before.
                now.intended = now.pushed = now.merges[-1]
        yield from ()

    # --- CI ---------------------------------------------------------------------------------------------------------

    def _tracked(self, now: _Ledger, sha: str) -> Iterator[Wrong]:
        if not sha or sha != now.pushed or sha != now.intended:
            known = now.pushed[:12] if now.pushed == now.intended else f"{now.intended[:12]}, not yet pushed,"
            yield "verdicts", f"it is about {sha[:12] or 'no commit'}; {known or 'nothing'} is what counts"

    def ci_seen(self, event: ev.CiSeen) -> Iterator[Wrong]:
        now = self.of(event.task)
        yield from self._tracked(now, event.sha)
        other = [run.id for run in event.runs if run.sha != event.sha]
        if other:
            yield "verdicts", f"run {other[0]} is of another commit"
        if event.finding == "green":
            yield from _not_green(self.rules_of(event.task), event.runs)
        now.finding, now.runs = event.finding, event.runs

    def ci_judged(self, event: ev.CiJudged) -> Iterator[Wrong]:
        now = self.of(event.task)
        yield from self._tracked(now, event.sha)
        now.verdict = event.verdict
        if event.verdict == "green":
            if now.finding != "green":
                yield "verdicts", f"green, although CI was seen as {now.finding or 'nothing'}"
            now.green = event.sha
            return
        yield from self._move(now, M.FIXING_CI)

    def waived(self, event: ev.CiWaived) -> Iterator[Wrong]:
        """Only of what was red before the run, or of what no run came for."""
        now = self.of(event.task)
        yield from self._tracked(now, event.sha)
        repo = self.repos.get(event.task, "")
        if event.cause == "base_red" and not (now.finding == "red" and event.base and self.red.get(repo) == event.base):
            yield "verdicts", f"it is said to be as red as {event.base[:12] or 'nothing'}, of which CI did not say so"
        if event.cause == "not_expected" and (now.finding != "absent" or now.runs):
            yield "verdicts", f"CI is waived although it was seen as {now.finding or 'nothing'}"
        now.waived = event.sha

    def target_judged(self, event: ev.TargetJudged) -> Iterator[Wrong]:
        if event.verdict == "red":
            self.red[event.repo] = event.commit
        yield from ()

    def mirror_proved(self, event: ev.MirrorProved) -> Iterator[Wrong]:
        now, rules = self.of(event.task), self.rules_of(event.task)
        yield from self._tracked(now, event.sha)
        if not rules.mirror_command and not _succeeded(event.how, now.runs):
            yield "verdicts", f"mirrored, although no run of it shows that {event.how} succeeded"
        now.mirrored = event.sha

    def retrigger_intended(self, event: ev.RetriggerIntended) -> Iterator[Wrong]:
        now = self.of(event.task)
        yield from self._tracked(now, event.sha)
        if is_free(event.cause):
            return
        if now.verdict == "red":
            yield "retriggers", "CI is red: a mend is needed, and no other run"
        if event.cause.startswith("mirror") and now.finding != "mirror":
            yield "retriggers", f"the mirror shall run again although CI is {now.finding or 'unknown'}"
        if event.cause in now.causes:
            yield "retriggers", f"CI was run again for {event.cause} before"

    def retriggered(self, event: ev.Retriggered) -> Iterator[Wrong]:
        now = self.of(event.task)
        yield from self._tracked(now, event.sha)
        if event.how == "rerun" or event.cause not in now.causes:
            yield from self._cause(event.task, event.cause)
        now.finding, now.runs = "", ()
        yield from self._move(now, M.PUSHED_TO_CI)

    def _cause(self, task: str, cause: str) -> Iterator[Wrong]:
        now, most = self.of(task), self._most.get(self.repos.get(task, ""), (0, 0))[0]
        if cause in now.causes:
            yield "retriggers", f"CI was run again for {cause} before"
        now.causes.append(cause)
        count = sum(not is_free(one) for one in now.causes)
        if count > most:
            yield "retriggers", f"CI was run again {count} times, {most} are allowed"

    # --- change requests, milestones, ends ---------------------------------------------------------------------------

    def request_intended(self, event: ev.RequestIntended) -> Iterator[Wrong]:
        now = self.of(event.task)
        now.asked = event.branch
        if now.request and not now.request_is_over:
            yield "requests", f"there is #{now.request} already"
        now.request, now.remark = "", ""
        now.request_is_over = now.request_is_merged = False

    def request_opened(self, event: ev.RequestOpened) -> Iterator[Wrong]:
        now = self.of(event.task)
        if not now.asked:
            yield "requests", f"#{event.number} was opened without a recorded intent"
        if now.request and now.request != event.number:
            yield "requests", f"#{event.number} was opened although there is #{now.request}"
        now.request = event.number

    def request_changed(self, event: ev.RequestChanged) -> Iterator[Wrong]:
        now = self.of(event.task)
        if now.request != event.number:
            yield "requests", f"#{event.number} is not the change request of this task ({now.request or 'none'})"
        if event.what == "branch_removed" and not now.request_is_merged:
            yield "requests", f"the branch of #{event.number} was removed, and it is not merged"
        now.request_is_merged = now.request_is_merged or event.what == "merged"
        if event.what == "branch_gone":
            self.sent.discard((self.repos.get(event.task, ""), now.branch, now.intended))
            now.pushed = ""
        now.request_is_over = now.request_is_over or event.what in ("merged", "closed")
        if event.what != "merged" or event.by:
            return
        if self.rules_of(event.task).follows_ci and now.pushed not in (now.green, now.waived):
            yield "requests", "merged although its commit is not green"
        if event.tested and event.tested != now.pushed:
            yield "requests", f"merged at {event.tested[:12]}, which is not what was tested"

    def merge_intended(self, event: ev.MergeIntended) -> Iterator[Wrong]:
        now = self.of(event.task)
        if event.commit != now.pushed or (
            self.rules_of(event.task).follows_ci and event.commit not in (now.green, now.waived)
        ):
            yield "requests", f"{event.commit[:12]} is to be merged, and CI did not say green of it"

    def tracking_moved(self, event: ev.TrackingMoved) -> Iterator[Wrong]:
        """The forge made it of what was tested."""
        now = self.of(event.task)
        if event.of != now.pushed:
            yield "pushes", f"{event.commit[:12]} was made of {event.of[:12]}, which is not what was tested"
        now.intended = now.pushed = event.commit
        now.branch, now.finding, now.runs = event.branch, "", ()
        yield from self._move(now, M.PUSHED_TO_CI)

    def remarked(self, event: ev.Remarked) -> Iterator[Wrong]:
        now = self.of(event.task)
        if now.request != event.number:
            yield "requests", f"#{event.number} is not the change request of this task ({now.request or 'none'})"
        if now.remark not in ("", event.url) and event.url:
            yield "requests", f"a second comment was written: {event.url} beside {now.remark}"
        now.remark = event.url or now.remark

    def reviewed(self, event: ev.Reviewed) -> Iterator[Wrong]:
        now = self.of(event.task)
        if event.verdict == "rework" and now.milestone is M.PUSHED_TO_CI:
            yield from self._move(now, M.FIXING_CI)

    def reached(self, event: ev.MilestoneReached) -> Iterator[Wrong]:
        yield from self._move(self.of(event.task), event.milestone)

    def _move(self, now: _Ledger, to: Milestone) -> Iterator[Wrong]:
        if to is not now.milestone and to not in MOVES[now.milestone]:
            yield "milestones", f"{now.milestone.value} does not lead to {to.value}"
        now.milestone = to

    def attempt_failed(self, event: ev.AttemptFailed) -> Iterator[Wrong]:
        if event.counter != "ci_fixes":
            return
        now, most = self.of(event.task), self._most.get(self.repos.get(event.task, ""), (0, 0))[1]
        now.fixes += 1
        if now.verdict != "red":
            yield "fixes", f"CI is to be mended although it is {now.verdict or 'not judged'}"
        if now.fixes > most:
            yield "fixes", f"{now.fixes} attempts to mend CI, {most} are allowed"

    def over(self, event: ev.AttemptInterrupted | ev.AttemptCheckpointed) -> Iterator[Wrong]:
        self.live.discard(event.task)
        yield from ()

    def requeued(self, event: ev.TaskRequeued) -> Iterator[Wrong]:
        self.live.discard(event.task)
        now = self.of(event.task)
        now.is_done = False
        if event.by_person:
            self.person_acted, now.fixes = True, 0
            # Whatever CI was run again for, a person looked into it, and may have run it again on the forge.
            now.causes = []
        if now.milestone is M.DONE:
            now.milestone = M.WORKING
        yield from ()

    def settled(self, event: ev.TaskSettled) -> Iterator[Wrong]:
        self.live.discard(event.task)
        self.of(event.task).is_done = event.status is TaskStatus.DONE
        if event.status is not TaskStatus.DONE:
            return
        self.holders.pop(event.task, None)
        rules, now = self.rules_of(event.task), self.of(event.task)
        if rules.delivers:
            lacking = _lacking(rules, now)
            if lacking:
                yield "proof", f"DONE, and {now.intended[:12] or 'no commit'} was not {', '.join(lacking)}"
            yield from self._move(now, M.DONE)


def _lacking(rules: RepoRules, now: _Ledger) -> list[str]:
    sha = now.intended
    return [
        what
        for what, known in (
            ("pushed", bool(sha) and now.pushed == sha),
            ("green", sha in (now.green, now.waived) or not rules.follows_ci),
            ("mirrored", now.mirrored == sha or MIRRORED not in rules.completion),
        )
        if not known
    ]


def _not_green(rules: RepoRules, runs: tuple[RunFact, ...]) -> Iterator[Wrong]:
    if not runs:
        yield "verdicts", "green without any run"
    for name in rules.required_jobs:
        if not _succeeded(name, runs):
            yield "verdicts", f"green, and no run shows that {name} succeeded"


def _succeeded(name: str, runs: tuple[RunFact, ...]) -> bool:
    found = [job for run in runs for job in run.jobs if name in (job.name, f"{run.workflow}/{job.name}")]
    return any(job.word is Word.SUCCESS for job in found)


_RULES: dict[type[ev.Event], Callable[[LedgerWalk, Any], Iterator[Wrong]]] = {
    ev.RunStarted: LedgerWalk.run_started,
    ev.LeadStarted: LedgerWalk.lead_started,
    ev.Reconciled: LedgerWalk.reconciled,
    ev.AttemptStarted: LedgerWalk.attempt_started,
    ev.ChainHalted: LedgerWalk.halt,
    ev.RepoUnlocked: LedgerWalk.unlocked,
    ev.RevertChosen: LedgerWalk.revert_chosen,
    ev.RevertFailed: LedgerWalk.revert_failed,
    ev.Reverted: LedgerWalk.reverted,
    ev.Merged: LedgerWalk.merged,
    ev.PushIntended: LedgerWalk.push_intended,
    ev.Pushed: LedgerWalk.pushed,
    ev.PushLost: LedgerWalk.push_lost,
    ev.RemovalDecided: LedgerWalk.removal_decided,
    ev.RebaseIntended: LedgerWalk.rebase_intended,
    ev.SetBackIntended: LedgerWalk.set_back_intended,
    ev.HeadMoved: LedgerWalk.head_moved,
    ev.CiSeen: LedgerWalk.ci_seen,
    ev.CiJudged: LedgerWalk.ci_judged,
    ev.CiWaived: LedgerWalk.waived,
    ev.TargetJudged: LedgerWalk.target_judged,
    ev.MirrorProved: LedgerWalk.mirror_proved,
    ev.RetriggerIntended: LedgerWalk.retrigger_intended,
    ev.Retriggered: LedgerWalk.retriggered,
    ev.RequestIntended: LedgerWalk.request_intended,
    ev.RequestOpened: LedgerWalk.request_opened,
    ev.RequestChanged: LedgerWalk.request_changed,
    ev.Remarked: LedgerWalk.remarked,
    ev.MergeIntended: LedgerWalk.merge_intended,
    ev.TrackingMoved: LedgerWalk.tracking_moved,
    ev.Reviewed: LedgerWalk.reviewed,
    ev.MilestoneReached: LedgerWalk.reached,
    ev.AttemptFailed: LedgerWalk.attempt_failed,
    ev.AttemptInterrupted: LedgerWalk.over,
    ev.AttemptCheckpointed: LedgerWalk.over,
    ev.TaskRequeued: LedgerWalk.requeued,
    ev.TaskSettled: LedgerWalk.settled,
}

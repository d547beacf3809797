"""How events change a task's ledger, and which of them are rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.events import requests as rq
from ganger.core.model.ci import is_sha, mark
from ganger.core.model.ledger import (
    NO_RULES,
    TAKEN_UP,
    UPDATE,
    Delivery,
    Fact,
    Milestone,
    RepoRules,
    RepoVerdict,
    RequestRef,
    Retrigger,
    TargetVerdict,
    may_move,
    missing,
)
from ganger.core.model.records import Rebase
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.state.apply_removals import forget_undecided, keep_theirs, set_back
from ganger.core.state.reducers import applied_in, applies
from ganger.core.vocabulary import PushStyle

_MOST_FACTS = 200


def rules_of(state: RunState, name: str) -> RepoRules:
    return state.chains.rules.get(state.specs[name].repo, NO_RULES)


def not_proved(state: RunState, name: str, task: TaskState) -> tuple[str, ...]:
    """What is missing for the task's completion."""
    verified = task.verification.passed_attempt is not None and task.verification.passed_attempt == task.attempts
    return missing(rules_of(state, name), task.delivery, verified=verified, committed=bool(task.work.merged))


def begun(state: RunState, name: str, task: TaskState, commit: str, at: str) -> TaskState:
    """Its change is merged as `commit`, and is delivered if the completion requires that. A fix of CI that changed
    nothing (no `commit`) leaves what is tracked."""
    rules = rules_of(state, name)
    if not rules.delivers:
        return task
    old = task.delivery or Delivery(repo=rules.name, since=at)
    if not commit:
        return replace(task, work=replace(task.work, in_merge_queue=False), delivery=replace(old, pending=True))
    state.branches.merges += 1
    now = replace(
        _with_new_updates(_of_new_commit(old)),
        commit=commit,
        pending=True,
        branch="",
        retriggered=(),
        review="",
        reviewed="",
        merges=(*old.merges, commit),
        place=state.branches.merges,
        reverted="",
    )
    if now.revert is not None:
        now = replace(now, revert=replace(now.revert, merged=True), gone=len(now.merges))
    if now.request is not None:
        now = replace(now, request=replace(now.request, alike=()))
    return replace(
        task, work=replace(task.work, in_merge_queue=False), delivery=_with(now, at, "merge", "merged", commit)
    )


def _of_new_commit(delivery: Delivery) -> Delivery:
    """No verdict on another commit holds for the next one."""
    return replace(
        delivery,
        tree="",
        runs=(),
        finding="",
        why="",
        passed=0,
        total=0,
        current="",
        mirror="",
        retrigger=None,
        stale=(),
        waits_for="",
    )


def _with_new_updates(delivery: Delivery) -> Delivery:
    """Its change request may be updated as often as a new one."""
    known = delivery.request
    return delivery if known is None else replace(delivery, request=replace(known, updates=0, merging="", replaces=""))


def taken_up(delivery: Delivery, at: str) -> Delivery:
    """A person wants it to continue: what was tried before may be tried again, and its time starts again."""
    delivery = _with_new_updates(delivery)
    since = at if delivery.pushed_at else ""
    return _with(replace(delivery, retriggered=(), pushed_at=since), at, "person", TAKEN_UP, delivery.commit)


def _with(delivery: Delivery, at: str, source: str, what: str, commit: str = "") -> Delivery:
    return replace(delivery, facts=(*delivery.facts, Fact(at, source, what, commit))[-_MOST_FACTS:])


def _moved(delivery: Delivery, milestone: Milestone, substate: str, at: str) -> Delivery:
    since = at if delivery.milestone is not milestone else delivery.since
    return replace(delivery, milestone=milestone, substate=substate, since=since)


@applies(ev.PushIntended)
def _push_intended(state: RunState, name: str, task: TaskState, event: ev.PushIntended, at: str) -> TaskState:
    old = task.delivery or Delivery(repo=event.repo, since=at)
    now = old if old.commit == event.commit and not old.runs else _of_new_commit(old)
    now = replace(now, commit=event.commit, tree=event.tree, branch=event.branch, upstream=event.upstream, pending=True)
    now = replace(now, onto=event.onto or now.onto)
    if rules_of(state, name).style == "branch":
        keep_theirs(state, event.repo, event.onto)
    if event.replaces and now.request is not None:
        now = replace(now, request=replace(now.request, replaces=event.replaces))
    pushes = f"to be pushed to {event.branch}" + ("" if event.cause == "change" else f" ({event.cause})")
    pushes += f", including {event.own[:12]}" if event.own not in ("", event.commit) else ""
    if event.cause not in ("change", UPDATE):
        now = replace(now, retriggered=(*now.retriggered, event.cause))
    return replace(task, delivery=_with(now, at, "ganger", pushes, event.commit))


@applies(ev.Pushed)
def _pushed(state: RunState, name: str, task: TaskState, event: ev.Pushed, at: str) -> TaskState:
    old = task.delivery or Delivery()
    rules = rules_of(state, name)
    if rules.style is PushStyle.BRANCH and event.branch == rules.branch and event.how != "together":
        # A task that goes with another's push may track a tip that is not the newest.
        state.pushes.tips[rules.name] = event.commit
        forget_undecided(state, rules.name)
    now = replace(old, pushed=event.commit, pushed_at=at, pushes=old.pushes + (event.how == "pushed"))
    now = _moved(now, Milestone.PUSHED_TO_CI, "push_complete", at)
    if now.request is not None and event.branch == now.request.branch:
        now = replace(now, request=replace(now.request, replaces="", tested=""))
    return replace(task, delivery=_with(now, at, "remote", f"{event.how} on {event.branch}", event.commit))


@applies(ev.PushRefused)
def _push_refused(_s: RunState, _n: str, task: TaskState, event: ev.PushRefused, at: str) -> TaskState:
    return noted(task, at, "remote", f"push refused: {event.why}", event.commit)


@applies(ev.PushLost)
def _push_lost(_s: RunState, _n: str, task: TaskState, event: ev.PushLost, at: str) -> TaskState:
    old = task.delivery or Delivery()
    now = replace(_of_new_commit(old), commit=old.own, pushed="", branch="", pending=True)
    return replace(task, delivery=_with(now, at, "remote", "no longer in the branch", event.commit))


def noted(task: TaskState, at: str, source: str, what: str, commit: str = "") -> TaskState:
    return replace(task, delivery=_with(task.delivery or Delivery(), at, source, what, commit))


_STAGES = {"absent": "push_complete", "waiting": "ci_queued", "running": "ci_running"}


@applies(ev.CiSeen)
def _ci_seen(_s: RunState, _n: str, task: TaskState, event: ev.CiSeen, at: str) -> TaskState:
    old = task.delivery or Delivery()
    now = replace(
        old,
        runs=event.runs,
        finding=event.finding,
        why=event.why,
        passed=event.passed,
        total=event.total,
        current=event.current,
        mirror=event.mirror,
        substate=_STAGES.get(event.finding, "ci_finishing"),
        stale=tuple(one for one in old.stale if not any(one.startswith(f"{run.id}:") for run in event.runs)),
    )
    if (event.finding, event.passed) != (old.finding, old.passed):
        jobs = f", {event.passed} of {event.total} jobs passed" if event.total else ""
        now = _with(now, at, event.source, f"CI is {event.finding}{jobs}: {event.why}", event.sha)
    return replace(task, delivery=now)


@applies(ev.CiJudged)
def _ci_judged(state: RunState, name: str, task: TaskState, event: ev.CiJudged, at: str) -> TaskState:
    old = task.delivery or Delivery()
    green = event.verdict == "green"
    state.pushes.verdicts.append(RepoVerdict(old.repo, event.sha, name, green, at, old.upstream))
    now = _with(old, at, event.source, f"CI verdict {event.verdict}: {event.why}", event.sha)
    if green:
        state.pushes.proved[old.repo] = event.sha
        return replace(task, delivery=replace(now, green=event.sha, substate="ci_finishing", waits_for=""))
    now = replace(now, pending=False, signatures=(*now.signatures, event.signature), log=event.log)
    return replace(task, delivery=_moved(now, Milestone.FIXING_CI, "diagnosing", at))


@applies(ev.CiWaived)
def _ci_waived(state: RunState, _n: str, task: TaskState, event: ev.CiWaived, at: str) -> TaskState:
    task = noted(task, at, "ganger", f"green CI is not needed ({event.cause}): {event.why}", event.sha)
    now = task.delivery
    assert now is not None
    state.pushes.proved[now.repo] = event.sha
    now = replace(now, waived=event.sha, waived_why=event.why, waived_cause=event.cause)
    now = replace(now, substate="ci_finishing", waits_for="")
    return replace(task, delivery=now)


@applies(ev.MirrorProved)
def _mirror_proved(_s: RunState, _n: str, task: TaskState, event: ev.MirrorProved, at: str) -> TaskState:
    task = noted(task, at, event.how, "mirrored", event.sha)
    assert task.delivery is not None
    return replace(task, delivery=replace(task.delivery, mirrored=event.sha))


@applies(ev.RetriggerIntended)
def _retrigger_intended(_s: RunState, _n: str, task: TaskState, event: ev.RetriggerIntended, at: str) -> TaskState:
    task = noted(task, at, "ganger", f"CI to run again ({event.cause}, by {event.how})", event.sha)
    assert task.delivery is not None
    wanted = Retrigger(event.sha, event.cause, event.how, event.run)
    return replace(task, delivery=replace(task.delivery, retrigger=wanted, pending=True))


@applies(ev.Retriggered)
def _retriggered(_s: RunState, _n: str, task: TaskState, event: ev.Retriggered, at: str) -> TaskState:
    task = noted(task, at, "forge", f"CI runs again ({event.cause}, by {event.how})", event.sha)
    now = task.delivery
    assert now is not None
    causes = now.retriggered if event.cause in now.retriggered else (*now.retriggered, event.cause)
    asked = now.retrigger.run.split() if now.retrigger is not None else []
    again = [run for run in now.runs if run.id in asked or not asked]
    stale = tuple(map(mark, again)) if event.how == "rerun" else ()
    now = replace(now, retrigger=None, retriggered=causes, stale=stale, runs=(), finding="", why="", pushed_at=at)
    return replace(task, delivery=_moved(now, Milestone.PUSHED_TO_CI, "ci_queued", at))


@applies(ev.RequestIntended)
def _request_intended(_s: RunState, _n: str, task: TaskState, event: ev.RequestIntended, at: str) -> TaskState:
    task = noted(task, at, "ganger", f"change request of {event.branch} into {event.into} to be opened")
    assert task.delivery is not None
    return replace(
        task, delivery=replace(task.delivery, request=RequestRef(event.branch, event.into, draft=event.draft))
    )


@applies(ev.RequestOpened)
def _request_opened(_s: RunState, _n: str, task: TaskState, event: ev.RequestOpened, at: str) -> TaskState:
    how = "found" if event.found else "opened"
    task = noted(task, at, "forge", f"change request #{event.number} {how}: {event.url}")
    now = task.delivery
    assert now is not None
    known = now.request or RequestRef("", "")
    known = replace(known, number=event.number, url=event.url, title=event.title)
    known = replace(known, shows="" if event.found else now.commit)
    return replace(task, delivery=replace(now, request=known))


@applies(ev.RequestChanged)
def _request_changed(_s: RunState, _n: str, task: TaskState, event: ev.RequestChanged, at: str) -> TaskState:
    what = _OF_REQUESTS.get(event.what, f"is {event.what}")
    task = noted(task, at, "forge", f"change request #{event.number} {what}", event.commit)
    now = task.delivery
    assert now is not None
    known = now.request or RequestRef("", "")
    match event.what:
        case "rewritten":
            known = replace(known, title=event.title or known.title, shows=event.commit)
        case "branch_removed":
            known = replace(known, branch_removed=True)
        case "merged":
            tested = event.tested or now.commit
            known = replace(known, draft=False, merged=event.commit, tested=tested, same=event.same)
            known = replace(known, merging="", settled=False)
            now = replace(now, landed=(*now.landed, event.commit))
            now = replace(now, substate="landed") if now.milestone is Milestone.PUSHED_TO_CI else now
        case "closed":
            # The next attempt opens another one.
            known = replace(known, draft=False, number="", url="", merging="")
        case "branch_gone":
            # The next attempt pushes it again.
            known = replace(known, draft=False)
            now = replace(now, pushed="", runs=(), finding="", why="")
        case _:
            known = replace(known, draft=False)
    return replace(task, delivery=replace(now, request=known))


_OF_REQUESTS = {
    "rewritten": "describes the newest commit",
    "branch_removed": "was merged and its branch was removed",
    "branch_gone": "has lost its branch",
}


@applies(ev.Remarked)
def _remarked(_s: RunState, _n: str, task: TaskState, event: ev.Remarked, at: str) -> TaskState:
    now = task.delivery or Delivery()
    known = now.request or RequestRef("", "")
    if event.url != known.remark:
        now = _with(now, at, "ganger", f"commented on change request #{event.number}: {event.url or 'not accepted'}")
    return replace(task, delivery=replace(now, request=replace(known, remark=event.url, mark=event.mark)))


@applies(rq.UpdateIntended)
def _update_intended(_s: RunState, _n: str, task: TaskState, event: rq.UpdateIntended, at: str) -> TaskState:
    """An approval stays valid: the change itself is the same as before."""
    task = noted(task, at, "ganger", f"change request #{event.number} to be updated", event.onto)
    now = task.delivery
    assert now is not None and now.request is not None
    replaced = event.before if event.replaces else ""
    known = replace(now.request, onto=event.onto, updates=now.request.updates + 1, replaces=replaced, merging="")
    known = replace(known, alike=(*known.alike, event.before))
    kept = now.review == "approved" and now.reviewed == event.before
    return replace(
        task, delivery=replace(now, request=known, reviewed=event.commit if kept else now.reviewed, pending=True)
    )


@applies(rq.UpdateConflicted)
def _update_conflicted(_s: RunState, _n: str, task: TaskState, event: rq.UpdateConflicted, at: str) -> TaskState:
    said = f"change request #{event.number} conflicts with its target in {', '.join(event.files[:10])}"
    task = noted(task, at, "ganger", said, event.onto)
    assert task.delivery is not None
    return replace(task, delivery=replace(task.delivery, pending=False))


@applies(rq.MergeIntended)
def _merge_intended(_s: RunState, _n: str, task: TaskState, event: rq.MergeIntended, at: str) -> TaskState:
    task = noted(task, at, "ganger", f"change request #{event.number} to be merged ({event.how})", event.commit)
    now = task.delivery
    assert now is not None and now.request is not None
    onto = event.onto or now.request.onto
    known = replace(now.request, merging=event.commit, how=event.how, onto=onto)
    return replace(task, delivery=replace(now, request=known))


@applies(rq.TrackingMoved)
def _tracking_moved(_s: RunState, _n: str, task: TaskState, event: rq.TrackingMoved, at: str) -> TaskState:
    old = task.delivery or Delivery()
    now = replace(
        _of_new_commit(old), commit=event.commit, branch=event.branch, pushed=event.commit, pushed_at=at, pending=True
    )
    if now.request is not None:
        now = replace(now, request=replace(now.request, tested=event.of, merging=""))
    now = _moved(now, Milestone.PUSHED_TO_CI, "landed" if event.what == "landed" else "ci_queued", at)
    follows = f"following CI for what the forge made of {event.of[:12]} on {event.branch}"
    return replace(task, delivery=_with(now, at, "forge", follows, event.commit))


@applies(rq.LandedUnjudged)
def _landed_unjudged(_s: RunState, _n: str, task: TaskState, event: rq.LandedUnjudged, at: str) -> TaskState:
    task = noted(task, at, "ganger", f"no CI verdict on what landed: {event.why}", event.commit)
    now = task.delivery
    assert now is not None and now.request is not None
    return replace(task, delivery=replace(now, request=replace(now.request, settled=True)))


@applies(ev.ReviewAsked)
def _review_asked(_s: RunState, _n: str, task: TaskState, event: ev.ReviewAsked, at: str) -> TaskState:
    task = noted(task, at, "ganger", f"review requested from {event.of}", event.commit)
    assert task.delivery is not None
    now = replace(task.delivery, review="wanted", reviewed=event.commit, substate="awaiting_review", pending=True)
    return replace(task, delivery=replace(now, review_of=event.of, review_url=""))


@applies(ev.Reviewed)
def _reviewed(_s: RunState, _n: str, task: TaskState, event: ev.Reviewed, at: str) -> TaskState:
    by = f"{event.who} on the forge" if event.who else event.by
    where = f" ({event.url})" if event.url else ""
    said = f"{event.verdict} by {by}{where}" + (f": {event.text}" if event.text else "")
    task = noted(task, at, "forge" if event.who else event.by, said, event.commit)
    assert task.delivery is not None
    sent_back = event.verdict == "rework"
    now = replace(task.delivery, review=event.verdict, reviewed=event.commit or task.delivery.reviewed)
    now = replace(now, review_url=event.url)
    if sent_back:
        now = replace(now, pending=False, heeded=(*now.heeded, *event.reviews))
        if not task.work.merged and task.work.change is not None:
            # The next worker can take over what was good.
            change = task.work.change
            task = replace(
                task, work=replace(task.work, saved=change.commit, saved_files=change.files, saved_refused=False)
            )
        if now.milestone is Milestone.PUSHED_TO_CI:
            now = _moved(now, Milestone.FIXING_CI, "diagnosing", at)
    return replace(task, delivery=now)


@applies(ev.MilestoneReached)
def _milestone(_s: RunState, _n: str, task: TaskState, event: ev.MilestoneReached, at: str) -> TaskState:
    return replace(task, delivery=_moved(task.delivery or Delivery(), event.milestone, event.substate, at))


def delivery_misfit(task: TaskState, event: object) -> str:
    """Why this is rejected from the task's ledger; empty if it is not."""
    now = task.delivery or Delivery()
    match event:
        case ev.PushIntended():
            return "" if is_sha(event.commit) else f"{event.commit!r} names no commit"
        case ev.Pushed():
            return "" if event.commit == now.commit else f"{event.commit[:12]} was not to be pushed"
        case ev.PushLost():
            return "" if event.commit == now.pushed else f"{event.commit[:12]} is not what was pushed"
        case ev.CiSeen():
            other = [run.id for run in event.runs if run.sha != event.sha]
            return f"run {other[0]} is of another commit" if other else _of_tracked(now, event.sha)
        case ev.CiJudged():
            if event.verdict == "green" and now.finding not in ("green", "mirror"):
                return f"a green verdict although CI is {now.finding or 'unknown'}"
            return _of_tracked(now, event.sha)
        case ev.CiWaived():
            wanted = "red" if event.cause == "base_red" else "absent"
            if now.finding != wanted:
                return f"CI is waived although it is {now.finding or 'unknown'}"
            return _of_tracked(now, event.sha)
        case ev.Remarked() | ev.RequestChanged():
            known = now.request.number if now.request is not None else ""
            return "" if event.number == known else f"#{event.number} is not its change request ({known or 'none'})"
        case ev.Reviewed():
            return "" if event.commit == now.reviewed else f"{event.commit[:12]} is not what awaits a review"
        case ev.MirrorProved() | ev.RetriggerIntended() | ev.Retriggered():
            return _of_tracked(now, event.sha)
        case (
            rq.UpdateIntended() | rq.UpdateConflicted() | rq.MergeIntended() | rq.TrackingMoved() | rq.LandedUnjudged()
        ):
            return _request_misfit(now, event)
        case ev.MilestoneReached(milestone=after) if after is not now.milestone:
            return "" if may_move(now.milestone, after) else f"{now.milestone.value} does not lead to {after.value}"
    return ""


def _request_misfit(now: Delivery, event: object) -> str:
    known = now.request
    if known is None or not known.number:
        return "there is no change request"
    match event:
        case rq.UpdateIntended(before=tested, onto=onto, commit=commit):
            bad = next((one for one in (onto, commit) if not is_sha(one)), "")
            return f"{bad!r} names no commit" if bad else _of_tracked(now, tested)
        case rq.UpdateConflicted(commit=tested) | rq.MergeIntended(commit=tested):
            return _of_tracked(now, tested)
        case rq.TrackingMoved(commit=commit, of=tested, what=what):
            if what == "landed" and commit != known.merged:
                return f"{commit[:12]} is not what it was merged as"
            return _of_tracked(now, tested) if is_sha(commit) else f"{commit!r} names no commit"
        case rq.LandedUnjudged(commit=commit):
            return "" if commit and commit == known.merged else f"{commit[:12]} is not what it was merged as"
    return ""


def _of_tracked(now: Delivery, sha: str) -> str:
    if not is_sha(sha):
        return f"{sha!r} names no commit"
    if sha != now.commit:
        return f"{sha[:12]} is not the commit that is tracked ({now.commit[:12] or 'none'})"
    return "" if now.pushed == sha else f"{sha[:12]} is not known to be on the remote"


# --- chains of repositories -----------------------------------------------------------------------------------------


@applies(ev.RebaseIntended)
def _rebase_intended(state: RunState, event: ev.RebaseIntended, _at: str) -> None:
    state.branches.rebases[event.repo] = Rebase(event.head, event.tip, event.commits)


@applies(ev.HeadMoved)
def _head_moved(state: RunState, event: ev.HeadMoved, at: str) -> None:
    state.branches.heads[event.repo] = event.head
    rebase = state.branches.rebases.get(event.repo)
    if rebase is None or (rebase.head, rebase.tip) != (event.before, event.head):
        return
    if rebase.sets_back:
        set_back(state, event.repo, rebase, at)
        return
    places = dict(rebase.commits)
    for name, task in state.tasks.items():
        if state.specs[name].repo == event.repo and places.keys() & {task.work.merged, *_merges_of(task)}:
            state.tasks[name] = _placed(task, places, at)


def _merges_of(task: TaskState) -> tuple[str, ...]:
    return task.delivery.merges if task.delivery is not None else ()


def _placed(task: TaskState, places: Mapping[str, str], at: str) -> TaskState:
    """Its commits are replaced. What was pushed, or is about to be, stays as it is."""
    task = replace(task, work=replace(task.work, merged=places.get(task.work.merged, task.work.merged)))
    now = task.delivery
    if now is None:
        return task
    commit = now.commit if now.branch else places.get(now.commit, now.commit)
    now = replace(now, commit=commit, merges=tuple(places.get(one, one) for one in now.merges))
    return replace(task, delivery=_with(now, at, "ganger", "rebased onto what others pushed", now.own))


@applies(ev.ChainHalted)
def _halted(state: RunState, event: ev.ChainHalted, _at: str) -> None:
    state.chains.halted[event.repo] = event.why


@applies(ev.ChainPaused)
def _paused(state: RunState, event: ev.ChainPaused, _at: str) -> None:
    state.chains.broken[event.repo] = event.task


@applies(ev.ChainCleared)
def _cleared(state: RunState, event: ev.ChainCleared, _at: str) -> None:
    state.chains.broken.pop(event.repo, None)


@applies(ev.RepoUnlocked)
def _unlocked(state: RunState, event: ev.RepoUnlocked, _at: str) -> None:
    if event.lifts:
        state.chains.halted.pop(event.repo, None)
        state.chains.broken.pop(event.repo, None)
    for name in event.tasks:
        if name in state.tasks:
            state.tasks[name] = replace(state.tasks[name], locked=False)
            state.index.locks.get(state.specs[name].repo, set()).discard(name)


@applies(ev.HalfJudged)
def _half_judged(state: RunState, event: ev.HalfJudged, _at: str) -> None:
    state.pushes.halves[event.commit] = event.verdict


@applies(ev.CulpritFound)
def _culprit_found(state: RunState, event: ev.CulpritFound, at: str) -> None:
    """The other tasks in that tip wait for the fix."""
    state.pushes.blamed[event.tip] = event.task
    for name, task in state.tasks.items():
        now = task.delivery
        if now is None or not now.pending or now.commit != event.tip or state.specs[name].repo != event.repo:
            continue
        if name != event.task:
            now = replace(now, waits_for=event.task)
            by = f"because of {event.task} ({event.how})" if event.task else f"without their fault: {event.how}"
            now = _with(now, at, "ganger", f"CI is red {by}", event.tip)
            state.tasks[name] = replace(task, delivery=now)


@applies(ev.TargetJudged)
def _target_judged(state: RunState, event: ev.TargetJudged, _at: str) -> None:
    state.pushes.bases[event.repo] = TargetVerdict(
        event.commit, event.verdict, event.why, event.jobs, event.url, event.faults
    )


DELIVERY_EVENTS = applied_in(__name__)

"""How the state changes when commits of this run are removed from the remote branch, and a person has decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.model.ledger import Delivery, Fact
from ganger.core.model.records import Rebase, Removal
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.state.reducers import applies
from ganger.core.vocabulary import AttemptStep, TaskStatus

LEFT_OUT, PUT_BACK, RESTORED = "leave_out", "put_back", "restored"


@applies(ev.CommitsRemoved)
def _removed(state: RunState, event: ev.CommitsRemoved, _at: str) -> None:
    state.branches.removals[event.repo] = Removal(event.tip, event.tasks)


@applies(ev.RemovalDecided)
def _decided(state: RunState, event: ev.RemovalDecided, _at: str) -> None:
    known = state.branches.removals.get(event.repo)
    if known is None:
        return
    if event.what == LEFT_OUT:
        state.branches.removals[event.repo] = replace(known, leaves_out=True)
        return
    del state.branches.removals[event.repo]
    if event.what == PUT_BACK:
        # The next push starts from where the branch was.
        keep_theirs(state, event.repo, known.tip)
        state.pushes.tips[event.repo] = known.tip
    if event.what == RESTORED:
        _deliver_again(state, known.tasks)


def _deliver_again(state: RunState, names: Iterable[str]) -> None:
    """They continue without a worker, once they are queued."""
    for name in names:
        task = state.tasks.get(name)
        if task is not None and task.status is TaskStatus.BLOCKED and task.work.merged and task.delivery is not None:
            pending = not task.delivery.fixing
            state.tasks[name] = replace(task, delivery=replace(task.delivery, pending=pending))


@applies(ev.SetBackIntended)
def _set_back_intended(state: RunState, event: ev.SetBackIntended, _at: str) -> None:
    state.branches.rebases[event.repo] = Rebase(event.head, event.tip, (), True, event.gone, event.left)


def forget_undecided(state: RunState, repo: str) -> None:
    """The branch accepts pushes: the question about it no longer blocks anything."""
    known = state.branches.removals.get(repo)
    if known is not None and not known.leaves_out:
        del state.branches.removals[repo]


def keep_theirs(state: RunState, repo: str, tip: str) -> None:
    """Notes where the branch is, unless this run pushed that."""
    if tip in ("", state.pushes.tips.get(repo, ""), state.pushes.theirs.get(repo, "")):
        return
    delivered = (task.delivery for task in state.tasks.values())
    if not any(now is not None and tip in (now.commit, now.pushed, *now.merges) for now in delivered):
        state.pushes.theirs[repo] = tip


def set_back(state: RunState, repo: str, move: Rebase, at: str) -> None:
    """The run's branch is where the remote branch is."""
    keep_theirs(state, repo, move.tip)
    state.pushes.tips[repo] = move.tip
    known = state.branches.removals.pop(repo, None)
    _deliver_again(state, () if known is None else [name for name in known.tasks if name not in move.left])
    for name, task in state.tasks.items():
        now = task.delivery
        if now is None or state.specs[name].repo != repo or task.status is TaskStatus.DONE:
            continue
        after = _after_set_back(task, now, name in move.left, move)
        if after is not task:
            state.tasks[name] = replace(after, delivery=_noted(after.delivery or now, at, move.tip))


def _after_set_back(task: TaskState, now: Delivery, is_left: bool, move: Rebase) -> TaskState:
    kept = tuple(one for one in now.merges if one not in move.gone)
    now = replace(now, merges=kept, waits_for="" if now.waits_for in move.left else now.waits_for)
    if is_left:
        # If the task is included again, it starts with a worker. What nobody removed is still in the branch.
        rest = kept[-1] if kept else ""
        bare = replace(now, commit=rest, pushed=rest, tree="", branch="", runs=(), finding="", why="", retrigger=None)
        return replace(task, work=replace(task.work, merged="", change=None), delivery=replace(bare, pending=False))
    if task.work.merged in move.gone:
        bare = replace(now, commit="", pushed="", tree="", branch="", runs=(), finding="", why="", retrigger=None)
        step = AttemptStep.DELIVER if task.status is TaskStatus.RUNNING else task.attempt.step
        return replace(
            task,
            work=replace(task.work, merged="", in_merge_queue=False),
            attempt=replace(task.attempt, step=step),
            delivery=replace(bare, pending=True),
        )
    if now.commit and now.commit != now.pushed:
        # A tip of the old branch was about to be pushed with it.
        return replace(task, delivery=replace(now, commit=now.own, tree="", branch=""))
    return task if now == task.delivery else replace(task, delivery=now)


def _noted(delivery: Delivery, at: str, tip: str) -> Delivery:
    fact = Fact(at, "ganger", "the run's branch was reset to the remote branch", tip)
    return replace(delivery, facts=(*delivery.facts, fact)[-200:])

"""Planted bugs of delivery: done before it is written down, told before it is done, done again without a look."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ganger.core import events as ev
from ganger.core.delivery.request_merges import MergeStep, RequestLook, next_step
from ganger.core.model.ci import RunFact, Word
from ganger.core.model.ledger import RepoRules
from ganger.engine.delivery.requests import merge
from ganger.engine.delivery.shared_push import Train
from ganger.engine.merging.commit_messages import trigger_message
from ganger.engine.merging.push_queue import PushQueue
from ganger.engine.merging.reverting import Reverting
from ganger.engine.merging.set_back import SetBack
from ganger.engine.merging.straightening import Placed, Straightening, placed
from ganger.forges.pull_requests import GiteaPulls
from ganger.ports.forge import PushOutcome, Request
from ganger.ports.repository import Conflict


@dataclass(frozen=True, slots=True)
class Bug:
    """`points` are where leads die, one run each; without them a run that nobody touches must show it. `rule` is a
    part of the complaint."""

    plant: Callable[[], None]
    rule: str
    points: tuple[str, ...] = ()
    scene: str = "rerun"

    @property
    def what(self) -> str:
        return (self.plant.__doc__ or "").strip()


def planter(name: str) -> Callable[[], None] | None:
    return BUGS[name].plant if name else None


def _pushed_without_intent() -> None:
    """A commit is pushed before anybody has written down that it shall be."""
    real = Train._intend

    async def intend(self: Train, tip: str, tree: str, going: Sequence[str], there: str) -> None:
        await self.remote.push(tip, self.rules.branch)
        await real(self, tip, tree, going, there)

    setattr(Train, "_intend", intend)  # noqa: B010


def _empty_commit_of_any_date() -> None:
    """A commit of nothing has the time of day, and is pushed before it is written down: each lead makes its own."""

    async def made(self: Train, head: str, task: str) -> str:
        message = trigger_message(self.state.run_id, task, self.state.tasks[task].attempts, "any")
        moment = time.time() - random.randrange(10**6)  # noqa: S311
        commit = (await self.repository.empty_commit(head, message, moment)).commit
        await self.remote.push(commit, self.rules.branch)
        return commit

    setattr(Train, "_empty_commit", made)  # noqa: B010


def _request_without_a_look() -> None:
    """Nobody looks whether the change request is there already."""

    async def find(_self: GiteaPulls, _branch: str, _into: str) -> Request | None:
        return None

    setattr(GiteaPulls, "find", find)  # noqa: B010


def _pushed_told_first() -> None:
    """That a commit was pushed is recorded before it is."""
    real = PushQueue.push

    async def push(self: PushQueue, task: str, *, replaces: str = "") -> PushOutcome:
        now, number = self.delivery(task), self.state.tasks[task].attempts
        await self.record(task, ev.Pushed(task, number, now.commit, now.branch))
        return await real(self, task, replaces=replaces)

    setattr(PushQueue, "push", push)  # noqa: B010


def _verdict_before_the_push() -> None:
    """CI's verdict is recorded before the push is known to have happened."""
    real = PushQueue.push

    async def push(self: PushQueue, task: str, *, replaces: str = "") -> PushOutcome:
        sha, number = self.delivery(task).commit, self.state.tasks[task].attempts
        run = RunFact("1", sha, Word.SUCCESS)
        seen = ev.CiSeen(task, number, sha, (run,), "green", "surely")
        await self.record(task, seen, ev.CiJudged(task, number, sha, "green", "surely"))
        return await real(self, task, replaces=replaces)

    setattr(PushQueue, "push", push)  # noqa: B010


def _merge_believed_open() -> None:
    """What the forge says of a request counts, and nobody looks into its target."""

    def step(look: RequestLook, *, updates: bool) -> MergeStep:
        return next_step(replace(look, in_target=False), updates=updates)

    setattr(merge, "next_step", step)  # noqa: B010


def _merged_without_an_update() -> None:
    """A request that does not hold its target is merged all the same."""

    def step(look: RequestLook, *, updates: bool) -> MergeStep:
        return next_step(look, updates=False)

    setattr(merge, "next_step", step)  # noqa: B010


def _rebased_without_intent() -> None:
    """The run's branch is put on top of what others pushed before anybody has written down that it shall be."""
    real = PushQueue.move

    async def onto(self: Straightening, task: str, target: str, why: str, *, yields: bool = False) -> Conflict | None:
        head = await self.repository.head()
        found = await placed(self.repository, head, target, yields=yields)
        assert isinstance(found, Placed)
        await real(self.sending, task, head, found.tip, why)
        return None

    setattr(Straightening, "onto", onto)  # noqa: B010


def _joined_all_the_same() -> None:
    """What others pushed is taken in by a merge, whatever the settings say."""
    setattr(RepoRules, "is_linear", False)  # noqa: B010


def _reverted_again() -> None:
    """A new lead does not look whether the revert is merged; it makes it again."""

    def is_due(self: Reverting) -> bool:
        return self.now.revert is not None

    setattr(Reverting, "is_due", property(is_due))  # noqa: B010


def _set_back_not_moved() -> None:
    """That the run's branch was set back is recorded, and it never moves."""

    async def move(_self: SetBack, _head: str, _tip: str) -> None:
        return None

    setattr(SetBack, "_move", move)  # noqa: B010


def _set_back_without_intent() -> None:
    """The run's branch is set back before anyone has written down that it shall be."""
    real = SetBack.carry_out

    async def carry_out(self: SetBack, tip: str) -> bool:
        if self.due is not None:
            await self._move(await self.repository.head(), tip)
        return await real(self, tip)

    setattr(SetBack, "carry_out", carry_out)  # noqa: B010


BUGS: dict[str, Bug] = {
    "pushed-without-intent": Bug(_pushed_without_intent, "nobody intended that", ("before/push_intended/plain:1",)),
    "empty-commit-of-any-date": Bug(
        _empty_commit_of_any_date, "empty commits, not 1", ("before/push_intended/skipped:2",), "empty"
    ),
    "request-without-a-look": Bug(_request_without_a_look, "outcome", ("before/request_opened/plain:1",), "request"),
    "pushed-told-first": Bug(_pushed_told_first, "lacks it", ("after/pushed/plain:1",), "request"),
    "verdict-before-the-push": Bug(_verdict_before_the_push, "verdicts", scene="request"),
    "merge-believed-open": Bug(_merge_believed_open, "outcome", scene="request-merge"),
    "rebased-without-intent": Bug(_rebased_without_intent, "outcome", ("before/head_moved/*:1",), "linear"),
    "reverted-again": Bug(_reverted_again, "merged before", ("before/pushed/red:2", "after/merged/red:2"), "revert"),
    "set-back-not-moved": Bug(_set_back_not_moved, "brings back", scene="leave-out"),
    "set-back-without-intent": Bug(
        _set_back_without_intent, "outcome", ("answered/before/set_back_intended/*:1",), "leave-out"
    ),
    "joined-all-the-same": Bug(_joined_all_the_same, "to be straight", scene="linear"),
    "merged-without-an-update": Bug(_merged_without_an_update, "pushes", scene="request-merge"),
}

"""Pushes of one repository, one at a time: intent, effect, outcome.

A lead that dies at any point does no harm: before the intent nothing happened; after it the remote knows whether it
has the commit, and a push of what is there changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ganger.core import events as ev
from ganger.core.delivery.shared_pushes import NEW_TIP
from ganger.core.failures.retries import backoff_sec
from ganger.core.model.ledger import Delivery, RepoRules
from ganger.core.planning.repos import graph_of
from ganger.core.state.apply_delivery import rules_of
from ganger.core.state.hosts import is_away
from ganger.core.times import unix_time
from ganger.engine.merging.commit_messages import trigger_message
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.engine.resources.run_resources import RunResources, one_line
from ganger.engine.stop_guard import StopGuard
from ganger.errors import ForgeError, ForgeUnreachable, GangerError
from ganger.ports.forge import PushOutcome, Rejected, Sent
from ganger.ports.repository import Repository

T = TypeVar("T")
_LOOK_SEC = 0.2


class PushFailed(GangerError):
    """The remote refuses the push, and waiting does not help."""

    code = "PUSH_REFUSED"


class PushQueue:
    """The caller holds the branch's turn (`Merging.turn`) wherever the run's own branch may move."""

    def __init__(self, tools: RunResources, gate: StopGuard, repository: Repository, outlet: DeliveryTarget) -> None:
        self.tools, self.gate, self.repository, self.outlet = tools, gate, repository, outlet
        self.state = tools.journal.state
        # What stands in the way of all, and which task in which attempt asks about it.
        self.asked: dict[str, tuple[str, int]] = {}

    def rules(self, task: str) -> RepoRules:
        return rules_of(self.state, task)

    def delivery(self, task: str) -> Delivery:
        found = self.state.tasks[task].delivery
        assert found is not None
        return found

    async def record(self, task: str, *events: ev.Event) -> None:
        await self.tools.journal.report(task, self.state.tasks[task].attempt.token, *events)

    async def intend(
        self, task: str, branch: str, commit: str, tree: str, cause: str = "change", *, replaces: str = ""
    ) -> None:
        repo = self.state.specs[task].repo
        above = graph_of(self.state.chains.rules).upstream.get(repo, ())
        known = tuple((one, self.state.pushes.proved[one]) for one in above if one in self.state.pushes.proved)
        number = self.state.tasks[task].attempts
        intended = ev.PushIntended(task, number, repo, branch, commit, tree, cause, known, replaces=replaces)
        await self.record(task, intended)

    async def find(self, task: str, branch: str, commit: str, tree: str) -> None:
        """What is tracked is what the branch was just seen at: nothing is pushed."""
        state, number = self.state, self.state.tasks[task].attempts
        intended = ev.PushIntended(task, number, state.specs[task].repo, branch, commit, tree)
        await self.record(task, intended, ev.Pushed(task, number, commit, branch, "found"))

    async def push(self, task: str, *, replaces: str = "") -> PushOutcome:
        """Pushes what is tracked to its branch; raises ForgeError where the remote cannot be asked. `replaces`: the
        commit that it overwrites there, and does not build on."""
        now, number = self.delivery(task), self.state.tasks[task].attempts
        self.gate.check()
        place = self.outlet.place_of(now.branch)
        call = place.replace(now.commit, now.branch, replaces) if replaces else place.push(now.commit, now.branch)
        outcome = await self.gate.unless_stopped(call)
        if isinstance(outcome, Sent):
            how = "found" if outcome.found else "pushed"
            await self.record(task, ev.Pushed(task, number, now.commit, now.branch, how))
        elif isinstance(outcome, Rejected):
            await self.record(task, ev.PushRefused(task, number, now.commit, one_line(outcome.why)))
        return outcome

    async def move(self, task: str, head: str, new: str, why: str) -> None:
        if not await self.repository.move_head(head, new):
            raise GangerError(
                f"the branch of run {self.state.run_id} is no longer at {head[:12]}",
                hint="someone moved it; restore it with git update-ref, or start a new run",
                code="BRANCH_MOVED",
            )
        await self.record(task, ev.HeadMoved(self.state.specs[task].repo, head, new, why))

    def is_away(self) -> bool:
        """Whether the remote's host is known not to answer: then no merge waits for a call that fails."""
        return bool(is_away(self.state, [self.outlet.remote.host]))

    def is_halted(self, repo: str) -> bool:
        return not self.state.chains.halted.keys().isdisjoint((repo, *graph_of(self.state.chains.rules).chain(repo)))

    async def catch_up(self, repo: str, head: str) -> str:
        """Fast-forwards to what others pushed; returns the head to merge onto."""
        branch = self.state.chains.rules[repo].branch
        if self.is_away():
            return head
        try:
            tip = await self.gate.unless_stopped(self.outlet.remote.head(branch))
            if not tip or tip == head or await self._holds(head, tip):
                return head
            tip = await self.gate.unless_stopped(self.outlet.remote.fetch(branch))
        except ForgeError:
            return head
        if not await self.repository.is_ancestor(head, tip):
            return head
        if not await self.repository.move_head(head, tip):
            return await self.repository.head()
        await self.tools.journal.record(ev.HeadMoved(repo, head, tip, f"{branch} had moved"))
        return tip

    async def _holds(self, head: str, tip: str) -> bool:
        return await self.repository.has(tip) and await self.repository.is_ancestor(tip, head)

    async def again(self, task: str, cause: str) -> None:
        """An empty commit on the task's own branch, so that CI runs again. The same parent and moment give the same
        commit."""
        now, number = self.delivery(task), self.state.tasks[task].attempts
        message = trigger_message(self.state.run_id, task, number, cause)
        made = await self.repository.empty_commit(now.commit, message, unix_time(now.pushed_at))
        wanted = ev.RetriggerIntended(task, number, now.commit, cause, NEW_TIP)
        self.tools.journal.report(task, self.state.tasks[task].attempt.token, wanted)
        await self.intend(task, now.branch, made.commit, made.tree, cause)

    # --- time ---------------------------------------------------------------------------------------------------------

    async def patiently(self, task: str, call: Callable[[], Awaitable[T]], most_sec: float) -> T:
        """Retries, 5 s to 60 s apart, while the other side is in conflict with itself, up to a time limit. A host that
        does not answer concerns all tasks and is waited for elsewhere."""
        clock, since, tries = self.tools.clock, self.tools.clock.monotonic(), 0
        while True:
            self.gate.check()
            try:
                return await call()
            except ForgeUnreachable as trouble:
                if trouble.host or clock.monotonic() - since >= most_sec:
                    raise
            await self.pause(min(backoff_sec(task, tries), max(self.outlet.poll_most_sec, _LOOK_SEC)))
            tries += 1

    async def pause(self, sec: float) -> None:
        """A stop interrupts it."""
        until = self.tools.clock.monotonic() + sec
        while (left := until - self.tools.clock.monotonic()) > 0:
            self.gate.check()
            await asyncio.sleep(min(left, _LOOK_SEC))
        self.gate.check()

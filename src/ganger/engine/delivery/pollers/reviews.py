"""Polls the reviews on the forge of changes that await one: one look for a whole repository while a lead runs. A
review there counts like an answer given here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from dataclasses import replace

from ganger.contracts.parser import neutralise
from ganger.core import events as ev
from ganger.core.control.reviews import WANTED, awaits_people, has_request, on_forge, shows_another
from ganger.core.delivery.forge_reviews import APPROVED, Opinion, Remark, Review, ReviewSaid, said_of
from ganger.core.model.ledger import NO_RULES, Delivery
from ganger.core.state.hosts import is_away
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.stop_guard import StopGuard, Stopped
from ganger.errors import ForgeDenied, ForgeError, ForgeLimited
from ganger.ports.forge import Forge, Request
from ganger.ports.repository import Repository

_SLOWER = 1.5
_LOOK_SEC = 0.2
# A lead that has nothing else to do asks again, and does not wait long for the answer.
_LAST_LOOK_SEC = 15.0


class ReviewWatch:
    def __init__(
        self, tools: RunResources, gate: StopGuard, repo: str, repository: Repository, outlet: DeliveryTarget
    ) -> None:
        assert outlet.forge is not None
        self.forge: Forge = outlet.forge
        self._tools, self._gate, self._repo = tools, gate, repo
        self._repository, self._outlet = repository, outlet
        self._needed: int | None = None
        self._looking = asyncio.Lock()
        self._nudged = asyncio.Event()
        self._stopped = False
        state = tools.journal.state
        self._asked = {name for name, task in state.tasks.items() if _is_wanted(task.delivery)}
        self._asked &= {name for name, spec in state.specs.items() if spec.repo == repo}
        self._looks: dict[str, int] = {}
        tools.journal.listeners.append(self._on_event)

    def _on_event(self, recorded: ev.Recorded) -> None:
        """Keeps the list of tasks that may wait: going through all tasks would take longer with each one."""
        event = recorded.event
        if isinstance(event, ev.ReviewAsked) and self._tools.journal.state.specs[event.task].repo == self._repo:
            self._asked.add(event.task)
        elif isinstance(event, ev.TaskSettled) and event.task in self._asked:
            self._nudged.set()

    async def run(self) -> None:
        """Sends no request while no task waits."""
        pause = 0.0
        with contextlib.suppress(Stopped):
            while not self._stopped:
                self._nudged.clear()
                if not self._waiting():
                    pause = 0.0
                    await self._gate.unless_stopped(self._nudged.wait())
                    continue
                changed, at_least = await self._gate.unless_stopped(self._look_gently())
                slower = min(max(pause, self._outlet.poll_sec) * _SLOWER, self._outlet.poll_most_sec)
                pause = self._outlet.poll_sec if changed or not pause else slower
                at_least = max(at_least, self._outlet.poll_sec)
                await self._rest(at_least)
                # A nudge shortens the wait, but a flood of them brings no more looks than the pace allows.
                await self._rest(pause - at_least, nudgeable=True)

    def nudge(self) -> None:
        self._nudged.set()

    def stop(self) -> None:
        self._stopped = True
        self._nudged.set()

    async def look_again(self) -> None:
        """Called before a lead ends because only people can continue."""
        if self._waiting():
            with contextlib.suppress(TimeoutError, Stopped):
                async with asyncio.timeout(_LAST_LOOK_SEC):
                    await self._gate.unless_stopped(self._look_gently())

    def _waiting(self) -> list[str]:
        state = self._tools.journal.state
        self._asked = {name for name in self._asked if name in state.tasks and _is_wanted(state.tasks[name].delivery)}
        return [name for name in sorted(self._asked) if awaits_people(state, name) and has_request(state.tasks[name])]

    async def _look_gently(self) -> tuple[bool, float]:
        """Whether anything changed, and how long to wait before the next request. A forge that does not answer is
        asked later: people can still answer here."""
        changed = False
        if is_away(self._tools.journal.state, [self.forge.host]):
            return False, self._outlet.poll_sec
        try:
            for name in self._waiting():
                changed = await self._look_at(name) or changed
        except ForgeLimited as limited:
            return changed, max(0.0, limited.until - self._tools.clock.now())
        except ForgeError:
            return changed, self._outlet.poll_most_sec
        return changed, 0.0

    async def _look_at(self, name: str) -> bool:
        journal = self._tools.journal
        async with self._looking:
            commit = self._delivery(name).reviewed
            said, needed, is_other = await self.said(name, commit), await self.needed(), False
            if said.opinion is Opinion.NONE and self._is_turn(name):
                known = await self._shown_now(name)
                if known is not None and known.merged and known.head == commit:
                    by_hand = Review("merge", "the person who merged it", APPROVED, url=known.url)
                    said = ReviewSaid(Opinion.APPROVED, (by_hand,))
                else:
                    is_other = await self._is_other(name, commit, known)
            await journal.idle()
            if self._delivery(name).reviewed != commit:
                return False
            events = on_forge(journal.state, name, said, needed=needed)
            if not events and is_other:
                events = shows_another(journal.state, name)
            if events:
                await journal.record(*events)
            return bool(events)

    def _is_turn(self, name: str) -> bool:
        """Every other look also fetches the change request, because a merge by hand approves it: that costs one more
        call."""
        self._looks[name] = self._looks.get(name, -1) + 1
        return self._looks[name] % 2 == 0

    async def _shown_now(self, name: str) -> Request | None:
        ref = self._request(name, "")
        known = await self.forge.find_request(ref.branch, ref.into)
        return known if known is not None and known.number == ref.number else None

    async def _is_other(self, name: str, commit: str, known: Request | None) -> bool:
        """Whether nothing is left to review: a forge may report that late, so git is asked too."""
        if known is not None and known.head == commit and (known.state == "open" or known.merged):
            return False
        if known is None or known.merged or known.state != "open":
            return True
        ref = self._request(name, commit)
        return await self._outlet.place_of(ref.branch).head(ref.branch) != commit

    def _delivery(self, name: str) -> Delivery:
        return self._tools.journal.state.tasks[name].delivery or Delivery()

    def _request(self, name: str, commit: str) -> Request:
        ref = self._delivery(name).request
        assert ref is not None
        return Request(ref.number, ref.url, ref.branch, ref.into, head=commit)

    async def said(self, name: str, commit: str) -> ReviewSaid:
        """The outcome for this commit of all reviews of the task's change request. One call, and one more for each
        review that asks for changes."""
        reviews = await self.forge.reviews(self._request(name, commit))
        shown = [self._shown(review) for review in reviews]
        same = await self._same_files(commit, {review.commit for review in shown}) | self._alike(name, commit)
        return said_of(shown, commit, same=same, heeded=self._delivery(name).heeded, needed=max(1, await self.needed()))

    def _alike(self, name: str, commit: str) -> set[str]:
        """Earlier commits that differ from it only by what its target received meanwhile."""
        now = self._delivery(name)
        return set(now.request.alike) if now.request is not None and now.commit == commit else set()

    async def needed(self) -> int:
        """How many approvals the forge requires before it merges, where Ganger merges."""
        if self._needed is None:
            rules = self._tools.journal.state.chains.rules.get(self._repo, NO_RULES)
            self._needed = await self._approvals(rules.branch) if rules.auto_merge else 0
        return self._needed

    async def _approvals(self, branch: str) -> int:
        """A token that may not read a branch's rules may be enough for everything else."""
        try:
            return (await self.forge.branch_rules(branch)).approvals
        except ForgeDenied as denied:
            if denied.host:
                raise
            return 0

    def _shown(self, review: Review) -> Review:
        """The text as it goes into a prompt and the journal."""
        remarks = tuple(Remark(self._harmless(one.path), one.line, self._harmless(one.text)) for one in review.remarks)
        return replace(review, text=self._harmless(review.text), remarks=remarks)

    def _harmless(self, text: str) -> str:
        return neutralise(self._outlet.mask(text)[0])

    async def _same_files(self, commit: str, others: Collection[str]) -> set[str]:
        """Reviews of other commits with the same files: an empty commit invalidates no approval."""
        known = {one for one in others if one and one != commit and await self._repository.has(one)}
        if not known:
            return set()
        tree = await self._repository.tree_of(commit)
        return {one for one in known if await self._repository.tree_of(one) == tree}

    async def _rest(self, sec: float, *, nudgeable: bool = False) -> None:
        until = self._tools.clock.monotonic() + sec
        while not self._stopped and (left := until - self._tools.clock.monotonic()) > 0:
            self._gate.check()
            if nudgeable and self._nudged.is_set():
                return
            await asyncio.sleep(min(left, _LOOK_SEC))


def _is_wanted(delivery: Delivery | None) -> bool:
    return delivery is not None and delivery.review == WANTED

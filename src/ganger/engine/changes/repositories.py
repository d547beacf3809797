"""The repositories of a run while a lead lives: each with its branch, its merge queue and its remotes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Sequence

from ganger.core.model.ledger import NO_RULES
from ganger.core.vocabulary import PushStyle
from ganger.engine.attempt_context import RunningAttempt
from ganger.engine.changes.git import GitChanges
from ganger.engine.delivery.ci.culprits import Culprits
from ganger.engine.delivery.context import DeliveryContext
from ganger.engine.delivery.deliver import Delivering
from ganger.engine.delivery.pollers.ci import CiPoller
from ganger.engine.delivery.pollers.hosts import HostWatch
from ganger.engine.delivery.pollers.request_counts import ForgePace
from ganger.engine.delivery.pollers.reviews import ReviewWatch
from ganger.engine.delivery.requests.queue import RequestLine
from ganger.engine.delivery.shared_push import Train
from ganger.engine.merging.merge_queue import MergeQueue, Spawn
from ganger.engine.merging.push_queue import PushQueue
from ganger.engine.resources.run_resources import Doorbell, RunResources
from ganger.engine.stop_guard import StopGuard, Stopped


class Repositories:
    """Repositories depend on each other only by the order of merges."""

    def __init__(self, tools: RunResources, gate: StopGuard, spawn: Spawn) -> None:
        self.tools, self.gate, self._spawn = tools, gate, spawn
        self.state = tools.journal.state
        self._merging: dict[str, MergeQueue] = {}
        self._sending: dict[str, PushQueue] = {}
        self._following: dict[str, CiPoller] = {}
        self._trains: dict[str, Train] = {}
        self._culprits: dict[str, Culprits] = {}
        self._reviews: dict[str, ReviewWatch] = {}
        self._lines: dict[str, RequestLine] = {}
        self._doorbell: Doorbell | None = None
        self._pace: ForgePace | None = None
        self._hosts = HostWatch(tools, gate, spawn)

    async def recover(self) -> None:
        """Runs once the rules of the run are known."""
        self._doorbell = self.tools.webhooks(self.nudge)
        if self._doorbell is not None:
            await self._doorbell.open()
        await self._hosts.recover(self.tools.outlets.values())
        numbers = itertools.count(self.state.checks.on_merges + 1)
        for name, repository in self.tools.repositories.items():
            rules, outlet = self.state.chains.rules.get(name, NO_RULES), self.tools.outlets.get(name)
            pushes_head = None
            if outlet is not None and rules.delivers:
                self._sending[name] = PushQueue(self.tools, self.gate, repository, outlet)
                pushes_head = self._sending[name] if rules.style is PushStyle.BRANCH else None
                if outlet.forge is not None:
                    self._following[name] = CiPoller(outlet, outlet.forge, self.tools.clock, self.gate, self._spawn)
                if outlet.forge is not None and rules.style is PushStyle.REQUEST and rules.forge_reviews:
                    watch = self._reviews[name] = ReviewWatch(self.tools, self.gate, name, repository, outlet)
                    self._spawn(watch.run())
            self._merging[name] = MergeQueue(self.tools, name, self.gate, self._spawn, numbers, pushes_head)
            await self._merging[name].recover()
            if pushes_head is not None:
                self._trains[name] = train = Train(name, pushes_head, self._merging[name])
                if name in self._following:
                    self._culprits[name] = Culprits(train, self._following[name])
        forges = {
            name: following.forge
            for name, following in self._following.items()
            if self.state.chains.rules[name].forge != "command"
        }
        if forges:
            self._pace = ForgePace(self.tools.folder, forges, self.tools.clock)
            self._spawn(self._pace.run())

    def road(self, case: RunningAttempt) -> GitChanges:
        name = case.spec.repo
        merging, sending = self._merging[name], self._sending.get(name)
        if sending is None:
            return GitChanges(case, merging, None)
        following, reviews = self._following.get(name), self._reviews.get(name)
        at = DeliveryContext(case, sending, merging, following, self._hosts, reviews)
        line = self._lines.setdefault(name, RequestLine(self.state, self.gate))
        return GitChanges(case, merging, Delivering(at, line, self._trains.get(name), self._culprits.get(name)))

    async def merge_level(self, tasks: Sequence[str]) -> None:
        """The barrier, in every repository that has tasks in the level."""
        parts: dict[str, list[str]] = {}
        for name in tasks:
            parts.setdefault(self.state.specs[name].repo, []).append(name)
        await asyncio.gather(*(self._merging[repo].merge_level(part) for repo, part in parts.items()))

    async def has_heard_reviews(self) -> bool:
        """Before a lead ends: whether something was recorded since, such as what people said on a forge."""
        if self.state.lead.stopping or self.state.lead.draining:
            return False
        before = self.state.log.last_seq
        await asyncio.gather(*(watch.look_again() for watch in self._reviews.values()))
        return self.state.log.last_seq != before

    async def has_set_back(self) -> bool:
        """Before a lead ends: whether a branch had to be set back, and something was recorded since."""
        if self.state.lead.stopping or self.state.lead.draining:
            return False
        before = self.state.log.last_seq
        with contextlib.suppress(Stopped):
            for merging in self._merging.values():
                await merging.set_back()
        return self.state.log.last_seq != before

    def nudge(self, repo: str) -> None:
        """This repository is reported to have news on its forge."""
        if repo in self._following:
            self._following[repo].nudge()
        if repo in self._reviews:
            self._reviews[repo].nudge()

    def stop(self) -> None:
        for merging in self._merging.values():
            merging.stop()
        for following in self._following.values():
            following.stop()
        for watch in self._reviews.values():
            watch.stop()
        self._hosts.stop()
        if self._pace is not None:
            self._pace.stop()

    async def close(self) -> None:
        if self._doorbell is not None:
            await self._doorbell.close()
        for outlet in self.tools.outlets.values():
            if outlet.forge is not None:
                await outlet.forge.close()
        for repository in self.tools.repositories.values():
            await repository.close()

"""Uses what an attempt's agent printed: while it runs, when it has ended, and to explain or continue it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ganger.core import events as ev
from ganger.core.failures.agent_errors import AgentError, is_broken, is_over_for_good, refused_session, trouble_of
from ganger.core.model.records import Ended, Totals
from ganger.core.money.budgets import cost_settled
from ganger.core.money.pricing import believed, counted_after, used_by
from ganger.core.scheduling.quota import works_again
from ganger.core.signs import Heard
from ganger.engine.agent_calls.log_follower import LogFollower, followed, heard_event
from ganger.engine.attempt_context import RunningAttempt
from ganger.engine.resources.live_attempts import LiveAttempt
from ganger.engine.resources.run_resources import one_line
from ganger.errors import GangerError
from ganger.ports.agents import Agent
from ganger.ports.processes import Exit, Running

_ASIDE_BYTES = 4 * 1024 * 1024
_WITHIN_SEC = 120.0


class AgentOutput:
    def __init__(self, case: RunningAttempt, agent: Agent) -> None:
        self.case, self.agent, self.tools = case, agent, case.tools
        self._folder = ""
        self._worked = False

    async def wait(self, running: Running, folder: Path, post: LiveAttempt) -> Exit:
        """Runs until the agent has ended. An agent whose output shows no progress is ended."""
        self._folder = f"{folder}/"
        reader = self.agent.reader()
        if running.pid is None:
            return await running.wait()

        def listening(end: Callable[[str], None]) -> LogFollower:
            clock, worked = self.tools.clock, self._mention_account
            post.ear = made = LogFollower(self.case.log_path, reader, clock, self._mention, end, worked)
            return made

        if reader is None:
            # A reader that only watches whether the log grows sets its own pace.
            listening(lambda _why: None)
            return await running.wait()
        return await followed(running, listening, lambda: self.case.gate.end(str(self.case.log_path)))

    def _mention(self, heard: Heard) -> None:
        self.case.mention(self._told(heard))

    def _mention_account(self, heard: Heard) -> None:
        if works := self._account_works(heard):
            self.case.mention(*works)

    def _account_works(self, heard: Heard) -> list[ev.Event]:
        """The first answer of its model shows that an account on trial works, long before its task is done."""
        if self._worked or not heard.has_worked:
            return []
        self._worked = True
        return works_again(self.case.state, self.case.now.attempt.account)

    async def heard(self) -> Heard:
        """Everything its log says; an agent can delete its own log, which then says nothing."""
        log = self.case.log_path
        home = self.tools.homes.of(self.case.task, self.agent.name) if self.agent.capabilities.stream else None
        try:
            if home is None and log.stat().st_size <= _ASIDE_BYTES:
                return self.agent.hear(log)
            # The agent can fill both with data that takes long to read.
            return await asyncio.wait_for(asyncio.to_thread(self.agent.hear, log, home), _WITHIN_SEC)
        except (OSError, GangerError, TimeoutError):
            return Heard()

    async def settled(self, ended: Exit) -> list[ev.Event]:
        """What the attempt used, and its last message about itself."""
        spent = self.case.now.spent
        if not ended.started:
            zero = ev.CostSettled(self.case.task, self.case.number, 0.0)
            return [zero] if spent.reserved_usd or spent.reserved_tokens else []
        heard = await self.heard()
        names: list[ev.Event] = []
        if heard.session or heard.model:
            names = [self._told(heard)]
        return [*names, *self._account_works(heard), *self._cost(heard)]

    def _told(self, heard: Heard) -> ev.AgentHeard:
        told = heard_event(self.case.task, self.case.number, heard)
        return replace(told, doing=told.doing.replace(self._folder, "") if self._folder else told.doing)

    async def unsettled(self) -> list[ev.Event]:
        """Its end was not observed: what it reported until then counts, else what was reserved."""
        return [] if self.case.now.attempt.ended is not None else self._cost(await self.heard())

    async def told_until_now(self) -> list[ev.Event]:
        """Ganger ended it: what it reported counts, and everything else counts as nothing."""
        heard = (
            await self.heard() if self.case.now.attempt.ended is None and self.case.now.attempt.launched else Heard()
        )
        return self._cost(heard) if heard.tokens is not None else []

    def _cost(self, heard: Heard) -> list[ev.Event]:
        """An unknown cost counts as what was reserved; without either, there is nothing to record."""
        spent, tokens = self.case.now.spent, heard.tokens
        if tokens is None:
            if not spent.reserved_usd and not spent.reserved_tokens:
                return []
            return [cost_settled(self.case.task, self.case.number, Totals(), spent.reserved_usd, spent.reserved_tokens)]
        session = heard.session or self.case.now.agent.continued
        before = self.case.now.agent.totals if session and session == self.case.now.agent.session else None
        used = used_by(tokens, heard.model or self.agent.model or self.case.now.agent.model, self.tools.prices, before)
        cost = cost_settled(self.case.task, self.case.number, used, spent.reserved_usd, spent.reserved_tokens)
        doubted = believed(tokens).doubted
        return [replace(cost, session=session, totals=counted_after(tokens, used, before), doubted=doubted)]

    async def trouble(self, ended: Ended) -> AgentError | None:
        """Why there is no result, as far as the agent said."""
        cut_short = ended.timed_out or ended.signal is not None or ended.code not in (0, None)
        return trouble_of(await self.heard(), cut_short=cut_short, timed_out=ended.timed_out)

    async def session(self) -> str:
        """The session that can be continued; empty if there is none."""
        if not self.agent.capabilities.resume:
            return ""
        heard = await self.heard()
        return "" if is_over_for_good(heard) else heard.session or self.case.now.agent.continued

    async def refused_session(self) -> str:
        """Why a session is not continued, in its program's own words; empty if nothing prevents it.

        A session that started here is replaced by a new one only once: if both break, the task is the reason.
        """
        heard, now = await self.heard(), self.case.now
        return (
            refused_session(heard)
            if now.agent.continued or (is_broken(heard) and not now.next_start.lost_session)
            else ""
        )

    async def is_full(self) -> str:
        """That a working conversation has become too long, in its program's words; else empty."""
        heard = await self.heard()
        over = heard.over
        unfit = over is not None and over.how == "unfit" and not over.broken and heard.has_worked
        return one_line(over.text, 300) if unfit and over is not None else ""

    async def said_at_the_end(self) -> str:
        """Its program's own words on why it failed; empty if there are none."""
        over = (await self.heard()).over
        return one_line(over.text, 300) if over is not None and over.how == "error" else ""

"""A task's change request: there is exactly one; what it says, and when people may review it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ganger.core import events as ev
from ganger.core.delivery.landings import needs_no_request
from ganger.core.delivery.request_merges import framed, renewed, renewed_title
from ganger.core.model.ledger import Delivery, RequestRef
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import FailureClass, PushStyle
from ganger.engine.attempt_context import RunningAttempt
from ganger.engine.merging.commit_messages import request_body, request_title
from ganger.engine.merging.push_queue import PushQueue
from ganger.ports.forge import Forge, NewRequest, Request


class RequestText:
    def __init__(self, case: RunningAttempt, sending: PushQueue) -> None:
        self.case, self.sending, self.outlet = case, sending, sending.outlet

    def new(self, branch: str, into: str, *, draft: bool) -> NewRequest:
        title, text = self._clean(self._title()), framed(self._clean(self._text()))
        return NewRequest(branch, into, title, text, draft, self.outlet.labels, self.outlet.milestone)

    def _title(self) -> str:
        return request_title(self.case.task, self.case.now.attempt.summary)

    def _text(self) -> str:
        return request_body(self.case.state, self.case.task, self.sending.delivery(self.case.task).commit)

    def _clean(self, text: str) -> str:
        masked, kinds = self.outlet.mask(text)
        if kinds:
            why = f"its change request would show what looks like a secret ({', '.join(kinds)})"
            problem = self.case.failed(FailureClass.FATAL, "secret in a change request", why)
            problem.keep_changes = True
            raise problem
        return masked

    async def renew(self, forge: Forge, request: RequestRef) -> None:
        """After a death between the write and its record, the text is found written, and nothing is written again."""
        case, commit = self.case, self.sending.delivery(self.case.task).commit
        if not request.number or request.shows == commit or request.merged:
            return
        known = await forge.find_request(request.branch, request.into)
        if known is None or known.number != request.number:
            return
        title, text = self._clean(self._title()), self._clean(self._text())
        given = title if known.title == title else request.title
        wanted = NewRequest(
            request.branch,
            request.into,
            renewed_title(known.title, given, title),
            renewed(known.body, text),
            labels=self.outlet.labels,
            milestone=self.outlet.milestone,
        )
        await forge.update_request(_at_forge(request, commit), wanted)
        changed = ev.RequestChanged(case.task, case.number, request.number, "rewritten", commit, wanted.title)
        if wanted.title != title:
            # Someone chose this title, and it stays.
            changed = ev.RequestChanged(case.task, case.number, request.number, "rewritten", commit, request.title)
        await case.record(changed)


def _at_forge(request: RequestRef, head: str) -> Request:
    return Request(request.number, request.url, request.branch, request.into, draft=request.draft, head=head)


T = TypeVar("T")


class Requesting:
    """Does nothing where the repository's changes are pushed straight to its branch."""

    def __init__(self, case: RunningAttempt, sending: PushQueue) -> None:
        self.case, self.sending, self.outlet = case, sending, sending.outlet
        self.rules = rules_of(case.state, case.task)
        self.text = RequestText(case, sending)

    @property
    def now(self) -> Delivery:
        return self.sending.delivery(self.case.task)

    @property
    def wanted(self) -> bool:
        """Without a change there is nothing to request, except for a request that is already open."""
        known, change = self.now.request, self.case.now.work.change
        if (
            self.rules.style is not PushStyle.REQUEST
            or self.outlet.forge is None
            or needs_no_request(self.rules, self.now)
        ):
            return False
        return (known is not None and bool(known.number)) or (change is not None and change.commit != change.base)

    async def open(self) -> None:
        """Intent, effect, outcome; the forge finds an existing request by its branch."""
        if not self.wanted or self.outlet.forge is None:
            return
        case, now = self.case, self.now
        if now.request is not None and now.request.number and now.request.branch == now.branch:
            await self.renew()
            return
        draft = self.outlet.draft and self.rules.follows_ci
        await case.record(ev.RequestIntended(case.task, case.number, now.branch, self.rules.branch, draft))
        new, forge = self.text.new(now.branch, self.rules.branch, draft=draft), self.outlet.forge
        found = await self._patiently(lambda: forge.find_request(new.branch, new.into))
        made = found if found is not None else await self._patiently(lambda: forge.open_request(new))
        there = found is not None
        await case.record(ev.RequestOpened(case.task, case.number, made.number, made.url, there, new.title))
        if there:
            await self.renew()

    async def renew(self) -> None:
        """Its text names the current commit. Also written where the request was found: its opener may have died before
        setting the labels."""
        forge, request = self.outlet.forge, self.now.request
        if forge is not None and request is not None:
            await self._patiently(lambda: self.text.renew(forge, request))

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        gate = self.case.gate
        return await self.sending.patiently(self.case.task, lambda: gate.unless_stopped(call()), self.rules.ci_sec)

    async def ready(self) -> None:
        """CI is green: people may review it."""
        request, forge = self.now.request, self.outlet.forge
        if forge is None or request is None or not request.number or not request.draft:
            return
        at_forge = self._at_forge()
        await self._patiently(lambda: forge.ready(at_forge))
        await self.case.record(ev.RequestChanged(self.case.task, self.case.number, request.number, "ready"))

    def _at_forge(self) -> Request:
        request = self.now.request
        assert request is not None
        return Request(
            request.number, request.url, request.branch, request.into, draft=request.draft, head=self.now.commit
        )

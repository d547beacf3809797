"""A task's change request: that there is one and only one, and when people may look at it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ganger.core import events as ev
from ganger.core.delivery import Delivery
from ganger.core.delivery_changes import rules_of
from ganger.core.vocabulary import FailureClass
from ganger.engine.case import Case
from ganger.engine.messages import request_body, request_title
from ganger.engine.sending import Sending
from ganger.ports.forge import NewRequest, Request

T = TypeVar("T")


class Requesting:
    """Does nothing where the repository's changes go to its branch at once."""

    def __init__(self, case: Case, sending: Sending) -> None:
        self.case, self.sending, self.outlet = case, sending, sending.outlet
        self.rules = rules_of(case.state, case.task)

    @property
    def now(self) -> Delivery:
        return self.sending.delivery(self.case.task)

    @property
    def wanted(self) -> bool:
        """Where nothing was changed there is nothing to be asked for, but for what is asked for already."""
        known, change = self.now.request, self.case.now.change
        if self.rules.style != "request" or self.outlet.forge is None:
            return False
        return (known is not None and bool(known.number)) or (change is not None and change.commit != change.base)

    async def open(self) -> None:
        """Intent, effect, outcome; the forge finds one that is there already by its branch."""
        if not self.wanted or self.outlet.forge is None:
            return
        case, now = self.case, self.now
        if now.request is not None and now.request.number and now.request.branch == now.branch:
            return
        draft = self.outlet.draft and self.rules.follows_ci
        await case.record(ev.RequestIntended(case.task, case.number, now.branch, self.rules.branch, draft))
        title, body = request_title(case.task, case.now.summary), request_body(case.state, case.task, now.commit)
        title, body = self._clean(title), self._clean(body)
        new = NewRequest(now.branch, self.rules.branch, title, body, draft, self.outlet.labels)
        forge = self.outlet.forge
        found = await self._patiently(lambda: forge.find_request(new.branch, new.into))
        made = found if found is not None else await self._patiently(lambda: forge.open_request(new))
        await case.record(ev.RequestOpened(case.task, case.number, made.number, made.url, found=found is not None))

    def _clean(self, text: str) -> str:
        masked, kinds = self.outlet.mask(text)
        if kinds:
            why = f"its change request would show what looks like a secret ({', '.join(kinds)})"
            problem = self.case.failed(FailureClass.FATAL, "secret in a change request", why)
            problem.keep_changes = True
            raise problem
        return masked

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        gate = self.case.gate
        return await self.sending.patiently(self.case.task, lambda: gate.unless_stopped(call()), self.rules.ci_sec)

    async def ready(self) -> None:
        """CI is green: people may look at it."""
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

"""What a change request says: written when it is opened, and kept current when a mend or a rework replaces the
commit it told of."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.delivery.request_text import framed, renewed, renewed_title
from ganger.core.model.ledger import RequestRef
from ganger.core.vocabulary import FailureClass
from ganger.engine.attempt_context import Case
from ganger.engine.merging.commit_messages import request_body, request_title
from ganger.engine.merging.push_queue import Sending
from ganger.ports.forge import Forge, NewRequest, Request


class RequestText:
    def __init__(self, case: Case, sending: Sending) -> None:
        self.case, self.sending, self.outlet = case, sending, sending.outlet

    def new(self, branch: str, into: str, *, draft: bool) -> NewRequest:
        title, text = self._clean(self._title()), framed(self._clean(self._text()))
        return NewRequest(branch, into, title, text, draft, self.outlet.labels, self.outlet.milestone)

    def _title(self) -> str:
        return request_title(self.case.task, self.case.now.summary)

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
        """Whoever died after it was written and before that was on record finds it written, and writes nothing."""
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
            # It is somebody's own title, and stays that.
            changed = ev.RequestChanged(case.task, case.number, request.number, "rewritten", commit, request.title)
        await case.record(changed)


def _at_forge(request: RequestRef, head: str) -> Request:
    return Request(request.number, request.url, request.branch, request.into, draft=request.draft, head=head)

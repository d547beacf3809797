"""The branch of a change request that is merged, removed from the remote where the project wants that."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.engine.delivery_case import DeliveryCase
from ganger.engine.requests import Requesting
from ganger.errors import ForgeDenied


class MergedBranch:
    """Removed where it stands at exactly the commit that this run pushed and that is merged: the remote compares. So it
    is harmless to repeat, and what somebody else put onto it stays."""

    def __init__(self, at: DeliveryCase, requests: Requesting) -> None:
        self.at, self.requests = at, requests

    async def remove(self) -> None:
        case, now = self.at.case, self.at.now
        request = now.request
        if not self.at.rules.delete_branch or request is None or not request.number or request.branch_removed:
            return
        if now.pushed != now.commit or not await self.requests.is_merged():
            return
        remote = self.at.outlet.remote
        try:
            gone = await self.at.sending.patiently(
                case.task,
                lambda: self.at.unless_stopped(remote.remove(now.commit, request.branch)),
                self.at.rules.ci_sec,
            )
        except ForgeDenied as denied:
            if denied.host:
                raise
            # What had to be delivered is delivered; a branch that must stay is no fault of it.
            return
        if gone:
            what = ev.RequestChanged(case.task, case.number, request.number, "branch_removed", now.commit)
            await case.record(what)

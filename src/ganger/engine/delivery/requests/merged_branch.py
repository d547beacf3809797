"""The branch of a change request that is merged, removed from the remote where the project wants that."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.engine.delivery.context import DeliveryCase
from ganger.errors import ForgeDenied


class MergedBranch:
    """Removed where it stands at exactly the commit that this run pushed and that is merged: the remote compares. So it
    is harmless to repeat, and what somebody else put onto it stays."""

    def __init__(self, at: DeliveryCase) -> None:
        self.at = at

    async def remove(self) -> None:
        case, request = self.at.case, self.at.now.request
        if not self.at.rules.delete_branch or request is None or not request.number or request.branch_removed:
            return
        if not request.merged or not request.tested:
            return
        remote = self.at.outlet.place_of(request.branch)
        try:
            gone = await self.at.sending.patiently(
                case.task,
                lambda: self.at.unless_stopped(remote.remove(request.tested, request.branch)),
                self.at.rules.ci_sec,
            )
        except ForgeDenied as denied:
            if denied.host:
                raise
            # What had to be delivered is delivered; a branch that must stay is no fault of it.
            return
        if gone:
            what = ev.RequestChanged(case.task, case.number, request.number, "branch_removed", request.tested)
            await case.record(what)

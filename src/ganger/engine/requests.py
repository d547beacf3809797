"""A task's change request: which commit it shows, that there is one and only one, when it is ready and merged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ganger.core import events as ev
from ganger.core.delivery import Delivery
from ganger.core.delivery_changes import rules_of
from ganger.core.moments import unix_time
from ganger.core.names import branch_stem
from ganger.core.vocabulary import FailureClass
from ganger.engine.case import Case
from ganger.engine.messages import join_message
from ganger.engine.request_text import RequestText
from ganger.engine.sending import PushFailed, Sending
from ganger.ports import Conflict
from ganger.ports.forge import Request

T = TypeVar("T")


class Requesting:
    """Does nothing where the repository's changes go to its branch at once."""

    def __init__(self, case: Case, sending: Sending) -> None:
        self.case, self.sending, self.outlet = case, sending, sending.outlet
        self.rules = rules_of(case.state, case.task)
        self.text = RequestText(case, sending)

    @property
    def now(self) -> Delivery:
        return self.sending.delivery(self.case.task)

    @property
    def wanted(self) -> bool:
        return self.rules.style == "request" and self.outlet.forge is not None and bool(self._change())

    def _change(self) -> str:
        """The merged commit, where anything was changed."""
        change = self.case.now.change
        return "" if change is None or change.commit == change.base else change.commit

    @property
    def branch(self) -> str:
        run, task = branch_stem(self.case.state.run_id), branch_stem(self.case.task)
        return self.outlet.branch_name.replace("{run}", run).replace("{task}", task)

    async def published(self) -> tuple[str, str, str]:
        """Branch, commit and tree to be pushed. The change alone on the target's newest state where it stands alone;
        what the run merged where it builds on other tasks, or does not fit without them."""
        case, repository, before = self.case, self.sending.repository, self.now.pushed
        change, merged = case.now.change, case.now.merged
        if not self._change() or change is None:
            # What it was verified on holds changes of others, and those reach the target by their own requests.
            return self.branch, merged, await repository.tree_of(merged)
        if before:
            put = await repository.rebase(change.commit, change.base, before)
            if not isinstance(put, Conflict):
                return self.branch, put.commit, put.tree
            message = join_message(case.state.run_id, "the run's branch", merged)
            joined = await repository.join(before, merged, message, unix_time(case.now.started_at))
            if isinstance(joined, Conflict):
                raise PushFailed(f"what was merged conflicts with {self.branch} in {', '.join(joined.files[:10])}")
            return self.branch, joined.commit, joined.tree
        if not self._builds_on_others():
            onto = await self.outlet.remote.fetch(self.rules.branch)
            put = await repository.rebase(change.commit, change.base, onto) if onto else Conflict((), "")
            if not isinstance(put, Conflict):
                return self.branch, put.commit, put.tree
        return self.branch, merged, await repository.tree_of(merged)

    def _builds_on_others(self) -> bool:
        """Whether a task it depends on, directly or through others, is not in the target yet."""
        state, repo = self.case.state, self.case.spec.repo
        queue = list(self.case.spec.depends_on)
        for need in queue:
            task, known = state.tasks[need], state.tasks[need].delivery
            request = known.request if known is not None else None
            if request is not None and request.merged:
                continue
            changed = request is not None or (task.change is not None and task.change.commit != task.change.base)
            if changed and state.specs[need].repo == repo:
                return True
            queue += [name for name in state.specs[need].depends_on if name not in queue]
        return False

    async def open(self) -> None:
        """Intent, effect, outcome; the forge finds one that is there already by its branch."""
        if not self.wanted or self.outlet.forge is None:
            return
        case, now = self.case, self.now
        if now.request is not None and now.request.number:
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
        """Its text tells of the commit that is there. Also where it was found: whoever opened it may have died before
        its labels were there."""
        forge, request = self.outlet.forge, self.now.request
        if forge is not None and request is not None:
            await self._patiently(lambda: self.text.renew(forge, request))

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

    async def is_merged(self) -> bool:
        """Whether somebody merged exactly what is tracked; a forge may take its branch away then."""
        request, forge = self.now.request, self.outlet.forge
        if forge is None or request is None or not request.number:
            return False
        if not request.merged:
            known = await self._patiently(lambda: forge.find_request(request.branch, request.into))
            if known is None or not known.merged or (known.number, known.head) != (request.number, self.now.commit):
                return False
            changed = ev.RequestChanged(self.case.task, self.case.number, request.number, "merged", known.merged)
            await self.case.record(changed)
        return True

    async def merge(self) -> None:
        """Exactly the commit that is proved, or not at all."""
        request, forge = self.now.request, self.outlet.forge
        if not self.rules.auto_merge or forge is None or request is None or not request.number or request.merged:
            return
        case, at_forge, head = self.case, self._at_forge(), self.now.commit
        known = await self._patiently(lambda: forge.find_request(request.branch, request.into))
        done = known.merged if known is not None else ""
        done = done or await self._patiently(lambda: forge.merge(at_forge, head))
        if not done:
            why = f"the forge does not merge change request #{request.number} at {head[:12]}: {request.url}"
            problem = case.failed(FailureClass.BLOCKED_EXTERNAL, "not merged", f"{why}; see there what it lacks")
            problem.question, problem.keep_changes = "delivery", True
            raise problem
        await case.record(ev.RequestChanged(case.task, case.number, request.number, "merged", done))

    def _at_forge(self) -> Request:
        request = self.now.request
        assert request is not None
        return Request(
            request.number, request.url, request.branch, request.into, draft=request.draft, head=self.now.commit
        )

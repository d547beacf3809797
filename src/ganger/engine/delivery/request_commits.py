"""Which commit a change request shows: its change alone where that applies alone, and what its target needs with it."""

from __future__ import annotations

from ganger.core.delivery.request_merges import LINEAR
from ganger.core.model.ledger import Delivery, RequestRef
from ganger.core.names import branch_stem
from ganger.core.state.apply_delivery import rules_of
from ganger.core.times import unix_time
from ganger.engine.attempt_context import RunningAttempt
from ganger.engine.merging.commit_messages import join_message
from ganger.engine.merging.push_queue import PushFailed, PushQueue
from ganger.engine.merging.straightening import placed
from ganger.ports.repository import Conflict, Rebased

Published = tuple[str, str, str]


class RequestCommits:
    def __init__(self, case: RunningAttempt, sending: PushQueue) -> None:
        self.case, self.sending, self.outlet = case, sending, sending.outlet
        self.repository, self.rules = sending.repository, rules_of(case.state, case.task)

    @property
    def now(self) -> Delivery:
        return self.sending.delivery(self.case.task)

    @property
    def request(self) -> RequestRef | None:
        return self.now.request

    @property
    def change(self) -> str:
        """The commit of the change, where the attempt changed anything."""
        change = self.case.now.work.change
        return "" if change is None or change.commit == change.base else change.commit

    @property
    def branch(self) -> str:
        """What follows a merged request gets a branch of its own: the old one may be gone, or reused by someone."""
        known = self.request
        if known is not None and known.branch and not known.merged:
            return known.branch
        run, task = branch_stem(self.case.state.run_id), branch_stem(self.case.task)
        name = self.outlet.branch_name.replace("{run}", run).replace("{task}", task)
        merged = len(self.now.landed)
        return f"{name}-{merged + 1}" if merged else name

    async def published(self) -> Published:
        """Branch, commit and tree to push. The change alone on the target's newest state where it applies alone; what
        the run merged where it builds on other tasks, or conflicts without them."""
        known, merged = self.request, self.case.now.work.merged
        if known is not None and known.merged:
            return await self._rest()
        before = known.tested if known is not None and known.tested else self.now.pushed
        if before and (self.change or (known is not None and known.number)):
            return await self._on_top(before)
        if not self.change:
            # What it was verified on holds changes of other tasks, which reach the target by their own requests.
            return self.branch, merged, await self.repository.tree_of(merged)
        if not self._builds_on_others():
            onto = await self.outlet.remote.fetch(self.rules.branch)
            put = await self._put(onto) if onto else Conflict((), "")
            if not isinstance(put, Conflict):
                return self.branch, put.commit, put.tree
        if self.rules.is_linear:
            return await self._straight(merged)
        return self.branch, merged, await self.repository.tree_of(merged)

    async def _straight(self, merged: str) -> Published:
        """What the run merged up to this change, commit by commit on the target where that is possible."""
        onto = await self.outlet.remote.fetch(self.rules.branch)
        put = await placed(self.repository, merged, onto) if onto else Conflict((), "")
        if isinstance(put, Conflict):
            return self.branch, merged, await self.repository.tree_of(merged)
        return self.branch, put.tip, put.tree

    async def _put(self, onto: str) -> Rebased | Conflict:
        change = self.case.now.work.change
        assert change is not None
        return await self.repository.rebase(change.commit, change.base, onto)

    async def _on_top(self, before: str) -> Published:
        """A fix goes on top of what the branch has. Where that conflicts with the target, the target's side wins: the
        worker did the rest again on it."""
        base = await self._fitting(before)
        put = await self._put(base)
        if not isinstance(put, Conflict):
            return self.branch, put.commit, put.tree
        if self.rules.is_linear:
            return await self._straight(self.case.now.work.merged)
        joined = await self._join(base, self.case.now.work.merged, "the run's branch")
        if isinstance(joined, Conflict):
            raise PushFailed(f"what was merged conflicts with {self.branch} in {', '.join(joined.files[:10])}")
        return self.branch, joined.commit, joined.tree

    async def _fitting(self, before: str) -> str:
        onto = await self.outlet.remote.fetch(self.rules.branch)
        if not onto or not isinstance(await self._join(before, onto, self.rules.branch), Conflict):
            return before
        if self.rules.is_linear:
            moment = unix_time(self.case.now.attempt.started_at)
            message = join_message(self.case.state.run_id, self.rules.branch, onto)
            put = await placed(self.repository, before, onto, message, moment, yields=True)
            assert not isinstance(put, Conflict)
            return put.tip
        joined = await self._join(before, onto, self.rules.branch, yields=True)
        assert not isinstance(joined, Conflict)
        return joined.commit

    async def _rest(self) -> Published:
        """A fix of what is already in the target: a change request of its own. Where someone did the same by hand,
        there is nothing to request: the target's own commit is tracked."""
        onto = await self.outlet.remote.fetch(self.rules.branch)
        put = await self._put(onto) if onto else Conflict((), "")
        if isinstance(put, Conflict):
            files = ", ".join(put.files[:10])
            raise PushFailed(f"the fix for {self.rules.branch} conflicts with it in {files}")
        if put.tree == await self.repository.tree_of(onto):
            return self.rules.branch, onto, put.tree
        return self.branch, put.commit, put.tree

    async def updated(self, tested: str, onto: str) -> Rebased | Conflict:
        """A commit that holds what was tested and the target's tip: a merge of both, or, where history must be linear,
        the same commits rebased on that tip. The same input gives the same commit."""
        if self.rules.merge_method not in LINEAR and not self.rules.is_linear:
            return await self._join(tested, onto, self.rules.branch)
        put = await placed(self.repository, tested, onto)
        return put if isinstance(put, Conflict) else Rebased(put.tip, put.tree)

    async def _join(self, ours: str, theirs: str, name: str, *, yields: bool = False) -> Rebased | Conflict:
        message = join_message(self.case.state.run_id, name, theirs, self.branch)
        return await self.repository.join(
            ours, theirs, message, unix_time(self.case.now.attempt.started_at), yields=yields
        )

    def _builds_on_others(self) -> bool:
        """Whether a task it depends on, directly or through others, is not in the target yet."""
        state, repo = self.case.state, self.case.spec.repo
        queue = list(self.case.spec.depends_on)
        for need in queue:
            task, known = state.tasks[need], state.tasks[need].delivery
            request = known.request if known is not None else None
            if request is not None and request.merged:
                continue
            changed = request is not None or (
                task.work.change is not None and task.work.change.commit != task.work.change.base
            )
            if changed and state.specs[need].repo == repo:
                return True
            queue += [name for name in state.specs[need].depends_on if name not in queue]
        return False

"""The merge queue: verified changes go onto the newest head, the gates run on the result, the branch moves.

One merge at a time. Changes that wait meanwhile form the next batch. A red batch is bisected until the change that
turns it red is found: those before it are merged, it is sent back, those after it are tried again.

A lead that dies at any point does no harm: before the intent nothing happened; after it the branch shows whether it
moved.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass

from ganger.core import events as ev
from ganger.core.control.worker_commands import is_ended_by_person
from ganger.core.model.ledger import NO_RULES
from ganger.core.model.records import Intent
from ganger.core.names import merge_log
from ganger.core.scheduling.quota import after_success
from ganger.core.state.apply_delivery import rules_of
from ganger.core.vocabulary import MergeMode, TaskStatus
from ganger.engine.merging.push_queue import PushQueue
from ganger.engine.merging.set_back import SetBack
from ganger.engine.resources.run_resources import RunResources
from ganger.engine.stop_guard import StopGuard, Stopped
from ganger.engine.verification.checks import WhyRed, seconds, step_records, why_red
from ganger.engine.verification.commit_census import Candidate, Censuses
from ganger.engine.verification.proof import check_folder
from ganger.engine.verification.steps import Verdict, VerificationLost
from ganger.errors import GangerError
from ganger.ports.changes import RoleRules
from ganger.ports.repository import Conflict

# A task that is stopped on its way to the barrier never arrives.
_LOOK_SEC = 0.5
Spawn = Callable[[Coroutine[object, object, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A verified change that waits for its turn."""

    task: str
    attempt: int
    token: str
    base: str
    commit: str
    profile: str


@dataclass(frozen=True, slots=True)
class Red:
    """The gates fail on the head that this change would make."""

    why: WhyRed


@dataclass(frozen=True, slots=True)
class In:
    """The branch holds the change."""


Outcome = In | Red | Conflict


@dataclass(frozen=True, slots=True)
class _Layer:
    """A change put on top of those below it."""

    item: Waiting
    commit: str
    tree: str


class MergeQueue:
    """Owns the run's branch while a lead lives. In `level` mode nothing is merged before `merge_level`."""

    def __init__(
        self,
        tools: RunResources,
        name: str,
        gate: StopGuard,
        spawn: Spawn,
        numbers: Iterator[int],
        sending: PushQueue | None,
    ) -> None:
        """`numbers` names the logs of gates, for all repositories of a run together. `sending`: what is merged goes to
        the remote's branch."""
        self.tools, self.name, self.repository, self.gate = tools, name, tools.repositories[name], gate
        self.state = tools.journal.state
        self.censuses = Censuses(tools.checks, self.repository, tools.folder.path)
        self.turn = asyncio.Lock()
        self._spawn, self._numbers, self._sending = spawn, numbers, sending
        self._back = SetBack(name, sending) if sending is not None else None
        self._queue: dict[str, Waiting] = {}
        self._answers: dict[str, asyncio.Future[Outcome]] = {}
        self._came = asyncio.Event()
        self._moving: frozenset[str] = frozenset()
        self._stands = asyncio.Event()
        self._stands.set()
        self._work: asyncio.Task[None] | None = None
        self._profiles: dict[str, None] = {}

    @property
    def _most(self) -> int:
        """Where each change is pushed alone, each is verified alone as well."""
        rules = self.state.chains.rules.get(self.name, NO_RULES)
        return 1 if self._sending is not None and rules.pushes == "each" else self.tools.merge_batch

    async def recover(self) -> None:
        """Reconciles branch and events: an intended move happened or did not; everything DONE is in the branch."""
        head = await self.repository.open()
        intent, journal = self.state.branches.intents.get(self.name), self.tools.journal
        if intent is not None:
            if head == intent.tip or await self.repository.is_ancestor(intent.tip, head):
                await self._note_moved(intent, head)
            else:
                await journal.record(ev.HeadKept(head, "the lead died before the branch moved", self.name))
        known = self.state.branches.heads.get(self.name, "")
        rebase = self.state.branches.rebases.get(self.name)
        if rebase is not None and (known, head) == (rebase.head, rebase.tip):
            why = (
                "what was removed is left out"
                if rebase.sets_back
                else "the run's commits are on top of what others pushed"
            )
            await journal.record(ev.HeadMoved(self.name, known, head, why))
        elif known and head != known:
            if not await self.repository.is_ancestor(known, head):
                await self._put_back(head, known)
            elif self._sending is not None or self.state.chains.rules.get(self.name, NO_RULES).delivers:
                # Only joining what others pushed, and empty commits, move it before that is recorded.
                await journal.record(ev.HeadMoved(self.name, known, head, "the lead died before it recorded that"))
        await self._move_on()
        ours = {name: task for name, task in self.state.tasks.items() if self.state.specs[name].repo == self.name}
        self._profiles = dict.fromkeys(
            self.state.specs[name].verify_profile for name, task in ours.items() if task.work.merged
        )
        needed = [
            name
            for name, task in ours.items()
            if name in self.state.index.running or task.next_start.answer_log or task.next_start.resume_session
        ]
        await self.repository.clear([(name, self.state.tasks[name].work.workspace_of) for name in needed])

    async def _note_moved(self, intent: Intent, head: str) -> None:
        """An attempt that was ended before its merge was recorded cannot record it any more: its change is in the
        branch, and the task's next attempt finds nothing left to change."""
        if all(name in self.state.index.in_merge_queue for name in intent.tasks):
            await self._moved(intent.tip, list(zip(intent.tasks, intent.commits, strict=True)))
            return
        why = "the branch moved, and an attempt that it moved for was ended"
        moved = ev.HeadMoved(self.name, self.state.branches.heads.get(self.name, intent.head), head, why)
        await self.tools.journal.record(ev.HeadKept(head, why, self.name), moved)

    async def _move_on(self) -> None:
        """An empty commit, or a merge with what others pushed, was about to become the head and to be pushed."""
        head = await self.repository.head()
        for name, task in self.state.tasks.items():
            now = task.delivery
            if self._sending is None or now is None or self.state.specs[name].repo != self.name or not now.pending:
                continue
            if now.commit in ("", now.pushed, head) or not await self.repository.has(now.commit):
                continue
            if await self.repository.is_ancestor(head, now.commit) and await self.repository.move_head(
                head, now.commit
            ):
                why = f"{name} was about to be pushed as this"
                await self.tools.journal.record(ev.HeadMoved(self.name, head, now.commit, why))
                head = now.commit

    async def _put_back(self, head: str, known: str) -> None:
        """A power cut may lose the branch's last move, but never the commits, which are older than the event."""
        rebase = self.state.branches.rebases.get(self.name)
        # The last move that was to no commit on top of the one before.
        start = rebase.tip if rebase is not None and head == rebase.head else head
        if await self.repository.has(known) and await self.repository.is_ancestor(start, known):
            await self.repository.move_head(head, known)
            return
        raise GangerError(
            f"the branch of run {self.state.run_id} is at {head[:12]}, but merged work is at {known[:12]}",
            hint="someone moved the branch; restore it with git update-ref, or start a new run",
            code="BRANCH_MOVED",
        )

    # --- the queue ------------------------------------------------------------------------------------------------

    async def land(self, item: Waiting) -> Outcome:
        """Waits until the change is merged, conflicts, or turns the gates red."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._answers[item.task] = answer
        self._queue[item.task] = item
        self._came.set()
        if self.state.merging is MergeMode.QUEUE and self._work is None:
            self._work = self._spawn(self._work_off())
        try:
            return await answer
        finally:
            if item.task in self._moving:
                # The wait was ended too late: the attempt continues from the branch's new state.
                await self._stands.wait()
            self._answers.pop(item.task, None)
            self._queue.pop(item.task, None)

    async def merge_level(self, tasks: Sequence[str]) -> None:
        """The barrier: every verified change of the level is merged or sent back."""
        while any(name in self.state.index.in_merge_queue and name not in self._queue for name in tasks):
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._came.wait(), _LOOK_SEC)
        await self._work_off()
        while any(name in self.state.index.in_merge_queue for name in tasks) and not self.state.lead.stopping:
            await self.tools.journal.changed()

    async def set_back(self) -> None:
        """What a person leaves out leaves the branch before anything else builds on it."""
        if self._back is not None and self._back.due is not None:
            async with self.turn:
                await self._back.at_once()

    def stop(self) -> None:
        """Stops the tasks that wait; their changes are verified, and the next lead merges them. Those to which the
        branch moves at this moment get that result instead."""
        for name, answer in self._answers.items():
            if name not in self._moving and not answer.done():
                answer.set_exception(Stopped())

    async def _work_off(self) -> None:
        try:
            while self._queue:
                self.gate.check()
                ordered = sorted(self._queue.values(), key=lambda item: self.state.index.rank[item.task])
                async with self.turn:
                    await self._merge(ordered[: self._most])
        except Stopped:
            self.stop()
        finally:
            # At once and not when the task is done: a task that comes in between would wait without end.
            self._work = None

    def _answer(self, item: Waiting, outcome: Outcome) -> None:
        self._queue.pop(item.task, None)
        answer = self._answers.get(item.task)
        if answer is not None and not answer.done():
            answer.set_result(outcome)

    # --- one batch ------------------------------------------------------------------------------------------------

    async def _merge(self, items: Sequence[Waiting]) -> None:
        """Every item of the batch gets its result, or waits for the next batch on the new head."""
        head = await self.newest_head()
        layers = await self._stack(head, items)
        if not layers:
            return
        verdict = await self._gates(head, layers)
        if verdict is None:
            await self._move(head, layers)
            return
        good, bad = 0, len(layers)
        while bad - good > 1:
            middle = (good + bad) // 2
            half = await self._gates(head, layers[:middle])
            if half is None:
                good = middle
            else:
                bad, verdict = middle, half
        if good:
            await self._move(head, layers[:good])
        self._answer(layers[bad - 1].item, Red(verdict))

    async def newest_head(self) -> str:
        """The head without what is left out, fast-forwarded to what others pushed. The caller holds the turn."""
        if self._back is not None:
            await self._back.at_once()
        head = await self.repository.head()
        return head if self._sending is None else await self._sending.catch_up(self.name, head)

    async def _stack(self, head: str, items: Sequence[Waiting]) -> list[_Layer]:
        """Stacks the changes. One that conflicts with the head itself gets that result; one that conflicts with others
        of the batch is left for the next batch."""
        layers: list[_Layer] = []
        top = head
        for item in items:
            put = await self.repository.rebase(item.commit, item.base, top)
            if not isinstance(put, Conflict):
                layers.append(_Layer(item, put.commit, put.tree))
                top = put.commit
            elif top == head:
                self._answer(item, put)
        return layers

    async def _gates(self, head: str, layers: Sequence[_Layer]) -> WhyRed | None:
        """None when every gate is green on top of these layers: the gates of their tasks, and of what was merged
        before."""
        top = layers[-1]
        own = dict.fromkeys(layer.item.profile for layer in layers)
        profiles = own if self.tools.own_gates_only else own | self._profiles
        for profile in profiles:
            verdict = await self._gate(profile, head, top, tuple(layer.item.task for layer in layers))
            if not verdict.passed:
                return why_red(verdict, where=f" on the merged head (profile {profile})")
        return None

    async def _gate(self, profile: str, head: str, top: _Layer, tasks: tuple[str, ...]) -> Verdict:
        checks, journal = self.tools.checks, self.tools.journal
        evidence = checks.evidence(top.tree, profile)
        if evidence in self.state.checks.evidence:
            return Verdict(True, (), None)
        number = next(self._numbers)
        log, name = merge_log(number), check_folder()
        folder = await self.repository.checkout(name, top.commit)
        try:
            verdict = await checks.run(
                profile,
                folder=folder,
                log=self.tools.folder.path / log,
                gate=self.gate,
                key=f"{self.tools.folder.path / log}#{self.state.lead.count}",
                named={},
                proof=self.censuses.proof(await self._candidate(head, top, tasks), profile, self.gate),
            )
        except VerificationLost:
            raise Stopped from None
        finally:
            await self.repository.drop_checkout(name)
        self.gate.check()
        if verdict.passed:
            self.censuses.keep(evidence, verdict.census)
        await journal.record(
            ev.GatesChecked(
                top.commit,
                top.tree,
                tasks,
                profile,
                verdict.passed,
                log,
                seconds(verdict),
                step_records(verdict.steps),
                evidence,
            )
        )
        return verdict

    async def _candidate(self, head: str, top: _Layer, tasks: tuple[str, ...]) -> Candidate:
        changes = [self.state.tasks[name].work.change for name in tasks]
        files = tuple(dict.fromkeys(file for change in changes if change is not None for file in change.files))
        may = any(self.may_change_tests(name) for name in tasks)
        specs = [self.state.specs[name] for name in tasks if not self._is_reverted(name)]
        promised = tuple(path for spec in specs for path in (*(spec.creates or ()), *spec.expected))
        return Candidate(top.commit, head, await self.repository.tree_of(head), files, may, promised)

    def may_change_tests(self, task: str) -> bool:
        spec = self.state.specs[task]
        if self._is_reverted(task):
            # Tests that came with the change are dropped with it.
            return True
        return spec.may_change_gates or self.tools.roles.get(spec.role, RoleRules()).may_change_gates

    def _is_reverted(self, task: str) -> bool:
        delivery = self.state.tasks[task].delivery
        return delivery is not None and delivery.prepares_revert

    async def _move(self, head: str, layers: Sequence[_Layer]) -> None:
        """Intent, effect, outcome."""
        tip = layers[-1].commit
        named = [(layer.item.task, layer.commit) for layer in layers]
        if any(not self._still_waits(layer.item) for layer in layers):
            # A person ended it meanwhile; the others form a new batch.
            return
        self._moving = frozenset(name for name, _ in named)
        self._stands.clear()
        try:
            if not await self._intend_and_move(head, tip, named):
                return
        finally:
            self._moving = frozenset()
            self._stands.set()
        for layer in layers:
            self._profiles[layer.item.profile] = None
            self._answer(layer.item, In())

    async def _intend_and_move(self, head: str, tip: str, named: Sequence[tuple[str, str]]) -> bool:
        journal = self.tools.journal
        await journal.record(
            ev.HeadIntended(head, tip, tuple(name for name, _ in named), tuple(commit for _, commit in named))
        )
        if not await self.repository.move_head(head, tip):
            await journal.record(ev.HeadKept(head, "someone else moved the branch", self.name))
            return False
        await self._moved(tip, named)
        return True

    def _still_waits(self, item: Waiting) -> bool:
        task = self.state.tasks[item.task]
        return item.task in self._answers and task.attempt.token == item.token and not is_ended_by_person(task)

    async def _moved(self, tip: str, named: Sequence[tuple[str, str]]) -> None:
        """The tasks that wait must get their results right after this commit: a run whose last task is DONE ends at
        once."""
        journal, commits = self.tools.journal, []
        for name, commit in named:
            task = self.state.tasks[name]
            events: list[ev.Event] = [ev.Merged(name, task.attempts, commit, tip)]
            if not rules_of(self.state, name).delivers:
                detail = f"verified by {self.state.specs[name].verify_profile}; merged as {commit[:12]}"
                events.append(ev.TaskSettled(name, TaskStatus.DONE, detail))
                events += after_success(self.state, task.attempt.account)
            commits.append(journal.report(name, task.attempt.token, *events))
        for written in commits:
            await written

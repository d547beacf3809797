"""Pushes to the branch that all tasks of a repository share: one at a time, with everything merged meanwhile.

Before a push, only its intents are recorded, which name the tip for every task in it. A lead that dies after the push
finds the tip on the remote, and nothing is pushed again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import NoReturn

from ganger.core import events as ev
from ganger.core.control.answers import OPTIONS
from ganger.core.control.removals import LEAVE_REMOVED, PUT_BACK, REMOVED, open_question
from ganger.core.control.revert_offers import offered
from ganger.core.delivery.branch_rules import merge_hint
from ganger.core.delivery.shared_pushes import culprit, is_at_it, mend, needs_tip, under_way, waiting
from ganger.core.model.ledger import Delivery
from ganger.core.model.records import Removal
from ganger.core.planning.repos import graph_of
from ganger.core.scheduling.resume import after_push
from ganger.core.times import unix_time
from ganger.core.vocabulary import BlockReason
from ganger.engine.attempt_outcome import Waits
from ganger.engine.delivery.context import DeliveryContext
from ganger.engine.merging.commit_messages import join_message, trigger_message
from ganger.engine.merging.merge_queue import MergeQueue
from ganger.engine.merging.push_queue import PushFailed, PushQueue
from ganger.engine.merging.set_back import SetBack
from ganger.engine.merging.straightening import Straightening
from ganger.engine.resources.run_resources import one_line
from ganger.errors import GangerError
from ganger.ports.forge import Behind, PushOutcome, Rejected
from ganger.ports.repository import Conflict

_MOST_JOINS = 5
_LOOK_SEC = 1.0


class TakenOut(GangerError):
    """Someone removed what this run had pushed from the branch: it is not pushed again unless a person decides so.

    `tip` is what the branch is at, `tasks` those whose changes were removed without a decision about them so far, and
    `whose` says so."""

    code = "TAKEN_OUT"

    def __init__(self, message: str, tip: str, tasks: Sequence[str], whose: str) -> None:
        super().__init__(message)
        self.tip, self.tasks, self.whose = tip, tuple(tasks), whose


class NoLongerMerged(Exception):
    """The run's branch was set back to before the task's change: it is merged again."""


class NoLongerPushed(Exception):
    """The tip that was pushed with the task is no longer in the remote's branch: the next push includes the task."""


class Train:
    def __init__(self, repo: str, sending: PushQueue, merging: MergeQueue) -> None:
        self.repo, self.sending, self.merging = repo, sending, merging
        self.state, self.journal = sending.state, sending.tools.journal
        self.repository, self.remote = sending.repository, sending.outlet.remote
        self.rules = self.state.chains.rules[repo]
        self.straight, self.back = Straightening(repo, sending), SetBack(repo, sending)
        self._asks = ("", 0)
        self.rerunning, self._offering = asyncio.Lock(), asyncio.Lock()
        self._pushing = asyncio.Lock()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Something was judged, ended, or began to wait: wakes all tasks that wait here."""
        self._changed.set()

    async def ensure_pushed(self, at: DeliveryContext) -> None:
        """Returns when what is tracked is on the remote's branch and CI has something new to judge."""
        while True:
            at.check_interrupts()
            if not at.case.now.work.merged:
                raise NoLongerMerged
            if not needs_tip(at.now):
                return
            at.require_open_chain()
            if self.back.due is not None:
                if not await self._is_kept(at.case.task):
                    await self.wait_for_change()
                continue
            if self._may_push():
                async with self._pushing:
                    if needs_tip(at.now) and self._may_push():
                        await self.sending.patiently(at.case.task, self._push_waiting, self.rules.ci_sec)
                        self.wake()
                        continue
            await self._require_culprit_at_work(at.case.task)
            await self.wait_for_change()

    async def record_loss(self, at: DeliveryContext) -> NoReturn:
        """Records that the tip pushed with it is no longer in the branch."""
        if not await self._is_kept(at.case.task):
            await self.wait_for_change()
            at.check_interrupts()
        elif at.now.pushed:
            await at.case.record(ev.PushLost(at.case.task, at.case.number, at.now.pushed))
        raise NoLongerPushed

    def ask(self, task: str, gone: TakenOut) -> Waits:
        """One question for the whole branch: the first task that meets it asks, the others wait for the answer."""
        known = open_question(self.state, self.repo)
        by, number = (known.task, 0) if known is not None else self._asks
        is_asking = by in self.state.index.running and self.state.tasks[by].attempts == number and by != task
        if known is not None or is_asking:
            return Waits(BlockReason.EXTERNAL, f"{gone.message} (asked about {by})")
        self._asks = (task, self._number(task))
        # Where the branch is gone, the only option is to push everything again.
        options = OPTIONS[REMOVED] if gone.tip else (PUT_BACK,)
        leave = f"{LEAVE_REMOVED} (the run continues without it), " if gone.tip else ""
        by_hand = f"restore it there by hand and ganger retry {task}"
        text = f"{gone.message}{gone.whose}: {leave}{PUT_BACK} (it is pushed again), or {by_hand}?"
        removed = ev.CommitsRemoved(self.repo, gone.tip, gone.tasks)
        return Waits(
            BlockReason.EXTERNAL, gone.message, question=REMOVED, text=text, options=options, before=(removed,)
        )

    async def wait_for_change(self) -> None:
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SEC):
                await self._changed.wait()

    def _may_push(self) -> bool:
        return not under_way(self.state, self.repo) and not culprit(self.state, self.repo)

    async def _require_culprit_at_work(self, task: str) -> None:
        """While the branch is red because of a task that is not working on it, no other task can be proved on it."""
        by = culprit(self.state, self.repo)
        if not by or by == task or is_at_it(self.state.tasks[by]):
            return
        if await self._others_pushed():
            async with self._pushing:
                if not under_way(self.state, self.repo):
                    await self.sending.patiently(task, self._push_waiting, self.rules.ci_sec)
            return
        raise await self.red_because_of(by)

    async def red_because_of(self, name: str) -> Waits:
        """The branch is red because of a task that no longer works on it: a person is asked what becomes of that."""
        task, branch = self.state.tasks.get(name), self.rules.branch
        status = "gone" if task is None else task.status.value
        async with self._offering:
            if task is not None and (asked := offered(self.state, name)):
                await self.journal.record(asked)
        why = f"CI of {branch} is red because of {name}, which is {status}; it continues once that is fixed or reverted"
        return Waits(BlockReason.DEPENDENCY_FAILED, why)

    async def _others_pushed(self) -> bool:
        """Whether someone pushed on top of what this run pushed, perhaps the fix."""
        last = self.state.pushes.tips.get(self.repo, "")
        tip = await self.remote.head(self.rules.branch)
        return tip not in ("", last)

    async def adopt(self, task: str, tip: str, *, onto: str = "") -> None:
        """A tip of the branch holds the task's change: from now on that tip is tracked. `onto` is itself where someone
        else pushed it."""
        now, branch = self._of(task), self.rules.branch
        own = now.own if now.own != tip else ""
        tree = await self.repository.tree_of(tip)
        intent = ev.PushIntended(task, self._number(task), self.repo, branch, tip, tree, own=own, onto=onto)
        self._report(task, intent, ev.Pushed(task, self._number(task), tip, branch, "together"))
        await self.journal.settle()

    def asked_again(self, task: str, sha: str, cause: str) -> list[Delivery]:
        """Of others that have this tip and asked the forge to run it again, since this task waits for CI of it. A tip
        that was made so that CI runs again is no such thing: nobody asked for a second run of that."""
        since, told = self._of(task).pushed_at, f"CI runs again ({cause}, by rerun)"
        others = [one.delivery for name, one in self.state.tasks.items() if name != task]
        found = [now for now in others if now is not None and now.commit == sha]
        return [
            now for now in found if any((one.what, one.commit) == (told, sha) and one.at >= since for one in now.facts)
        ]

    async def tip(self) -> str:
        return await self.remote.head(self.rules.branch)

    async def is_superseded(self, sha: str) -> bool:
        """Whether someone pushed on top of it: a forge then cancels its run, or starts none."""
        tip = await self.remote.head(self.rules.branch)
        return tip not in ("", sha) and await self.remote.holds(sha, self.rules.branch)

    # --- one push -----------------------------------------------------------------------------------------------------

    async def _push_waiting(self) -> None:
        """Records the intents of all included tasks, pushes, and records the outcome."""
        async with self.merging.turn:
            for _ in range(_MOST_JOINS):
                there = await self.sending.gate.unless_stopped(self.remote.head(self.rules.branch))
                if await self._found(there):
                    return
                if not await self._require_kept(there):
                    return
                await self._straighten(there)
                tip, tree, going = await self._choose_tip(there)
                if not going:
                    return
                outcome = await self._push(tip, tree, going, there)
                if not isinstance(outcome, Behind) or not await self._require_kept(outcome.head):
                    return
                await self._take_in(going[0], outcome)
        raise PushFailed(f"{self.rules.branch} of {self.remote.address} moves with every push")

    async def _is_kept(self, task: str) -> bool:
        async with self._pushing:
            return await self.sending.patiently(task, self._look, self.rules.ci_sec)

    async def _look(self) -> bool:
        async with self.merging.turn:
            there = await self.sending.gate.unless_stopped(self.remote.head(self.rules.branch))
            return await self._require_kept(there)

    async def _require_kept(self, there: str) -> bool:
        """Raises TakenOut where a commit of this run is no longer in the branch: someone removed it. False: what a
        person decided to leave out is still in the run's branch."""
        while True:
            known = self._known
            found = await self._kept(there)
            if not isinstance(found, TakenOut):
                return found
            if known == self._known:
                raise found
            # Another task asked meanwhile, and a person has answered: what was found is no longer a question.

    @property
    def _known(self) -> tuple[str, Removal | None]:
        return self.state.pushes.tips.get(self.repo, ""), self.back.due

    async def _kept(self, there: str) -> bool | TakenOut:
        (last, due), branch = self._known, self.rules.branch
        is_due = due is not None
        if not is_due and (not last or there == last):
            return True
        tip = await self.sending.gate.unless_stopped(self.remote.fetch(branch)) if there else ""
        if tip and is_due and not await self.back.undecided(tip):
            is_out = await self.back.carry_out(tip)
            self.wake()
            return is_out
        if tip and not is_due and await self.repository.is_ancestor(last, tip):
            return True
        now = f"is at {tip[:12]} now" if tip else "is gone"
        what = f"{last[:12]}, which this run had pushed, is no longer in {branch} of {self.remote.address}, which {now}"
        names = await self.back.undecided(tip)
        return TakenOut(what, tip, names, await self.back.told(tip, names))

    async def _found(self, there: str) -> bool:
        """Whether an earlier push, whose answer was lost, is the branch's tip."""
        if not there or there == self.state.pushes.tips.get(self.repo):
            return False
        named = [n for n in waiting(self.state, self.repo) if self._of(n).branch and self._of(n).commit == there]
        for name in named:
            self._report(name, ev.Pushed(name, self._number(name), there, self.rules.branch, "found"))
        await self.journal.settle()
        return bool(named)

    async def _choose_tip(self, there: str) -> tuple[str, str, list[str]]:
        """The commit that becomes the branch's tip, its tree, and the tasks whose changes it holds."""
        members = waiting(self.state, self.repo)
        head, last = await self.repository.head(), self.state.pushes.tips.get(self.repo, "")
        if not members:
            return head, "", []
        tip = head
        if self.rules.pushes == "each":
            fresh = [name for name in members if not await self._is_in(self._of(name).own, last)]
            # What was merged before a fix is red without it.
            own = self._of(mend(self.state, self.repo) or (fresh or members)[0]).own
            # What others pushed is joined with everything merged by then.
            tip = own if not there or not await self._is_in(there, head) or await self._is_in(there, own) else head
        if last and await self._is_in(tip, last):
            again = [name for name in members if self._runs_again(name) and self._of(name).pushed == last]
            if not again:
                # Their changes are below that tip, so its verdict covers them.
                return last, await self.repository.tree_of(last), [n for n in members if needs_tip(self._of(n))]
            tip = await self._empty_commit(head, again[0])
        going = [name for name in members if await self._is_in(self._of(name).own, tip)]
        return tip, await self.repository.tree_of(tip), going

    async def _empty_commit(self, head: str, task: str) -> str:
        """An empty commit, so that CI runs again. The same parent and moment give the same commit."""
        now = self._of(task)
        message = trigger_message(self.state.run_id, task, self._number(task), self._cause(task))
        made = await self.repository.empty_commit(head, message, unix_time(now.pushed_at))
        return made.commit

    async def _push(self, tip: str, tree: str, going: Sequence[str], there: str) -> PushOutcome:
        await self._intend(tip, tree, going, there)
        head = await self.repository.head()
        if head != tip and await self.repository.is_ancestor(head, tip):
            await self.sending.move(going[0], head, tip, f"CI of {going[0]} runs again")
        self.sending.gate.check()
        known = tip == self.state.pushes.tips.get(self.repo)
        # Someone may remove it from the branch at this moment, and a push on top of what is left would bring it back.
        onto = there if await self._is_in(there, tip) else ""
        outcome = await self.sending.gate.unless_stopped(self.remote.push(tip, self.rules.branch, onto))
        if isinstance(outcome, Rejected):
            for name in going[:1]:
                self._report(name, ev.PushRefused(name, self._number(name), tip, one_line(outcome.why)))
            await self.journal.settle()
            raise PushFailed(
                f"{self.remote.address} refuses the push: {outcome.why}{merge_hint(outcome.why, self.rules)}"
            )
        if isinstance(outcome, Behind):
            return outcome
        how = "together" if known else "found" if outcome.found else "pushed"
        for name in going:
            self._report(name, ev.Pushed(name, self._number(name), tip, self.rules.branch, how))
            how = how if how == "found" else "together"
        await self.journal.settle()
        if freed := after_push(self.state, self.repo):
            await self.journal.record(*freed)
        return outcome

    async def _intend(self, tip: str, tree: str, going: Sequence[str], there: str) -> None:
        above = graph_of(self.state.chains.rules).upstream.get(self.repo, ())
        known = tuple((one, self.state.pushes.proved[one]) for one in above if one in self.state.pushes.proved)
        for name in going:
            now, cause = self._of(name), self._cause(name)
            if (now.commit, now.branch) == (tip, self.rules.branch) and cause == "change":
                continue
            own = now.own if now.own != tip else ""
            number, branch = self._number(name), self.rules.branch
            self._report(name, ev.PushIntended(name, number, self.repo, branch, tip, tree, cause, known, own, there))
        await self.journal.settle()

    async def _take_in(self, task: str, behind: Behind) -> None:
        """The run's branch and the remote's have diverged: continues from a merge of both."""
        branch = self.rules.branch
        theirs = await self.sending.gate.unless_stopped(self.remote.fetch(branch))
        why = f"{branch} had moved to {behind.head[:12]}"
        if self.rules.is_linear:
            met = await self.straight.onto(task, theirs, why)
            if met is not None:
                await self._refuse_conflict(task, theirs, met)
            return
        head = await self.repository.head()
        message = join_message(self.state.run_id, branch, theirs)
        joined = await self.repository.join(head, theirs, message, unix_time(self.state.tasks[task].attempt.started_at))
        if isinstance(joined, Conflict):
            await self._refuse_conflict(task, theirs, joined)
            return
        going = waiting(self.state, self.repo)
        await self._intend(joined.commit, joined.tree, going, theirs)
        await self.sending.move(task, head, joined.commit, why)

    async def _refuse_conflict(self, task: str, theirs: str, met: Conflict) -> None:
        files = ", ".join(met.files[:10])
        why = f"{self.rules.branch} moved to {theirs[:12]} and conflicts with this run in {files}"
        self._report(task, ev.PushRefused(task, self._number(task), self._of(task).commit, why))
        await self.journal.settle()
        raise PushFailed(why)

    async def _straighten(self, there: str) -> None:
        """Linearizes what was merged before the settings asked for a linear history."""
        members = waiting(self.state, self.repo)
        if not (self.rules.is_linear and there and members):
            return
        head = await self.repository.head()
        if not await self.repository.has(there):
            await self.sending.gate.unless_stopped(self.remote.fetch(self.rules.branch))
        if not await self.repository.is_straight(there, head):
            met = await self.straight.onto(members[0], there, "linear history (delivery.history)")
            if met is not None:
                await self._refuse_conflict(members[0], there, met)

    # --- what is known ------------------------------------------------------------------------------------------------

    def _of(self, task: str) -> Delivery:
        return self.sending.delivery(task)

    def _number(self, task: str) -> int:
        return self.state.tasks[task].attempts

    def _runs_again(self, task: str) -> bool:
        now = self._of(task)
        return now.pushed == now.commit and needs_tip(now)

    def _cause(self, task: str) -> str:
        """Why CI must run again for it, where that is all it waits for."""
        now = self._of(task)
        return now.retrigger.cause if self._runs_again(task) and now.retrigger is not None else "change"

    def _report(self, task: str, *events: ev.Event) -> None:
        self.journal.report(task, self.state.tasks[task].attempt.token, *events)

    async def _is_in(self, commit: str, tip: str) -> bool:
        return bool(commit and tip) and await self.repository.is_ancestor(commit, tip)

"""CI of the commit that the forge merged, and a red one that another task below it is fixing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from ganger.core import events as ev
from ganger.core.delivery.expected_ci import NOT_EXPECTED
from ganger.core.delivery.request_merges import LandedRequest, judge_landed
from ganger.core.logs.ci_logs import faults
from ganger.core.model.ci import Finding, RunFact
from ganger.core.model.ledger import Delivery, RequestRef
from ganger.core.vocabulary import TaskStatus
from ganger.engine.attempt_context import Failed, RunningAttempt
from ganger.engine.delivery.ci.failure import CiTrouble
from ganger.engine.delivery.context import DeliveryContext, passes
from ganger.engine.merging.push_queue import PushQueue

_GOES_ON = (TaskStatus.PENDING, TaskStatus.RUNNING)


class RedBelow:
    def __init__(self, case: RunningAttempt, sending: PushQueue) -> None:
        self.case, self.sending, self.state = case, sending, case.state
        self.repository, self.repo = sending.repository, case.spec.repo
        self._known: dict[str, frozenset[str]] = {}

    async def culprit(self, sha: str, log: str) -> str:
        """The task that introduced the faults of `log` at or below `sha` and is fixing them; empty where there is
        none. Of two tasks that one commit turned red, each fixes it in its own turn."""
        self._known.pop(log, None)
        own_turn_over = any(one.task == self.case.task and one.commit == sha for one in self.state.pushes.verdicts)
        for verdict in self.state.pushes.verdicts:
            if verdict.green or verdict.repo != self.repo or verdict.task == self.case.task:
                continue
            if not await self._mends(verdict.task, sha, log) or (verdict.commit == sha and not own_turn_over):
                continue
            if await self.repository.is_ancestor(verdict.commit, sha):
                return verdict.task
        return ""

    def _delivery(self, task: str) -> Delivery:
        known = self.state.tasks.get(task)
        return known.delivery if known is not None and known.delivery is not None else Delivery()

    async def _mends(self, task: str, sha: str, log: str) -> bool:
        """Whether its last red CI had every fault in `log`, and a fix is under way."""
        now = self._delivery(task)
        if task not in self.state.tasks or self.state.tasks[task].status not in _GOES_ON:
            return False
        if now.needs_no_ci or not (now.fixing or now.commit != sha):
            return False
        own, others = await self._faults(log), await self._faults(now.log)
        return bool(own) and own <= others

    async def _faults(self, log: str) -> frozenset[str]:
        if log not in self._known:
            self._known[log] = await asyncio.to_thread(_read, self.case.tools.folder.path / log) if log else frozenset()
        return self._known[log]

    async def is_fixed(self, sha: str, culprit: str, log: str, most_sec: float) -> bool:
        """Waits for the fix. False where there was none."""
        clock, since, looked = self.case.tools.clock, self.case.tools.clock.monotonic(), ""
        while clock.monotonic() - since < most_sec:
            proved = self.state.pushes.proved.get(self.repo, "")
            if proved != looked:
                looked = proved
                if await self._holds(proved, sha):
                    return True
            if not await self._mends(culprit, sha, log):
                newest = next((one.commit for one in reversed(self.state.pushes.verdicts) if one.task == culprit), "")
                return await self._holds(newest, sha) or self._is_done(culprit)
            await self.sending.pause(self.sending.outlet.poll_sec)
        return False

    async def _holds(self, commit: str, sha: str) -> bool:
        return commit not in ("", sha) and await self.repository.is_ancestor(sha, commit)

    def _is_done(self, task: str) -> bool:
        known, now = self.state.tasks.get(task), self._delivery(task)
        return known is not None and (known.status is TaskStatus.DONE or now.needs_no_ci)


def _read(path: Path) -> frozenset[str]:
    """A log that cannot be read names no fault."""
    try:
        return faults(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return frozenset()


_ANSWER_SEC = 2.0


class LandedCi:
    def __init__(self, at: DeliveryContext, trouble: CiTrouble) -> None:
        self.at, self.trouble = at, trouble
        self.below = RedBelow(at.case, at.sending)

    async def follow(self) -> None:
        """Raises Failed where CI of the merged commit is red."""
        known = self.at.now.request
        if known is None or not known.merged or known.settled or not self.at.rules.follows_ci:
            return
        if self.at.needs_no_request or self.at.now.green == known.merged or known.merged == known.tested:
            return
        verdict, finding, runs = await self._judged(known.merged)
        if verdict is LandedRequest.RED:
            await self._red(known, finding, runs)
        elif verdict is LandedRequest.GREEN:
            await self.at.case.record(*self._moved(known, self.at.rules.branch), *self._green(known, finding, runs))
        elif known.same or self._needed_none(known):
            await self._stands(known, finding.why)
        else:
            why = f"{known.merged[:12]} holds more than what was tested, and CI gave no verdict on it: {finding.why}"
            raise self.at.outside("landed untested", self.at.hinted(why, "look at CI of that branch"))

    def _needed_none(self, known: RequestRef) -> bool:
        """Whether no CI was expected of the change itself; everything else in the commit was in the target before."""
        now = self.at.now
        return now.waived == known.tested and now.waived_cause == NOT_EXPECTED

    async def _stands(self, known: RequestRef, why: str) -> None:
        await self.at.case.record(ev.LandedUnjudged(self.at.case.task, self.at.case.number, known.merged, why))

    async def _judged(self, sha: str) -> tuple[LandedRequest, Finding, tuple[RunFact, ...]]:
        """Waits. That no run starts is believed only after there was time for one."""
        assert self.at.following is not None
        clock, rules, seen = self.at.tools.clock, self.at.rules, 0
        since, unsure = clock.monotonic(), not rules.required_jobs
        self.at.following.begin(sha)
        try:
            while True:
                self.at.check_interrupts()
                spent = clock.monotonic() - since
                wait = min(_ANSWER_SEC, self.at.outlet.poll_most_sec, max(0.05, rules.appear_sec - spent))
                look = await self.at.following.look(sha, (), after=seen, wait_sec=wait)
                seen = look.version
                if look.trouble is not None and not passes(look.trouble):
                    raise look.trouble
                verdict, finding = judge_landed(sha, look.runs, rules.ci_rules)
                spent = clock.monotonic() - since
                early = spent < rules.appear_sec
                if look.looks and (
                    verdict is LandedRequest.RED or (verdict is LandedRequest.GREEN and not (unsure and early))
                ):
                    return verdict, finding, look.runs
                if look.looks and not early and (verdict is LandedRequest.NONE or not look.runs):
                    return LandedRequest.NONE, finding, look.runs
                if spent >= rules.ci_most_sec:
                    return LandedRequest.NONE, finding, look.runs
        finally:
            self.at.following.forget(sha)

    def _moved(self, known: RequestRef, branch: str) -> list[ev.Event]:
        """Nothing where that is already recorded."""
        if self.at.now.commit == known.merged:
            return []
        task, number = self.at.case.task, self.at.case.number
        return [ev.TrackingMoved(task, number, known.merged, branch, known.tested)]

    def _seen(self, sha: str, finding: Finding, runs: Sequence[RunFact]) -> ev.CiSeen:
        case, ours = self.at.case, tuple(run for run in runs if run.sha == sha)
        told = (finding.ci.value, finding.why, finding.passed, finding.total, finding.current, finding.mirror)
        return ev.CiSeen(case.task, case.number, sha, ours, *told, self._source)

    @property
    def _source(self) -> str:
        return self.at.following.forge.name if self.at.following is not None else ""

    def _green(self, known: RequestRef, finding: Finding, runs: Sequence[RunFact]) -> list[ev.Event]:
        case, sha = self.at.case, known.merged
        why = f"landed: {finding.passed} of {finding.total} required jobs succeeded"
        events: list[ev.Event] = [
            self._seen(sha, finding, runs),
            ev.CiJudged(case.task, case.number, sha, "green", why, self._source),
        ]
        if mirror := self.at.rules.ci_rules.mirror_job:
            events.append(ev.MirrorProved(case.task, case.number, sha, mirror, finding.mirror))
        if case.spec.repo in case.state.chains.broken:
            events.append(ev.ChainCleared(case.spec.repo, sha))
        return events

    async def _red(self, known: RequestRef, finding: Finding, runs: tuple[RunFact, ...]) -> None:
        """The fault is this task's unless a commit below has the same one: those are judged first."""
        sha, most_sec = known.merged, self.at.rules.ci_most_sec
        await self._below_are_judged(sha)
        problem = await self.trouble.red(sha, finding, runs)
        log = log_of(problem)
        culprit = await self.below.culprit(sha, log) if log else ""
        if culprit and await self.below.is_fixed(sha, culprit, log, most_sec):
            await self._stands(known, f"{finding.why}, as below it: {culprit} fixed it")
            return
        problem.before = (
            *self._moved(known, self.at.rules.branch),
            self._seen(sha, finding, runs),
            *problem.before,
        )
        raise problem

    async def _below_are_judged(self, sha: str) -> None:
        clock, since = self.at.tools.clock, self.at.tools.clock.monotonic()
        while clock.monotonic() - since < self.at.rules.ci_most_sec and await self._unjudged_below(sha):
            await self.at.sending.pause(self.at.outlet.poll_sec)

    async def _unjudged_below(self, sha: str) -> bool:
        state = self.at.case.state
        for name in state.index.delivering - {self.at.case.task}:
            now = self.at.sending.delivery(name)
            known = now.request
            if known is None or not known.merged or known.settled or state.specs[name].repo != self.at.case.spec.repo:
                continue
            if known.merged in (now.green, known.tested):
                continue
            if await self.at.sending.repository.is_ancestor(known.merged, sha):
                return True
        return False

    async def tried(self, sha: str, branch: str) -> Failed | None:
        """What CI says of a commit that the forge's merge queue tried and did not merge: a red verdict, or none."""
        tested = self.at.now.commit
        verdict, finding, runs = await self._judged(sha)
        if verdict is not LandedRequest.RED:
            return None
        problem = await self.trouble.red(sha, finding, runs)
        moved = ev.TrackingMoved(self.at.case.task, self.at.case.number, sha, branch, tested, "queue")
        problem.before = (moved, self._seen(sha, finding, runs), *problem.before)
        return problem


def log_of(problem: Failed) -> str:
    """The log that is kept with a red verdict."""
    return next((event.log for event in problem.before if isinstance(event, ev.CiJudged)), "")

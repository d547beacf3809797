"""Runs CI again for a commit: by the forge, or else by an empty commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ganger.core import events as ev
from ganger.core.delivery.expected_ci import NO_RUN
from ganger.core.delivery.shared_pushes import CANCEL, MEND, NEW_TIP, STUCK, SUPERSEDED, is_free, was_stuck
from ganger.core.model.ci import OVER, UNSETTLED, Ci, Finding, RunFact, Word, chosen, judge, mark
from ganger.core.model.ledger import TAKEN_UP
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.engine.attempt_outcome import Waits
from ganger.engine.delivery.ci.expected import ExpectedCi
from ganger.engine.delivery.ci.wait import NEVER_STARTED
from ganger.engine.delivery.context import DeliveryContext, passes
from ganger.engine.delivery.pollers.ci import CiLook
from ganger.engine.delivery.push import Pushing
from ganger.errors import ForgeUnreachable

_MOST_SUPERSEDED = 20
_WHAT_STARTS_IT = (
    "does the workflow run on pushes to this branch, does a path or branch filter leave it out, are Actions on, is "
    "there a runner, does the commit message skip CI?"
)


class CiAgain:
    def __init__(self, at: DeliveryContext, pushing: Pushing, expected: ExpectedCi) -> None:
        self.at, self.pushing, self.expected = at, pushing, expected
        self._own_turn = asyncio.Lock()

    async def run_again(self, finding: Finding) -> None:
        """D04: once per cause, up to a total limit; never for a red run."""
        now, cause = self.at.now, await self._cause(finding)
        if finding.ci in (Ci.CANCELLED, Ci.ABSENT) and await self.is_superseded():
            return
        vain = await self.expected.no_push_helps(now.commit) if cause == NO_RUN else ""
        if cause == NEVER_STARTED or vain:
            why = f"{finding.why}; {vain}" if vain else finding.why
            raise self._asked("CI never started", self.at.hinted(why, _WHAT_STARTS_IT))
        used = [one for one in now.retriggered if not is_free(one)]
        if cause in used or len(used) >= self.at.rules.retriggers:
            done = f"CI was run again for {', '.join(used)} already" if used else "CI is not rerun automatically here"
            raise self._asked(cause, self.at.hinted(finding.why, f"look at the job on the forge ({done})"))
        if await self._rerun_once(self._runs_of(finding), cause):
            return
        if asker := self._asker(cause):
            done = f"CI was run again for {cause} already, by {asker}"
            raise self._asked(cause, self.at.hinted(finding.why, f"look at the job on the forge ({done})"))
        if await self.expected.goes_by_paths(now.commit):
            why = f"{finding.why}, and an empty commit starts no run, as workflows filter by changed paths"
            raise self._asked(cause, self.at.hinted(why, "run it again on the forge"))
        await self.empty_commit(cause)

    def _asked(self, cause: str, detail: str) -> Exception:
        """On a branch that all share it concerns all: one asks, the others wait for what comes of it."""
        if asker := self._asker(cause):
            return Waits(BlockReason.EXTERNAL, f"{detail} (asked about {asker})")
        return self.at.outside(cause, detail) if self.pushing.train is None else self.at.outside_for_all(cause, detail)

    def _asker(self, cause: str) -> str:
        """The task that is blocked as CI was run again for this already and that changed nothing. Where a person wants
        this one to go on, it does."""
        state, now = self.at.case.state, self.at.now
        taken_up = any((fact.what, fact.commit) == (TAKEN_UP, now.commit) for fact in now.facts)
        if self.pushing.train is None or taken_up:
            return ""
        signature = self.at.outside(cause, "").failed.signature
        names = {one.task for one in state.inbox.questions.values() if one.answer is None} - {self.at.case.task}
        blocked = (name for name in names if state.tasks[name].status is TaskStatus.BLOCKED)
        same = (name for name in blocked if state.tasks[name].failure.signature == signature)
        return next((name for name in same if state.specs[name].repo == self.at.case.spec.repo), "")

    async def _cause(self, finding: Finding) -> str:
        if finding.ci is Ci.CANCELLED:
            async with self.stopping:
                if was_stuck(self.at.case.state, self.at.case.spec.repo, self.at.now.commit):
                    return STUCK
        return finding.cause or finding.ci.value

    @property
    def stopping(self) -> asyncio.Lock:
        """The holder of this lock may stop or restart a run."""
        return self._own_turn if self.pushing.train is None else self.pushing.train.rerunning

    async def stop_stuck(self, sha: str, finding: Finding, waited_sec: float) -> None:
        """D14: a run that waits without progress is stopped once, and restarts as a cancelled one."""
        case, rules = self.at.case, self.at.rules
        used = [one for one in self.at.now.retriggered if not is_free(one)]
        async with self.stopping:
            if was_stuck(case.state, case.spec.repo, sha) or len(used) >= rules.retriggers:
                return
            runs = [run for run in self._runs_of(finding) if run.word not in OVER]
            if not any([await self._stop(run) for run in runs]):
                return
            why = f"CI has not moved for {waited_sec / 60:.0f} min: {finding.why}; stopping it to run it again"
            names = " ".join(run.id for run in runs)
            await case.record(
                ev.LimitWarned(case.task, case.number, "ci_stuck", why),
                ev.RetriggerIntended(case.task, case.number, sha, STUCK, CANCEL, names),
            )

    async def is_superseded_by_others(self) -> bool:
        train = self.pushing.train
        return train is not None and await train.is_superseded(self.at.now.commit)

    async def is_superseded(self) -> bool:
        """Someone pushed on top of it, so the forge cancelled its run or started none: no job failed. Once CI is
        finished with their tip, this run pushes one of its own. Where an empty commit starts no run, theirs is tracked
        if CI judged it as it would have judged this one."""
        train = self.pushing.train
        if train is None or not await self.is_superseded_by_others():
            return False
        times = sum(one.startswith(SUPERSEDED) for one in self.at.now.retriggered)
        if times >= _MOST_SUPERSEDED:
            why = f"others push to {self.at.rules.branch} faster than CI judges it ({times} times)"
            raise self.at.outside("superseded", self.at.hinted(why, "push less often there, or give this run a branch"))
        tip = await train.tip()
        runs = await self._others_judged(tip)
        if await self.expected.goes_by_paths(self.at.now.commit):
            covers = self._is_judged_like_it(tip, runs)
            if covers:
                await train.adopt(self.at.case.task, tip, onto=tip)
            return covers
        await self.empty_commit(f"{SUPERSEDED}{times + 1}")
        return True

    def _is_judged_like_it(self, tip: str, runs: Sequence[RunFact]) -> bool:
        """Whether CI has a verdict on their tip, by the required jobs, or by every workflow that it ran here."""
        rules, now = self.at.rules.ci_rules, self.at.now
        ours = {run.workflow for run in chosen(now.commit, now.runs, rules.events)}
        theirs = {run.workflow for run in chosen(tip, runs, rules.events)}
        is_whole = bool(rules.required) or (bool(ours) and ours <= theirs)
        return is_whole and judge(tip, runs, rules).ci in (Ci.GREEN, Ci.RED)

    async def _others_judged(self, tip: str) -> Sequence[RunFact]:
        """A push on top of their commit could cancel their run."""
        following, clock = self.at.following, self.at.tools.clock
        assert following is not None
        since, seen = clock.monotonic(), 0
        runs: Sequence[RunFact] = ()
        following.begin(tip)
        try:
            while (spent := clock.monotonic() - since) < self.at.rules.ci_sec:
                self.at.check_interrupts()
                look = await following.look(tip, (), after=seen, wait_sec=self.at.outlet.poll_most_sec)
                seen, runs, found = look.version, look.runs, judge(tip, look.runs, self.at.rules.ci_rules).ci
                if found not in UNSETTLED or (found is Ci.ABSENT and spent >= self.at.rules.appear_sec):
                    break
        finally:
            following.forget(tip)
        return runs

    async def empty_commit(self, cause: str) -> None:
        """CI runs again with another commit: an empty one, where nothing else waits to be pushed."""
        task, number = self.at.case.task, self.at.case.number
        self.at.require_open_chain()
        if self.at.needs_no_request:
            # It would go straight to the target.
            raise self._asked(cause, self.at.hinted(self.at.now.why, f"run CI of {self.at.rules.branch} again"))
        if self.pushing.train is not None:
            await self.at.case.record(ev.RetriggerIntended(task, number, self.at.now.commit, cause, NEW_TIP))
            self.pushing.train.wake()
        else:
            await self.at.sending.again(task, cause)
        await self.pushing.push()
        await self.at.case.record(ev.Retriggered(task, number, self.at.now.commit, cause, NEW_TIP))

    def _runs_of(self, finding: Finding) -> list[RunFact]:
        """Every run with one of the jobs that explain the finding; the newest run where a job belongs to none."""
        runs = chosen(self.at.now.commit, self.at.now.runs, self.at.rules.events)
        return [run for run in runs if set(finding.jobs).intersection(run.jobs)] or runs[-1:]

    async def _rerun_once(self, runs: Sequence[RunFact], cause: str) -> bool:
        """Several tasks can share one tip: the first of them requests its runs, the others record that."""
        train = self.pushing.train
        if train is None:
            return await self._rerun(runs, cause)
        async with train.rerunning:
            case, sha = self.at.case, self.at.now.commit
            asked = train.asked_again(case.task, sha, cause)
            if not asked:
                return await self._rerun(runs, cause)
            if {mark(run) for run in runs} & {mark(run) for one in asked for run in one.runs}:
                # It ran again already, and this is what came of it.
                done = f"look at the job on the forge (CI was run again for {cause} already)"
                raise self._asked(cause, self.at.hinted(self.at.now.why, done))
            names = " ".join(run.id for run in runs)
            intended = ev.RetriggerIntended(case.task, case.number, sha, cause, "rerun", names)
            await case.record(intended, ev.Retriggered(case.task, case.number, sha, cause, "rerun"))
            return True

    async def _rerun(self, runs: Sequence[RunFact], cause: str, *, asked: bool = False) -> bool:
        """Whether the forge runs them again. `asked`: the request is already recorded."""
        case, sha = self.at.case, self.at.now.commit
        if runs and not asked:
            names = " ".join(run.id for run in runs)
            await case.record(ev.RetriggerIntended(case.task, case.number, sha, cause, "rerun", names))
        if not any([await self._run_again(run) for run in runs]):
            return False
        await case.record(ev.Retriggered(case.task, case.number, sha, cause, "rerun"))
        return True

    async def _stop(self, run: RunFact) -> bool:
        assert self.at.following is not None
        forge = self.at.following.forge
        call = self.at.unless_stopped
        return await self.at.sending.patiently(self.at.case.task, lambda: call(forge.cancel(run)), self.at.rules.ci_sec)

    async def _run_again(self, run: RunFact) -> bool:
        assert self.at.following is not None
        forge = self.at.following.forge
        call = self.at.unless_stopped
        return await self.at.sending.patiently(self.at.case.task, lambda: call(forge.rerun(run)), self.at.rules.ci_sec)

    async def finish_retrigger(self) -> None:
        """An earlier lead requested CI to run again, and whether it does is unknown."""
        now = self.at.now
        wanted = now.retrigger
        if wanted is not None and wanted.how == "rerun" and wanted.sha == now.commit:
            await self._look_at_rerun(wanted.run, wanted.cause)
        elif wanted is not None and wanted.how == NEW_TIP:
            await self.at.case.record(
                ev.Retriggered(self.at.case.task, self.at.case.number, now.commit, wanted.cause, NEW_TIP)
            )
        elif self._fixes_nothing():
            cause = f"{MEND}{self.at.case.now.counters.ci_fixes + self.at.case.now.counters.reworks}"
            await self._again_for_mend(cause)

    async def _look_at_rerun(self, names: str, cause: str) -> None:
        """Only the forge knows which of them run again, so its answer is waited for."""
        assert self.at.following is not None
        sha, known = self.at.now.commit, {run.id: run for run in self.at.now.runs}
        self.at.following.begin(sha)
        try:
            look = await self.at.sending.patiently(
                self.at.case.task, lambda: self._first_look(sha), self.at.rules.ci_sec
            )
        finally:
            self.at.following.forget(sha)
        fresh = {run.id: run for run in look.runs}
        wanted = names.split()
        still = [known[name] for name in wanted if name in known and not _goes_again(known[name], fresh.get(name))]
        if len(still) == len(wanted):
            await self._rerun(still, cause, asked=True)
            return
        for run in still:
            await self._run_again(run)
        await self.at.case.record(ev.Retriggered(self.at.case.task, self.at.case.number, sha, cause, "rerun"))

    async def _first_look(self, sha: str) -> CiLook:
        assert self.at.following is not None
        look = await self.at.following.look(sha, (), after=0, wait_sec=self.at.outlet.poll_most_sec)
        if look.trouble is not None and not passes(look.trouble):
            raise look.trouble
        if not look.looks:
            raise ForgeUnreachable("the forge did not say whether CI runs again")
        return look

    def _fixes_nothing(self) -> bool:
        """CI was red, and a worker found nothing to change: the code may not be the cause."""
        return self.at.now.fixing and self.at.now.pushed == self.at.now.commit

    async def _again_for_mend(self, cause: str) -> None:
        runs = chosen(self.at.now.commit, self.at.now.runs, self.at.rules.events)
        bad = [run for run in runs if any(job.word is not Word.SUCCESS for job in run.jobs)]
        if not await self._rerun(bad or runs[-1:], cause):
            await self.empty_commit(cause)


def _goes_again(before: RunFact, now: RunFact | None) -> bool:
    return now is not None and (mark(now) != mark(before) or now.word not in OVER)

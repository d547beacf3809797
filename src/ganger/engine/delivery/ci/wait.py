"""Waits for what CI says of one pushed commit, until the finding is final or the time limit is reached."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.delivery.expected_ci import NO_RUN
from ganger.core.model.ci import MISSING_JOB, UNSETTLED, Ci, Finding, RunFact, Word, is_stale, judge, with_unread
from ganger.core.model.ledger import TAKEN_UP
from ganger.core.times import unix_time
from ganger.engine.delivery.ci.expected import ExpectedCi
from ganger.engine.delivery.context import DeliveryContext, passes
from ganger.engine.delivery.pollers.ci import CiLook

NEVER_STARTED = "never_started"
_SOONEST_SEC = 0.05
_ANSWER_SEC = 2.0


Unstick = Callable[[str, Finding, float], Awaitable[None]]


class CiWaiting:
    def __init__(self, at: DeliveryContext, expected: ExpectedCi, unstick: Unstick) -> None:
        """`unstick` is called when CI waits without progress: with the commit, the finding, and for how long."""
        self.at, self.expected, self.unstick = at, expected, unstick
        self._since, self._early = ("", 0.0, 0.0), 0
        self._moved: tuple[object, float] = ((), 0.0)

    async def settled(self, sha: str) -> Finding:
        """Waits until the finding is final or the time limit is reached."""
        assert self.at.following is not None
        seen, late, green, self._early = 0, -1, -1, 0
        title = (await self.at.sending.repository.message(sha)).partition("\n")[0].strip()
        unexpected = await self.expected.unexpected(sha)
        while True:
            self.at.check_interrupts()
            look = await self.at.following.look(sha, self.at.now.runs, after=seen, wait_sec=self._wait_sec())
            seen = look.version
            if look.trouble is not None and not passes(look.trouble):
                raise look.trouble
            if self.at.now.commit != sha:
                return Finding(Ci.WAITING, f"{sha[:12]} is not what is tracked any more")
            runs = [run for run in look.runs if not is_stale(run, self.at.now.stale)]
            runs = [with_unread(run, title, self.at.rules.required_jobs) for run in runs]
            old = [_held(run) for run in look.runs if is_stale(run, self.at.now.stale)]
            finding = self._unless_early(judge(sha, [*runs, *old], self.at.rules.ci_rules), look)
            if unexpected and finding.ci is Ci.ABSENT:
                finding = replace(finding, why=f"{finding.why}, and none is expected: {unexpected}")
            if look.looks:
                await self.seen(sha, runs, finding)
                await self._mind_stuck(sha, runs, finding)
            unsure = finding.ci is Ci.GREEN and not self.at.rules.required_jobs
            if not look.looks:
                # What an earlier lead saw may have changed since: it counts only after one new look.
                pass
            elif unsure and green < 0:
                # The number of workflows is unknown: another may start a moment later.
                green = look.looks
                self.at.following.nudge()
            elif finding.ci not in UNSETTLED and not (unsure and look.looks <= green):
                return finding
            over = await self._mind_time(sha, look, finding, late, begun=not old)
            if isinstance(over, Finding):
                return over
            late = over

    async def _mind_stuck(self, sha: str, runs: Sequence[RunFact], finding: Finding) -> None:
        """Whether anything moved since the last look; CI that only waits for `ci_sec` is stuck."""
        now, stand = self.at.tools.clock.monotonic(), (sha, self.at.now.pushed_at, *map(_stand, runs))
        if stand != self._moved[0] or finding.ci is not Ci.WAITING or not runs:
            self._moved = (stand, now)
            return
        waited = now - self._moved[1]
        if waited >= self.at.rules.ci_sec:
            self._moved = (stand, now)
            await self.unstick(sha, finding, waited)

    def _unless_early(self, finding: Finding, look: CiLook) -> Finding:
        """Runs of one push do not all appear at once: a missing job is believed only after there was time for it, and
        one more look."""
        if not finding.jobs or any(job.reason != MISSING_JOB for job in finding.jobs):
            return finding
        if self._spent_sec() < self.at.rules.appear_sec:
            self._early = look.looks + 1
        return finding if look.looks > self._early else replace(finding, ci=Ci.WAITING, why=f"{finding.why} so far")

    def _wait_sec(self) -> float:
        """Seconds until the next deadline that changes the finding."""
        spent = self._spent_sec()
        rules = self.at.rules
        moments = (rules.appear_sec, rules.ci_warn_sec, rules.ci_sec, rules.ci_most_sec)
        ahead = [moment - spent for moment in moments if moment > spent]
        return max(_SOONEST_SEC, min([_ANSWER_SEC, self.at.outlet.poll_most_sec, *ahead]))

    def _spent_sec(self) -> float:
        """Since the push, or since CI was asked to run again. Setting the clock meanwhile changes nothing."""
        clock, pushed_at = self.at.tools.clock, self.at.now.pushed_at
        if self._since[0] != pushed_at:
            self._since = (pushed_at, clock.monotonic(), max(0.0, clock.now() - unix_time(pushed_at)))
        _, begun, before = self._since
        return before + clock.monotonic() - begun

    async def seen(self, sha: str, runs: Sequence[RunFact], finding: Finding) -> None:
        now, ours = self.at.now, tuple(run for run in runs if run.sha == sha)
        if now.commit != sha or (now.runs, now.finding, now.why) == (ours, finding.ci.value, finding.why):
            return
        assert self.at.following is not None
        await self.at.case.record(
            ev.CiSeen(
                self.at.case.task,
                self.at.case.number,
                sha,
                ours,
                finding.ci.value,
                finding.why,
                finding.passed,
                finding.total,
                finding.current,
                finding.mirror,
                self.at.following.forge.name,
            )
        )

    async def _mind_time(self, sha: str, look: CiLook, finding: Finding, late: int, *, begun: bool) -> int | Finding:
        """D14: CI is looked at again before its time counts as over, and continues while it makes progress. `begun`:
        the requested rerun has started."""
        spent, rules, task, number = self._spent_sec(), self.at.rules, self.at.case.task, self.at.case.number
        absent = (finding.ci is Ci.ABSENT or not begun) and spent >= rules.appear_sec
        if not absent and spent < rules.ci_most_sec:
            await self._warn(spent, finding)
            return -1
        if late < 0:
            assert self.at.following is not None
            self.at.following.nudge()
            return look.looks
        if look.looks <= late:
            # A forge that does not answer does not say that there is no run.
            if spent >= 2 * rules.ci_most_sec:
                raise self.at.outside("forge unreachable", "the forge did not answer")
            return late
        if absent:
            return self._never_started(sha)
        minutes = rules.ci_most_sec / 60
        why = f"CI of {sha[:12]} is not finished after {minutes:.0f} min: {finding.why}"
        await self.at.case.record(ev.LimitWarned(task, number, "ci_most_sec", why))
        raise self.at.outside("CI stuck", self.at.hinted(why, "see what CI waits for: a runner, an approval?"))

    async def _warn(self, spent: float, finding: Finding) -> None:
        """Once each, across all leads."""
        task, number, rules = self.at.case.task, self.at.case.number, self.at.rules
        if spent >= rules.ci_warn_sec and not self._was_warned("ci_warn_sec"):
            text = f"CI has taken {spent / 60:.0f} min: {finding.why}"
            await self.at.case.record(ev.LimitWarned(task, number, "ci_warn_sec", text))
        if spent >= rules.ci_sec and not self._was_warned("ci_sec"):
            until = round(unix_time(self.at.now.pushed_at) + rules.ci_most_sec, 3)
            why = f"CI has taken {spent / 60:.0f} min and continues: {finding.why}"
            await self.at.case.record(ev.LimitExtended(task, number, "ci_sec", until, why))

    def _was_warned(self, limit: str) -> bool:
        key = (self.at.case.task, self.at.now.commit, self.at.now.pushed_at, limit)
        if key in self.at.tools.warned:
            return True
        self.at.tools.warned.add(key)
        return False

    def _never_started(self, sha: str) -> Finding:
        """A push of what is already there starts no run, so one is requested; the same after a person has made sure
        that CI can start. Otherwise another push does not help (D05)."""
        own = [fact.what for fact in self.at.now.facts if fact.commit == sha]
        if TAKEN_UP in own or any(what.startswith("found on") for what in own):
            return Finding(Ci.ABSENT, f"no run started for {sha[:12]}, which was on the remote before", cause=NO_RUN)
        return Finding(Ci.ABSENT, f"CI never started for {sha[:12]} on {self.at.now.branch}", cause=NEVER_STARTED)


def _stand(run: RunFact) -> object:
    return run.id, run.attempt, run.word, run.raw, tuple((job.id, job.name, job.word, job.raw) for job in run.jobs)


def _held(run: RunFact) -> RunFact:
    """A run that still shows its state from before the rerun request: nothing is known of it yet."""
    return replace(run, word=Word.WAITING, raw="", reason="", jobs=(), asked="")

"""Waits for what CI says of one pushed commit, until time alone brings nothing else or time is over."""

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
_HEED_SEC = 2.0


Unstick = Callable[[str, Finding, float], Awaitable[None]]


class CiWaiting:
    def __init__(self, at: DeliveryContext, expected: ExpectedCi, unstick: Unstick) -> None:
        """`unstick` is told of CI that waits and does not move: the commit, what was found, and for how long."""
        self.at, self.expected, self.unstick = at, expected, unstick
        self._since, self._early = ("", 0.0, 0.0), 0
        self._moved: tuple[object, float] = ((), 0.0)

    async def settled(self, sha: str) -> Finding:
        """Waits until time alone does not bring another finding, or it is over time."""
        assert self.at.following is not None
        seen, late, green, self._early = 0, -1, -1, 0
        title = (await self.at.sending.repository.message(sha)).partition("\n")[0].strip()
        unexpected = await self.expected.unexpected(sha)
        while True:
            self.at.heed()
            look = await self.at.following.look(sha, self.at.now.runs, after=seen, wait_sec=self._wait_sec())
            seen = look.version
            if look.trouble is not None and not passes(look.trouble):
                raise look.trouble
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
                # What an earlier lead saw may have changed since: it is no finding before it was looked at once.
                pass
            elif unsure and green < 0:
                # Nothing says which workflows there are: another may begin a moment later.
                green = look.looks
                self.at.following.nudge()
            elif finding.ci not in UNSETTLED and not (unsure and look.looks <= green):
                return finding
            over = await self._mind_time(sha, look, finding, late, begun=not old)
            if isinstance(over, Finding):
                return over
            late = over

    async def _mind_stuck(self, sha: str, runs: Sequence[RunFact], finding: Finding) -> None:
        """Whether anything moved since the last look; what only waits for `ci_sec` is stuck."""
        now, stand = self.at.tools.clock.monotonic(), (sha, self.at.now.pushed_at, *map(_stand, runs))
        if stand != self._moved[0] or finding.ci is not Ci.WAITING or not runs:
            self._moved = (stand, now)
            return
        waited = now - self._moved[1]
        if waited >= self.at.rules.ci_sec:
            self._moved = (stand, now)
            await self.unstick(sha, finding, waited)

    def _unless_early(self, finding: Finding, look: CiLook) -> Finding:
        """Runs of one push do not all appear at once: what only misses a job is believed when there was time for it,
        and a look after that."""
        if not finding.jobs or any(job.reason != MISSING_JOB for job in finding.jobs):
            return finding
        if self._spent_sec() < self.at.rules.appear_sec:
            self._early = look.looks + 1
        return finding if look.looks > self._early else replace(finding, ci=Ci.WAITING, why=f"{finding.why} so far")

    def _wait_sec(self) -> float:
        """Until the next moment at which time itself says something."""
        spent = self._spent_sec()
        rules = self.at.rules
        moments = (rules.appear_sec, rules.ci_warn_sec, rules.ci_sec, rules.ci_most_sec)
        ahead = [moment - spent for moment in moments if moment > spent]
        return max(_SOONEST_SEC, min([_HEED_SEC, self.at.outlet.poll_most_sec, *ahead]))

    def _spent_sec(self) -> float:
        """Since the push, or since CI was asked to run again. A clock that is set meanwhile changes nothing."""
        clock, pushed_at = self.at.tools.clock, self.at.now.pushed_at
        if self._since[0] != pushed_at:
            self._since = (pushed_at, clock.monotonic(), max(0.0, clock.now() - unix_time(pushed_at)))
        _, begun, before = self._since
        return before + clock.monotonic() - begun

    async def seen(self, sha: str, runs: Sequence[RunFact], finding: Finding) -> None:
        now, ours = self.at.now, tuple(run for run in runs if run.sha == sha)
        if (now.runs, now.finding, now.why) == (ours, finding.ci.value, finding.why):
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
        """D14: CI is looked at once more before its time counts as over, and goes on while it is at work. `begun`:
        what was asked to run again does."""
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
            # A forge that does not answer has not said that there is no run.
            if spent >= 2 * rules.ci_most_sec:
                raise self.at.outside("forge unreachable", "the forge did not answer")
            return late
        if absent:
            return self._never_started(sha)
        minutes = rules.ci_most_sec / 60
        why = f"CI of {sha[:12]} is not through after {minutes:.0f} min: {finding.why}"
        await self.at.case.record(ev.LimitWarned(task, number, "ci_most_sec", why))
        raise self.at.outside("CI stuck", self.at.told(why, "see what CI waits for: a runner, an approval?"))

    async def _warn(self, spent: float, finding: Finding) -> None:
        """Once each, whoever leads."""
        task, number, rules = self.at.case.task, self.at.case.number, self.at.rules
        if spent >= rules.ci_warn_sec and not self._was_warned("ci_warn_sec"):
            text = f"CI has taken {spent / 60:.0f} min: {finding.why}"
            await self.at.case.record(ev.LimitWarned(task, number, "ci_warn_sec", text))
        if spent >= rules.ci_sec and not self._was_warned("ci_sec"):
            until = round(unix_time(self.at.now.pushed_at) + rules.ci_most_sec, 3)
            why = f"CI has taken {spent / 60:.0f} min and goes on: {finding.why}"
            await self.at.case.record(ev.LimitExtended(task, number, "ci_sec", until, why))

    def _was_warned(self, limit: str) -> bool:
        key = (self.at.case.task, self.at.now.commit, self.at.now.pushed_at, limit)
        if key in self.at.tools.warned:
            return True
        self.at.tools.warned.add(key)
        return False

    def _never_started(self, sha: str) -> Finding:
        """A push of what was there already starts no run, so one is started; and so it is once a person has seen to it
        that CI can start. Else another push is nobody's cure (D05)."""
        own = [fact.what for fact in self.at.now.facts if fact.commit == sha]
        if TAKEN_UP in own or any(what.startswith("found on") for what in own):
            return Finding(Ci.ABSENT, f"no run began for {sha[:12]}, which was on the remote before", cause=NO_RUN)
        return Finding(Ci.ABSENT, f"CI never started for {sha[:12]} on {self.at.now.branch}", cause=NEVER_STARTED)


def _stand(run: RunFact) -> object:
    return run.id, run.attempt, run.word, run.raw, tuple((job.id, job.name, job.word, job.raw) for job in run.jobs)


def _held(run: RunFact) -> RunFact:
    """One that still tells how it was before it was asked to run again: nothing is known of it yet."""
    return replace(run, word=Word.WAITING, raw="", reason="", jobs=(), asked="")

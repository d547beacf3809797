"""The target without this run, where it is red: judged once, and compared with what is red later."""

from __future__ import annotations

from collections.abc import Sequence

from ganger.core import events as ev
from ganger.core.model.ci import UNSETTLED, Ci, Finding, RunFact, judge
from ganger.core.model.ledger import TargetVerdict
from ganger.core.vocabulary import PushStyle
from ganger.engine.delivery.ci.failure import CiTrouble
from ganger.engine.delivery.ci.own_commits import OwnCommits
from ganger.engine.delivery.context import DeliveryContext, passes
from ganger.engine.resources.run_resources import one_line
from ganger.errors import ForgeError

CAUSE = "base_red"
_MOST_FAULTS = 200
_LOOKS = 3


class RedBefore:
    def __init__(self, at: DeliveryContext, trouble: CiTrouble) -> None:
        self.at, self.trouble, self.repo = at, trouble, at.case.spec.repo
        self.own = OwnCommits(at.case.state, self.repo, at.sending.repository)

    async def same(self, sha: str, finding: Finding, runs: Sequence[RunFact] | None = None) -> TargetVerdict | None:
        """The red base that has every fault of this red commit, by the same jobs and by their logs; None where there
        is none, or the logs do not show it."""
        base = await self._verdict(sha)
        if base is None or base.verdict != "red" or not {job.name for job in finding.jobs} <= set(base.jobs):
            return None
        found = await self.trouble.faults(sha, finding, self.at.now.runs if runs is None else runs)
        return base if found and found <= set(base.faults) else None

    async def has_more(self, sha: str, finding: Finding) -> bool:
        """Whether its logs show a fault that was not there before."""
        base = await self._verdict(sha)
        if base is None or base.verdict != "red":
            return False
        found = await self.trouble.faults(sha, finding, self.at.now.runs)
        return bool(found and base.faults) and not found <= set(base.faults)

    async def waive(self, sha: str, base: TargetVerdict, finding: Finding) -> None:
        case, jobs = self.at.case, ", ".join(job.name for job in finding.jobs)
        count = len(base.faults)
        why = f"{one_line(jobs, 200)} fails as before this run at {base.commit[:12]} ({base.url or 'no address'})"
        why = f"{why}, and its log has no fault that was not there ({count} known)"
        await case.record(ev.CiWaived(case.task, case.number, sha, CAUSE, why, base.commit))

    async def note(self, sha: str) -> str:
        """For the worker that fixes it."""
        base = await self._verdict(sha)
        if base is None or base.verdict != "red":
            return ""
        jobs = one_line(", ".join(base.jobs), 300)
        return (
            f"CI of {self.at.rules.branch} was red before this run's changes came, at {base.commit[:12]}: {jobs} "
            f"failed. Fix those faults as well, so that the branch is green. {base.url}".strip()
        )

    async def _verdict(self, sha: str) -> TargetVerdict | None:
        known = self.at.case.state.pushes.bases.get(self.repo)
        if known is not None or self.at.rules.forge == "command":
            return known
        try:
            base = await self._below(sha)
            return await self._judged(base) if base else None
        except ForgeError:
            return None

    async def _below(self, sha: str) -> str:
        """The target's commit before this run; empty where it is no longer known."""
        state, branch = self.at.case.state, self.at.rules.branch
        if self.at.rules.style is PushStyle.REQUEST:
            target = await self.at.unless_stopped(self.at.outlet.remote.fetch(branch))
            base = await self.at.sending.repository.fork_point(sha, target) if target else ""
        else:
            base = await self.own.below(sha)
        ours = {one.commit for one in state.pushes.verdicts if one.repo == self.repo}
        for task in state.tasks.values():
            ours |= {task.delivery.pushed, *task.delivery.landed} if task.delivery is not None else set()
        if base in ours or (self.at.rules.style is PushStyle.BRANCH and await self.own.any_in(base)):
            return ""
        return base

    async def _judged(self, base: str) -> TargetVerdict | None:
        following = self.at.following
        assert following is not None
        seen, finding = 0, Finding(Ci.ABSENT, "")
        runs: tuple[RunFact, ...] = ()
        following.begin(base)
        try:
            for _ in range(_LOOKS):
                look = await following.look(base, (), after=seen, wait_sec=self.at.outlet.poll_most_sec)
                if look.trouble is not None and not passes(look.trouble):
                    raise look.trouble
                seen, runs = look.version, look.runs
                finding = judge(base, runs, self.at.rules.ci_rules)
                if look.looks and finding.ci not in UNSETTLED:
                    break
        finally:
            following.forget(base)
        return None if finding.ci in UNSETTLED else await self._keep(base, finding, runs)

    async def _keep(self, base: str, finding: Finding, runs: Sequence[RunFact]) -> TargetVerdict:
        red = finding.ci is Ci.RED
        faults = await self.trouble.faults(base, finding, runs) if red else frozenset()
        assert self.at.following is not None
        urls = [run.url for run in runs if run.url]
        await self.at.tools.journal.record(
            ev.TargetJudged(
                self.repo,
                base,
                "red" if red else finding.ci.value,
                one_line(finding.why, 300),
                tuple(job.name for job in finding.jobs),
                urls[-1] if urls else "",
                self.at.following.forge.name,
                tuple(sorted(faults))[:_MOST_FAULTS],
            )
        )
        return self.at.case.state.pushes.bases[self.repo]

"""One task's way from the run's branch to DONE: push, change request, CI of exactly this commit, mirror, review.

Every step looks into the ledger first, so a new lead, or a later attempt, goes on where it stands:

- intended, perhaps pushed: the remote tells;
- pushed: CI is looked at anew, and what the ledger holds is not asked for again;
- asked to run again: the run's own attempt tells whether it does;
- judged: what follows the verdict.
"""

from __future__ import annotations

from dataclasses import replace

from ganger.core import events as ev
from ganger.core.ci import Ci, Finding, chosen
from ganger.core.delivery import CI, MIRRORED
from ganger.core.quota import after_success
from ganger.core.vocabulary import FailureClass, TaskStatus
from ganger.engine.case import Failed
from ganger.engine.ci_again import MEND, CiAgain
from ganger.engine.ci_trouble import CiTrouble
from ganger.engine.ci_waiting import CiWaiting
from ganger.engine.delivery_case import DeliveryCase
from ganger.engine.landed_ci import LandedCi
from ganger.engine.pushing import Pushing
from ganger.engine.request_line import RequestLine
from ganger.engine.request_merging import RequestMerging
from ganger.engine.requests import Requesting
from ganger.engine.reviewing import Reviewing
from ganger.engine.sending import PushFailed
from ganger.engine.shared_red import SharedRed
from ganger.engine.tools import one_line
from ganger.errors import ForgeDenied, ForgeError


class Delivering:
    def __init__(self, at: DeliveryCase, line: RequestLine) -> None:
        """`line` is that of the change requests of its repository."""
        self.at = at
        self.requests = Requesting(at.case, at.sending)
        self.reviewing = Reviewing(at.case, at.sending.repository)
        self.pushing = Pushing(at)
        self.waiting = CiWaiting(at)
        self.again = CiAgain(at, self.pushing)
        self.trouble = CiTrouble(at.case, at.outlet)
        self.shared = SharedRed(at.case, at.sending)
        self.landed = LandedCi(at, self.trouble, self.shared)
        self.merging = RequestMerging(at, line, self.landed, self._test)

    async def run(self) -> None:
        """Raises Failed when CI or the forge says no, Waits when only a person can go on, Stopped."""
        try:
            self.at.require_open_chain()
            if not self.merging.is_landed:
                await self._test()
                await self.merging.land()
            await self.landed.follow()
            if MIRRORED in self.at.rules.completion and self.at.rules.mirror_command:
                await self._mirror()
        except Failed as red:
            if red.failed.failure_class is FailureClass.CI_ERROR:
                await self.merging.show_target()
            raise
        except ForgeDenied as denied:
            raise self.at.outside("forge refuses", f"{denied.message}. {denied.hint}".strip()) from denied
        except PushFailed as refused:
            raise self.at.outside("push refused", refused.message) from refused
        except ForgeError as trouble:
            raise self.at.outside("forge unreachable", trouble.message) from trouble
        await self._done()

    async def _test(self) -> None:
        """Until what is tracked is where it shall be, proved and approved."""
        if self.at.now.pushed != self.at.now.commit:
            await self.merging.notice()
        await self.pushing.push()
        await self.requests.open()
        if self.at.rules.follows_ci and not self._is_proved():
            await self._follow()
        if MIRRORED in self.at.rules.completion and self.at.rules.mirror_command:
            await self._mirror()
        await self._require_on_remote()
        await self.requests.ready()
        await self.reviewing.require(self.at.now.commit, when="after")

    def _is_proved(self) -> bool:
        now = self.at.now
        mirrored = (
            MIRRORED not in self.at.rules.completion or self.at.rules.mirror_command or now.mirrored == now.commit
        )
        return now.green == now.commit and mirrored

    async def _require_on_remote(self) -> None:
        if self.merging.request is not None:
            # Whoever lands it looks at its branch as well.
            return
        now, remote = self.at.now, self.at.outlet.place_of(self.at.now.branch)
        there = await self.at.sending.patiently(
            self.at.case.task,
            lambda: self.at.unless_stopped(remote.holds(now.commit, now.branch)),
            self.at.rules.ci_sec,
        )
        if not there:
            why = f"{now.commit[:12]} was pushed to {now.branch} of {remote.address} and is not there any more"
            raise self.at.outside("gone from the remote", f"{why}; somebody took it away")

    # --- CI ---------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Until the tracked commit is green; what is tracked may change on the way."""
        await self.again.finish_retrigger()
        assert self.at.following is not None
        while True:
            sha = self.at.now.commit
            self.at.following.begin(sha, self.at.now.runs)
            try:
                finding = await self.waiting.settled(sha)
            finally:
                self.at.following.forget(sha)
            if finding.ci is Ci.GREEN:
                await self._green(sha, finding)
                return
            if finding.ci is Ci.RED:
                passing = await self.trouble.passing(sha, finding, self.at.now.runs)
                if passing is None:
                    problem = await self.trouble.red(sha, finding, self.at.now.runs)
                    await self.merging.give_way(sha, problem)
                    if await self._mended_elsewhere(sha, finding, problem):
                        continue
                    raise problem
                finding = passing
            if finding.ci is Ci.NEEDS_APPROVAL:
                raise self.at.outside("needs approval", self.at.told(finding.why, "approve it on the forge"))
            await self.again.once_more(finding)

    async def _mended_elsewhere(self, sha: str, finding: Finding, problem: Failed) -> bool:
        """Whether another commit is tracked now, because the fault was not this task's and is mended."""
        log = next((event.log for event in problem.before if isinstance(event, ev.CiJudged)), "")
        culprit = await self.shared.culprit(sha, log) if self.at.rules.style == "branch" else ""
        if not culprit:
            return False
        await self.waiting.seen(
            sha, self.at.now.runs, replace(finding, why=f"{finding.why}, as below it: {culprit} mends it")
        )
        good = await self.shared.mended(sha, culprit, log, self.at.rules.ci_most_sec)
        if good == sha:
            await self.again.empty_commit(f"{MEND}{culprit}")
        elif good:
            tree = await self.at.sending.repository.tree_of(good)
            await self.at.sending.intend(self.at.case.task, self.at.rules.branch, good, tree)
            await self.pushing.push()
        return bool(good)

    async def _green(self, sha: str, finding: Finding) -> None:
        case, source = self.at.case, self.at.following.forge.name if self.at.following is not None else ""
        runs = chosen(sha, self.at.now.runs, self.at.rules.events)
        shown = ", ".join(f"#{run.number or run.id}" for run in runs)
        why = f"run {shown}: {finding.passed} of {finding.total} required jobs succeeded"
        events: list[ev.Event] = [ev.CiJudged(case.task, case.number, sha, "green", why, source)]
        if self.at.rules.ci_rules.mirror_job:
            events.append(ev.MirrorProved(case.task, case.number, sha, self.at.rules.mirror_job, finding.mirror))
        if case.spec.repo in case.state.broken:
            events.append(ev.ChainCleared(case.spec.repo, sha))
        await case.record(*events)

    # --- mirror and end ---------------------------------------------------------------------------------------------

    async def _mirror(self) -> None:
        """A command shows that the mirror has the commit; mirrors take their time."""
        case, now = self.at.case, self.at.now
        if now.mirrored == now.commit:
            return
        assert self.at.outlet.prove_mirror is not None
        since, said = self.at.tools.clock.monotonic(), ""
        while True:
            self.at.heed()
            proved, said = await self.at.unless_stopped(self.at.outlet.prove_mirror(now.commit, now.branch))
            if proved:
                await case.record(ev.MirrorProved(case.task, case.number, now.commit, "command", one_line(said)))
                return
            if self.at.tools.clock.monotonic() - since >= self.at.rules.ci_sec:
                why = f"the mirror does not have {now.commit[:12]}: {one_line(said)}"
                raise self.at.outside("mirror", self.at.told(why, "is the mirror reachable, does the command work?"))
            await self.at.sending.pause(self.at.outlet.poll_sec)

    async def _done(self) -> None:
        case = self.at.case
        settled = ev.TaskSettled(case.task, TaskStatus.DONE, self._proof())
        await case.record(settled, *after_success(case.state, case.now.account))

    def _proof(self) -> str:
        now, rules = self.at.now, self.at.rules
        parts = [f"verified by {self.at.case.spec.verify_profile}", f"pushed as {now.commit[:12]} to {now.branch}"]
        if CI in rules.completion and now.green == now.commit:
            runs = chosen(now.commit, now.runs, rules.events)
            shown = ", ".join(run.url or f"run {run.id}" for run in runs)
            parts.append(f"CI green, {now.passed} of {now.total} jobs ({shown})")
        if MIRRORED in rules.completion:
            parts.append(f"mirrored ({'command' if rules.mirror_command else rules.mirror_job})")
        if now.request is not None and now.request.number:
            parts.append(f"change request #{now.request.number}{' merged' if now.request.merged else ''}")
        return "; ".join(parts)

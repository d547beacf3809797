"""One task's way from the run's branch to DONE: push, change request, CI of exactly this commit, mirror, review.

Every step looks into the ledger first, so a new lead, or a later attempt, continues from there:

- intended, perhaps pushed: the remote knows;
- pushed: CI is looked at again, and what the ledger holds is not asked for again;
- asked to run again: the CI run's own attempt number shows whether it does;
- judged: the next step depends on the verdict.
"""

from __future__ import annotations

from dataclasses import replace

from ganger.core import events as ev
from ganger.core.control.reverted import reverted
from ganger.core.delivery.expected_ci import NOT_EXPECTED, was_red_before
from ganger.core.delivery.shared_pushes import BASE_RED, PUSH_REFUSED
from ganger.core.model.ci import Ci, Finding, chosen
from ganger.core.model.ledger import CI, MIRRORED
from ganger.core.scheduling.quota import after_success
from ganger.core.scheduling.resume import after_green
from ganger.core.vocabulary import FailureClass, TaskStatus
from ganger.engine.attempt_context import Failed
from ganger.engine.attempt_outcome import Waits
from ganger.engine.delivery.ci.culprits import Culprits
from ganger.engine.delivery.ci.expected import ExpectedCi
from ganger.engine.delivery.ci.failure import CiTrouble
from ganger.engine.delivery.ci.merged_commit import LandedCi
from ganger.engine.delivery.ci.red_before import RedBefore
from ganger.engine.delivery.ci.rerun import CiAgain
from ganger.engine.delivery.ci.unread_workflow import UnreadWorkflow
from ganger.engine.delivery.ci.wait import CiWaiting
from ganger.engine.delivery.context import DeliveryContext
from ganger.engine.delivery.push import Pushing
from ganger.engine.delivery.requests.change_request import Requesting
from ganger.engine.delivery.requests.merge import MergedBranch, RequestMerging
from ganger.engine.delivery.requests.queue import RequestLine
from ganger.engine.delivery.reviews.forge_review import ForgeReviewing
from ganger.engine.delivery.reviews.review import Reviewing
from ganger.engine.delivery.shared_push import NoLongerPushed, TakenOut, Train
from ganger.engine.delivery.status_comment import StatusComment
from ganger.engine.merging.push_queue import PushFailed
from ganger.engine.resources.run_resources import one_line
from ganger.errors import ForgeDenied, ForgeError


class Delivering:
    def __init__(self, at: DeliveryContext, line: RequestLine, train: Train | None, culprits: Culprits | None) -> None:
        """`line` is the queue of the change requests of its repository. `train` and `culprits`: changes go to the
        shared branch."""
        self.at, self.train, self.culprits = at, train, culprits
        self.requests = Requesting(at.case, at.sending)
        self.reviewing = Reviewing(at.case, at.sending.repository)
        self.on_forge = ForgeReviewing(at, self.reviewing)
        self.remarks = StatusComment(at)
        self.merged_branch = MergedBranch(at)
        self.pushing = Pushing(at, train)
        self.expected = ExpectedCi(at, shares=train is not None)
        self.again = CiAgain(at, self.pushing, self.expected)
        self.waiting = CiWaiting(at, self.expected, self.again.stop_stuck)
        self.trouble = CiTrouble(at.case, at.outlet)
        self.base = RedBefore(at, self.trouble)
        self.unread = UnreadWorkflow(at, self.trouble, culprits)
        self.landed = LandedCi(at, self.trouble)
        self.merging = RequestMerging(at, line, self.landed, self._test, self.on_forge.check_again)

    async def _run(self) -> None:
        try:
            await self.at.while_answered(self._steps)
        except Failed as red:
            if red.failed.failure_class is FailureClass.CI_ERROR:
                await self.merging.show_target()
            raise
        except ForgeDenied as denied:
            raise self.at.outside("forge refuses", f"{denied.message}. {denied.hint}".strip()) from denied
        except TakenOut as gone:
            assert self.train is not None
            raise self.train.ask(self.at.case.task, gone) from gone
        except PushFailed as refused:
            told = self.at.outside if self.train is None else self.at.outside_for_all
            raise told(PUSH_REFUSED, refused.message) from refused
        except ForgeError as trouble:
            raise self.at.outside("forge unreachable", trouble.message) from trouble
        await self._done()

    async def run(self) -> None:
        """Raises Failed when CI or the forge says no, Waits when only a person can continue, Stopped."""
        try:
            await self._run()
        finally:
            if self.train is not None:
                self.train.wake()

    async def _steps(self) -> None:
        self.at.require_open_chain()
        if not self.merging.is_landed:
            await self._test()
            await self.merging.land()
        # What comes next may be a fix with a change request of its own.
        await self.merged_branch.remove()
        await self.landed.follow()
        if MIRRORED in self.at.rules.completion and self.at.rules.mirror_command:
            await self._mirror()
        await self.remarks.show()

    async def _test(self) -> None:
        """Runs until what is tracked is pushed, proved and approved."""
        if self.at.now.pushed != self.at.now.commit:
            await self.merging.notice()
            await self.merged_branch.remove()
        await self.pushing.push()
        while not await self._is_there_and_proved():
            await self.pushing.push()
        await self.requests.renew()
        await self.requests.ready()
        await self.remarks.show()
        await self.merging.require_shown()
        await self.on_forge.before_review()
        if self.at.now.revert is None and not self.at.needs_no_request:
            await self._require_review()
        await self.on_forge.after_review()

    async def _require_review(self) -> None:
        try:
            await self.reviewing.require(self.at.now.commit, when="after")
        except Waits:
            # The reviewer reads on the request itself what is awaited.
            await self.remarks.show()
            raise

    async def _is_there_and_proved(self) -> bool:
        """False where its tip was removed from the branch meanwhile, and another one must be pushed."""
        try:
            await self.requests.open()
            if self.at.rules.follows_ci and not self._is_proved():
                await self._follow()
            if MIRRORED in self.at.rules.completion and self.at.rules.mirror_command:
                await self._mirror()
            await self._require_on_remote()
        except NoLongerPushed:
            return False
        return True

    def _is_proved(self) -> bool:
        now = self.at.now
        mirrored = (
            MIRRORED not in self.at.rules.completion or self.at.rules.mirror_command or now.mirrored == now.commit
        )
        return now.needs_no_ci and mirrored

    async def _require_on_remote(self) -> None:
        if self.merging.request is not None:
            # Merging it looks at its branch as well.
            return
        if await self._is_on_remote():
            return
        if self.train is not None:
            await self.train.record_loss(self.at)
        now, remote = self.at.now, self.at.outlet.place_of(self.at.now.branch)
        why = f"{now.commit[:12]} was pushed to {now.branch} of {remote.address} and is no longer there"
        raise self.at.outside("gone from the remote", f"{why}; someone removed it")

    async def _is_on_remote(self) -> bool:
        now, remote = self.at.now, self.at.outlet.place_of(self.at.now.branch)
        return await self.at.sending.patiently(
            self.at.case.task,
            lambda: self.at.unless_stopped(remote.holds(now.commit, now.branch)),
            self.at.rules.ci_sec,
        )

    # --- CI ---------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Runs until the tracked commit is green; what is tracked may change on the way."""
        await self.again.finish_retrigger()
        assert self.at.following is not None
        while True:
            sha = self.at.now.commit
            self.at.following.begin(sha, self.at.now.runs)
            try:
                finding = await self.waiting.settled(sha)
            finally:
                self.at.following.forget(sha)
            is_there = self.train is None or finding.ci is Ci.GREEN or await self._is_on_remote()
            if self.at.now.commit != sha:
                # It went with a push of others meanwhile.
                await self.pushing.push()
                continue
            if finding.ci is Ci.GREEN:
                await self._green(sha, finding)
                return
            if self.train is not None and not is_there:
                # A verdict on a commit that was removed from the branch does not count.
                await self.train.record_loss(self.at)
            if await self.expected.waived(sha, finding):
                return
            finding = await self._hidden(sha, finding)
            if await self.unread.blames_no_one(sha, finding):
                if await self._has_news_below():
                    continue
                raise await self.unread.asked(sha, finding)
            if finding.ci is Ci.RED:
                if await self._was_red_before(sha, finding):
                    return
                passing = await self.trouble.passing(sha, finding, self.at.now.runs)
                if passing is None:
                    if await self._fixed_by_another(sha, finding):
                        continue
                    problem = await self.trouble.red(sha, finding, self.at.now.runs)
                    if self.at.rules.base_red == "mend" and (note := await self.base.note(sha)):
                        problem.reminder = f"{problem.reminder}\n\n{note}"
                    await self.merging.give_way(sha, problem)
                    raise problem
                finding = passing
            if finding.ci is Ci.NEEDS_APPROVAL:
                raise self.at.outside("needs approval", self.at.hinted(finding.why, "approve it on the forge"))
            await self.again.run_again(finding)

    async def _was_red_before(self, sha: str, finding: Finding) -> bool:
        """Whether it has only faults that the branch has without this run, and the settings ignore those."""
        mode, alone = self.at.rules.base_red, self.culprits is None
        if mode == "mend" or (mode == "stop" and not alone):
            return False
        base = await self.base.same(sha, finding)
        if base is None:
            return False
        if mode == "ignore" and not self.at.rules.ci_rules.mirror_job:
            await self.base.waive(sha, base, finding)
            return True
        why = f"{self.at.rules.branch} was red at {base.commit[:12]} before this run's changes came: {finding.why}"
        raise self.at.outside_for_all(BASE_RED, self.at.hinted(why, "fix the branch itself"))

    async def _hidden(self, sha: str, finding: Finding) -> Finding:
        if finding.ci is not Ci.ABSENT or await self.again.is_superseded_by_others():
            return finding
        return await self.unread.hides(sha, finding) or finding

    async def _has_news_below(self) -> bool:
        """Whether its base in the target has changed, so that there is something else to look at."""
        if self.train is not None:
            return await self.again.is_superseded()
        if not await self.merging.catch_up():
            return False
        await self.pushing.push()
        return True

    async def _fixed_by_another(self, sha: str, finding: Finding) -> bool:
        """Whether the fault was another task's, and there is something else to look at now."""
        if self.culprits is None:
            return False
        log = await self.trouble.printed(sha, finding, self.at.now.runs)
        if log is None:
            return False
        is_old = was_red_before(self.at.case.state, self.at.rules)
        own = is_old and await self.base.has_more(sha, finding)
        old = is_old and not own and await self.base.same(sha, finding) is not None
        name = await self.culprits.of(self.at, sha, log, own=own, old=old)
        if name == self.at.case.task:
            return False
        if not name:
            if await self.again.is_superseded():
                return True
            why = f"{self.at.rules.branch} {await self.culprits.own.told(sha)}: {finding.why}"
            raise self.at.outside_for_all(BASE_RED, self.at.hinted(why, "fix the branch itself"))
        why = f"{finding.why}, because of the change of {name}"
        await self.waiting.seen(sha, self.at.now.runs, replace(finding, why=why))
        await self.culprits.wait_for_mend(self.at, sha, name)
        await self.pushing.push()
        return True

    async def _green(self, sha: str, finding: Finding) -> None:
        case, source = self.at.case, self.at.following.forge.name if self.at.following is not None else ""
        runs = chosen(sha, self.at.now.runs, self.at.rules.events)
        shown = ", ".join(f"#{run.number or run.id}" for run in runs)
        why = f"run {shown}: {finding.passed} of {finding.total} required jobs succeeded"
        events: list[ev.Event] = [ev.CiJudged(case.task, case.number, sha, "green", why, source)]
        if self.at.rules.ci_rules.mirror_job:
            events.append(ev.MirrorProved(case.task, case.number, sha, self.at.rules.mirror_job, finding.mirror))
        if case.spec.repo in case.state.chains.broken:
            events.append(ev.ChainCleared(case.spec.repo, sha))
        if self.train is not None:
            events += after_green(case.state, case.spec.repo)
        await case.record(*events)

    # --- mirror and end ---------------------------------------------------------------------------------------------

    async def _mirror(self) -> None:
        """Waits until a command shows that the mirror has the commit; mirrors lag behind."""
        case, now = self.at.case, self.at.now
        if now.mirrored == now.commit:
            return
        assert self.at.outlet.prove_mirror is not None
        since, said = self.at.tools.clock.monotonic(), ""
        while True:
            self.at.check_interrupts()
            proved, said = await self.at.unless_stopped(self.at.outlet.prove_mirror(now.commit, now.branch))
            if proved:
                await case.record(ev.MirrorProved(case.task, case.number, now.commit, "command", one_line(said)))
                return
            if self.at.tools.clock.monotonic() - since >= self.at.rules.ci_sec:
                why = f"the mirror does not have {now.commit[:12]}: {one_line(said)}"
                raise self.at.outside("mirror", self.at.hinted(why, "is the mirror reachable, does the command work?"))
            await self.at.sending.pause(self.at.outlet.poll_sec)

    async def _done(self) -> None:
        case = self.at.case
        if self.at.now.revert is not None:
            await case.record(*reverted(case.state, case.task, self._proof()))
            return
        settled = ev.TaskSettled(case.task, TaskStatus.DONE, self._proof())
        await case.record(settled, *after_success(case.state, case.now.attempt.account))

    def _proof(self) -> str:
        now, rules = self.at.now, self.at.rules
        pushed = f"pushed as {now.commit[:12]} to {now.branch}"
        if self.at.needs_no_request:
            pushed = f"{now.branch} needs no change for it at {now.commit[:12]}, as someone did the same by hand"
        parts = [f"verified by {self.at.case.spec.verify_profile}", pushed]
        if CI in rules.completion and now.green == now.commit:
            runs = chosen(now.commit, now.runs, rules.events)
            shown = ", ".join(run.url or f"run {run.id}" for run in runs)
            parts.append(f"CI green, {now.passed} of {now.total} jobs ({shown})")
        elif CI in rules.completion and now.waived == now.commit:
            told = "CI not expected by setting" if now.waived_cause == NOT_EXPECTED else "not green by CI"
            parts.append(f"{told}: {now.waived_why}")
        if MIRRORED in rules.completion:
            parts.append(f"mirrored ({'command' if rules.mirror_command else rules.mirror_job})")
        if now.request is not None and now.request.number:
            parts.append(f"change request #{now.request.number}{' merged' if now.request.merged else ''}")
        return "; ".join(parts)

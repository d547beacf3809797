"""One task's way from the run's branch to DONE: push, change request, CI of exactly this commit, mirror, review.

Every step looks into the ledger first, so a new lead, or a later attempt, goes on where it stands:

- intended, perhaps pushed: the remote tells;
- pushed: CI is looked at anew, and what the ledger holds is not asked for again;
- asked to run again: the run's own attempt tells whether it does;
- judged: what follows the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ganger.core import events as ev
from ganger.core.ci import MISSING_JOB, OVER, UNSETTLED, Ci, Finding, RunFact, Word, chosen, is_stale, judge, mark
from ganger.core.delivery import CI, MIRRORED, TAKEN_UP, Delivery, RepoRules
from ganger.core.moments import unix_time
from ganger.core.quota import after_success
from ganger.core.repos import graph_of
from ganger.core.vocabulary import BlockReason, FailureClass, TaskStatus
from ganger.engine.case import Case, Failed
from ganger.engine.ci_trouble import CiTrouble
from ganger.engine.following import Following, Look
from ganger.engine.merging import Merging
from ganger.engine.requests import Requesting
from ganger.engine.reviewing import Reviewing
from ganger.engine.sending import PushFailed, Sending
from ganger.engine.settling import Waits, heed_person
from ganger.engine.shared_red import SharedRed
from ganger.engine.tools import one_line
from ganger.errors import ForgeDenied, ForgeError, ForgeUnreachable
from ganger.ports.forge import Behind, Rejected, Sent

_SOONEST_SEC = 0.05
_HEED_SEC = 2.0
_MEND = "mend_"


class Delivering:
    def __init__(self, case: Case, sending: Sending, merging: Merging, following: Following | None) -> None:
        self.case, self.sending, self.merging, self.following = case, sending, merging, following
        self.outlet, self.tools = sending.outlet, case.tools
        self.rules: RepoRules = sending.rules(case.task)
        self.requests = Requesting(case, sending)
        self.reviewing = Reviewing(case, sending.repository)
        self.trouble = CiTrouble(case, sending.outlet)
        self.shared = SharedRed(case, sending)
        self._since, self._early = ("", 0.0, 0.0), 0
        self._unless_stopped = case.gate.unless_stopped

    @property
    def now(self) -> Delivery:
        return self.sending.delivery(self.case.task)

    async def run(self) -> None:
        """Raises Failed when CI or the forge says no, Waits when only a person can go on, Stopped."""
        try:
            self._require_open_chain()
            await self._push()
            await self.requests.open()
            if self.rules.follows_ci and not self._is_proved():
                await self._follow()
            if MIRRORED in self.rules.completion and self.rules.mirror_command:
                await self._mirror()
            await self._require_on_remote()
            await self.requests.ready()
            await self.reviewing.require(self.now.commit, when="after")
            await self.requests.merge()
        except ForgeDenied as denied:
            raise self._outside("forge refuses", f"{denied.message}. {denied.hint}".strip()) from denied
        except PushFailed as refused:
            raise self._outside("push refused", refused.message) from refused
        except ForgeError as trouble:
            raise self._outside("forge unreachable", trouble.message) from trouble
        await self._done()

    def _is_proved(self) -> bool:
        now = self.now
        mirrored = MIRRORED not in self.rules.completion or self.rules.mirror_command or now.mirrored == now.commit
        return now.green == now.commit and mirrored

    def _require_open_chain(self) -> None:
        state, repo = self.case.state, self.case.spec.repo
        graph = graph_of(state.repos)
        chain = (repo, *graph.upstream.get(repo, ()), *graph.downstream.get(repo, ()))
        halted = next((one for one in chain if one in state.halted), None)
        if halted is not None:
            why = f"{halted or 'the project'} is halted, so nothing is pushed: {state.halted[halted]}"
            raise Waits(BlockReason.PAUSED, why)

    # --- the push ---------------------------------------------------------------------------------------------------

    async def _push(self) -> None:
        task, now = self.case.task, self.now
        if now.commit and now.pushed == now.commit:
            return
        if self.rules.style == "request":
            await self._push_own()
            return
        async with self.merging.turn:
            await self.sending.patiently(task, lambda: self.sending.to_branch(task), self.rules.ci_sec)

    async def _push_own(self) -> None:
        """A branch that nobody else pushes to."""
        task = self.case.task
        if not self.now.branch or not self.now.tree:
            branch, commit, tree = await self.sending.patiently(task, self.requests.published, self.rules.ci_sec)
            await self.sending.intend(task, branch, commit, tree)
        outcome = await self.sending.patiently(task, lambda: self.sending.push(task), self.rules.ci_sec)
        if isinstance(outcome, Sent):
            return
        where = f"{self.now.branch} of {self.outlet.remote.address}"
        if isinstance(outcome, Rejected):
            raise PushFailed(f"{where} refuses the push: {outcome.why}")
        assert isinstance(outcome, Behind)
        raise PushFailed(f"somebody else pushed {outcome.head[:12]} to {where}")

    async def _require_on_remote(self) -> None:
        now, remote = self.now, self.outlet.remote
        there = await self.sending.patiently(
            self.case.task, lambda: self._unless_stopped(remote.holds(now.commit, now.branch)), self.rules.ci_sec
        )
        if not there and not await self.requests.is_merged():
            why = f"{now.commit[:12]} was pushed to {now.branch} of {remote.address} and is not there any more"
            raise self._outside("gone from the remote", f"{why}; somebody took it away")

    # --- CI ---------------------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Until the tracked commit is green; what is tracked may change on the way."""
        await self._finish_retrigger()
        assert self.following is not None
        while True:
            sha = self.now.commit
            self.following.begin(sha, self.now.runs)
            try:
                finding = await self._settled(sha)
            finally:
                self.following.forget(sha)
            if finding.ci is Ci.GREEN:
                await self._green(sha, finding)
                return
            if finding.ci is Ci.RED:
                again = await self.trouble.passing(sha, finding, self.now.runs)
                if again is None:
                    problem = await self.trouble.red(sha, finding, self.now.runs)
                    if await self._mended_elsewhere(sha, finding, problem):
                        continue
                    raise problem
                finding = again
            if finding.ci is Ci.NEEDS_APPROVAL:
                raise self._outside("needs approval", self._told(finding.why, "approve it on the forge"))
            await self._again(finding)

    async def _mended_elsewhere(self, sha: str, finding: Finding, problem: Failed) -> bool:
        """Whether another commit is tracked now, because the fault was not this task's and is mended."""
        log = next((event.log for event in problem.before if isinstance(event, ev.CiJudged)), "")
        culprit = await self.shared.culprit(sha, log) if self.rules.style == "branch" else ""
        if not culprit:
            return False
        await self._seen(sha, self.now.runs, replace(finding, why=f"{finding.why}, as below it: {culprit} mends it"))
        good = await self.shared.mended(sha, culprit, log, self.rules.ci_most_sec)
        if good == sha:
            await self._empty_commit(f"{_MEND}{culprit}")
        elif good:
            tree = await self.sending.repository.tree_of(good)
            await self.sending.intend(self.case.task, self.rules.branch, good, tree)
            await self._push()
        return bool(good)

    async def _settled(self, sha: str) -> Finding:
        """Waits until time alone does not bring another finding, or it is over time."""
        assert self.following is not None
        seen, late, green, self._early = 0, -1, -1, 0
        while True:
            self._heed()
            look = await self.following.look(sha, self.now.runs, after=seen, wait_sec=self._wait_sec())
            seen = look.version
            if look.trouble is not None and not _passes(look.trouble):
                raise look.trouble
            runs = [run for run in look.runs if not is_stale(run, self.now.stale)]
            old = [_held(run) for run in look.runs if is_stale(run, self.now.stale)]
            finding = self._unless_early(judge(sha, [*runs, *old], self.rules.ci_rules), look)
            if look.looks:
                await self._seen(sha, runs, finding)
            unsure = finding.ci is Ci.GREEN and not self.rules.required_jobs
            if not look.looks:
                # What an earlier lead saw may have changed since: it is no finding before it was looked at once.
                pass
            elif unsure and green < 0:
                # Nothing says which workflows there are: another may begin a moment later.
                green = look.looks
                self.following.nudge()
            elif finding.ci not in UNSETTLED and not (unsure and look.looks <= green):
                return finding
            over = await self._mind_time(sha, look, finding, late, begun=not old)
            if isinstance(over, Finding):
                return over
            late = over

    def _unless_early(self, finding: Finding, look: Look) -> Finding:
        """Runs of one push do not all appear at once: what only misses a job is believed when there was time for it,
        and a look after that."""
        if not finding.jobs or any(job.reason != MISSING_JOB for job in finding.jobs):
            return finding
        if self._spent_sec() < self.rules.appear_sec:
            self._early = look.looks + 1
        return finding if look.looks > self._early else replace(finding, ci=Ci.WAITING, why=f"{finding.why} so far")

    def _wait_sec(self) -> float:
        """Until the next moment at which time itself says something."""
        spent = self._spent_sec()
        rules = self.rules
        moments = (rules.appear_sec, rules.ci_warn_sec, rules.ci_sec, rules.ci_most_sec)
        ahead = [moment - spent for moment in moments if moment > spent]
        return max(_SOONEST_SEC, min([_HEED_SEC, self.outlet.poll_most_sec, *ahead]))

    def _heed(self) -> None:
        """A stop, or a person who does not want to wait any longer."""
        self.case.gate.check()
        heed_person(self.case.now)

    def _spent_sec(self) -> float:
        """Since the push, or since CI was asked to run again. A clock that is set meanwhile changes nothing."""
        clock, pushed_at = self.tools.clock, self.now.pushed_at
        if self._since[0] != pushed_at:
            self._since = (pushed_at, clock.monotonic(), max(0.0, clock.now() - unix_time(pushed_at)))
        _, begun, before = self._since
        return before + clock.monotonic() - begun

    async def _seen(self, sha: str, runs: Sequence[RunFact], finding: Finding) -> None:
        now, ours = self.now, tuple(run for run in runs if run.sha == sha)
        if (now.runs, now.finding, now.why) == (ours, finding.ci.value, finding.why):
            return
        assert self.following is not None
        await self.case.record(
            ev.CiSeen(
                self.case.task,
                self.case.number,
                sha,
                ours,
                finding.ci.value,
                finding.why,
                finding.passed,
                finding.total,
                finding.current,
                finding.mirror,
                self.following.forge.name,
            )
        )

    async def _mind_time(self, sha: str, look: Look, finding: Finding, late: int, *, begun: bool) -> int | Finding:
        """D14: CI is looked at once more before its time counts as over, and goes on while it is at work. `begun`:
        what was asked to run again does."""
        spent, rules, task, number = self._spent_sec(), self.rules, self.case.task, self.case.number
        absent = (finding.ci is Ci.ABSENT or not begun) and spent >= rules.appear_sec
        if not absent and spent < rules.ci_most_sec:
            await self._warn(spent, finding)
            return -1
        if late < 0:
            assert self.following is not None
            self.following.nudge()
            return look.looks
        if look.looks <= late:
            # A forge that does not answer has not said that there is no run.
            if spent >= 2 * rules.ci_most_sec:
                raise self._outside("forge unreachable", "the forge did not answer")
            return late
        if absent:
            return self._never_started(sha)
        minutes = rules.ci_most_sec / 60
        why = f"CI of {sha[:12]} is not through after {minutes:.0f} min: {finding.why}"
        await self.case.record(ev.LimitWarned(task, number, "ci_most_sec", why))
        raise self._outside("CI stuck", self._told(why, "see what CI waits for: a runner, an approval?"))

    async def _warn(self, spent: float, finding: Finding) -> None:
        """Once each, whoever leads."""
        task, number, rules = self.case.task, self.case.number, self.rules
        if spent >= rules.ci_warn_sec and not self._was_warned("ci_warn_sec"):
            text = f"CI has taken {spent / 60:.0f} min: {finding.why}"
            await self.case.record(ev.LimitWarned(task, number, "ci_warn_sec", text))
        if spent >= rules.ci_sec and not self._was_warned("ci_sec"):
            until = round(unix_time(self.now.pushed_at) + rules.ci_most_sec, 3)
            why = f"CI has taken {spent / 60:.0f} min and goes on: {finding.why}"
            await self.case.record(ev.LimitExtended(task, number, "ci_sec", until, why))

    def _was_warned(self, limit: str) -> bool:
        key = (self.case.task, self.now.commit, self.now.pushed_at, limit)
        if key in self.tools.warned:
            return True
        self.tools.warned.add(key)
        return False

    def _never_started(self, sha: str) -> Finding:
        """A push of what was there already starts no run, so one is started; and so it is once a person has seen to it
        that CI can start. Else another push is nobody's cure (D05)."""
        own = [fact.what for fact in self.now.facts if fact.commit == sha]
        if TAKEN_UP in own or any(what.startswith("found on") for what in own):
            return Finding(Ci.ABSENT, f"no run began for {sha[:12]}, which was on the remote before", cause="no_run")
        why = f"CI never started for {sha[:12]} on {self.now.branch}"
        check = (
            "does the workflow run on pushes to this branch, does a path or branch filter leave it out, are Actions "
            "on, is there a runner, does the commit message skip CI?"
        )
        raise self._outside("CI never started", self._told(why, check))

    async def _green(self, sha: str, finding: Finding) -> None:
        case, source = self.case, self.following.forge.name if self.following is not None else ""
        runs = chosen(sha, self.now.runs, self.rules.events)
        shown = ", ".join(f"#{run.number or run.id}" for run in runs)
        why = f"run {shown}: {finding.passed} of {finding.total} required jobs succeeded"
        events: list[ev.Event] = [ev.CiJudged(case.task, case.number, sha, "green", why, source)]
        if self.rules.ci_rules.mirror_job:
            events.append(ev.MirrorProved(case.task, case.number, sha, self.rules.mirror_job, finding.mirror))
        if case.spec.repo in case.state.broken:
            events.append(ev.ChainCleared(case.spec.repo, sha))
        await case.record(*events)

    # --- once more --------------------------------------------------------------------------------------------------

    async def _again(self, finding: Finding) -> None:
        """D04: once per cause, so often in all; never on a red run."""
        now, cause = self.now, finding.cause or finding.ci.value
        used = [one for one in now.retriggered if not one.startswith(_MEND)]
        if cause in used or len(used) >= self.rules.retriggers:
            done = f"CI was run again for {', '.join(used)} already" if used else "CI is not run again by itself here"
            raise self._outside(cause, self._told(finding.why, f"look at the job on the forge ({done})"))
        if not await self._rerun(self._runs_of(finding), cause):
            await self._empty_commit(cause)

    async def _empty_commit(self, cause: str) -> None:
        task, own = self.case.task, self.rules.style == "request"
        self._require_open_chain()
        async with self.merging.turn:
            await self.sending.again(task, cause, own_branch=own)
            if not own:
                # In the same turn: below another commit it would be no tip, and CI begins for tips alone.
                await self.sending.patiently(task, lambda: self.sending.to_branch(task), self.rules.ci_sec)
        await self._push()
        await self.case.record(ev.Retriggered(task, self.case.number, self.now.commit, cause, "empty_commit"))

    def _runs_of(self, finding: Finding) -> list[RunFact]:
        """Every run that has one of the jobs which explain it; the newest where a job is in none."""
        runs = chosen(self.now.commit, self.now.runs, self.rules.events)
        return [run for run in runs if set(finding.jobs).intersection(run.jobs)] or runs[-1:]

    async def _rerun(self, runs: Sequence[RunFact], cause: str, *, asked: bool = False) -> bool:
        """Whether the forge runs them again. `asked`: that is on record already."""
        case, sha = self.case, self.now.commit
        if runs and not asked:
            names = " ".join(run.id for run in runs)
            await case.record(ev.RetriggerIntended(case.task, case.number, sha, cause, "rerun", names))
        if not any([await self._run_again(run) for run in runs]):
            return False
        await case.record(ev.Retriggered(case.task, case.number, sha, cause, "rerun"))
        return True

    async def _run_again(self, run: RunFact) -> bool:
        assert self.following is not None
        forge = self.following.forge
        call = self._unless_stopped
        return await self.sending.patiently(self.case.task, lambda: call(forge.rerun(run)), self.rules.ci_sec)

    async def _finish_retrigger(self) -> None:
        """An earlier lead wanted CI to run again, and nobody knows whether it does."""
        now = self.now
        wanted = now.retrigger
        if wanted is not None and wanted.how == "rerun" and wanted.sha == now.commit:
            await self._look_at_rerun(wanted.run, wanted.cause)
        elif wanted is not None and wanted.how == "empty_commit":
            await self.case.record(
                ev.Retriggered(self.case.task, self.case.number, now.commit, wanted.cause, "empty_commit")
            )
        elif self._mends_nothing():
            cause = f"{_MEND}{self.case.now.ci_fixes + self.case.now.reworks}"
            await self._again_for_mend(cause)

    async def _look_at_rerun(self, names: str, cause: str) -> None:
        """Only the forge knows which of them run again, so it is waited for."""
        assert self.following is not None
        sha, known = self.now.commit, {run.id: run for run in self.now.runs}
        self.following.begin(sha)
        try:
            look = await self.sending.patiently(self.case.task, lambda: self._first_look(sha), self.rules.ci_sec)
        finally:
            self.following.forget(sha)
        fresh = {run.id: run for run in look.runs}
        wanted = names.split()
        still = [known[name] for name in wanted if name in known and not _goes_again(known[name], fresh.get(name))]
        if len(still) == len(wanted):
            await self._rerun(still, cause, asked=True)
            return
        for run in still:
            await self._run_again(run)
        await self.case.record(ev.Retriggered(self.case.task, self.case.number, sha, cause, "rerun"))

    async def _first_look(self, sha: str) -> Look:
        assert self.following is not None
        look = await self.following.look(sha, (), after=0, wait_sec=self.outlet.poll_most_sec)
        if look.trouble is not None and not _passes(look.trouble):
            raise look.trouble
        if not look.looks:
            raise ForgeUnreachable("the forge did not say whether CI runs again")
        return look

    def _mends_nothing(self) -> bool:
        """CI was red, and a worker found nothing to change: perhaps it was not the code."""
        return self.now.fixing and self.now.pushed == self.now.commit

    async def _again_for_mend(self, cause: str) -> None:
        runs = chosen(self.now.commit, self.now.runs, self.rules.events)
        bad = [run for run in runs if any(job.word is not Word.SUCCESS for job in run.jobs)]
        if not await self._rerun(bad or runs[-1:], cause):
            await self._empty_commit(cause)

    # --- mirror and end ---------------------------------------------------------------------------------------------

    async def _mirror(self) -> None:
        """A command shows that the mirror has the commit; mirrors take their time."""
        case, now = self.case, self.now
        if now.mirrored == now.commit:
            return
        assert self.outlet.prove_mirror is not None
        since, said = self.tools.clock.monotonic(), ""
        while True:
            self._heed()
            proved, said = await self._unless_stopped(self.outlet.prove_mirror(now.commit, now.branch))
            if proved:
                await case.record(ev.MirrorProved(case.task, case.number, now.commit, "command", one_line(said)))
                return
            if self.tools.clock.monotonic() - since >= self.rules.ci_sec:
                why = f"the mirror does not have {now.commit[:12]}: {one_line(said)}"
                raise self._outside("mirror", self._told(why, "is the mirror reachable, does the command work?"))
            await self.sending.pause(self.outlet.poll_sec)

    async def _done(self) -> None:
        case = self.case
        settled = ev.TaskSettled(case.task, TaskStatus.DONE, self._proof())
        await case.record(settled, *after_success(case.state, case.now.account))

    def _proof(self) -> str:
        now, rules = self.now, self.rules
        parts = [f"verified by {self.case.spec.verify_profile}", f"pushed as {now.commit[:12]} to {now.branch}"]
        if CI in rules.completion and now.green == now.commit:
            runs = chosen(now.commit, now.runs, rules.events)
            shown = ", ".join(run.url or f"run {run.id}" for run in runs)
            parts.append(f"CI green, {now.passed} of {now.total} jobs ({shown})")
        if MIRRORED in rules.completion:
            parts.append(f"mirrored ({'command' if rules.mirror_command else rules.mirror_job})")
        if now.request is not None and now.request.number:
            parts.append(f"change request #{now.request.number}{' merged' if now.request.merged else ''}")
        return "; ".join(parts)

    def _told(self, why: str, check: str) -> str:
        urls = [run.url for run in self.now.runs if run.url]
        where = f"; {urls[-1]}" if urls else ""
        return f"{why}: {check}{where}"

    def _outside(self, signal: str, detail: str) -> Failed:
        """Nothing a worker could mend: a person looks, and the delivery goes on from the ledger."""
        then = f"then ganger retry {self.case.task}: no worker is needed"
        problem = self.case.failed(FailureClass.BLOCKED_EXTERNAL, signal, f"{detail}; {then}")
        problem.question = "delivery"
        problem.keep_changes = True
        return problem


def _passes(trouble: ForgeError) -> bool:
    return not isinstance(trouble, ForgeDenied)


def _held(run: RunFact) -> RunFact:
    """One that still tells how it was before it was asked to run again: nothing is known of it yet."""
    return replace(run, word=Word.WAITING, raw="", reason="", jobs=(), asked="")


def _goes_again(before: RunFact, now: RunFact | None) -> bool:
    return now is not None and (mark(now) != mark(before) or now.word not in OVER)

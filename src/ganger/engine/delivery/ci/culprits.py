"""A red tip that holds several changes: finds the one at fault, so that only that one is fixed and the others wait.

The changes are bisected: CI judges the tip without the later ones, on a separate branch. A lead that dies at any point
does no harm: the same half is the same commit, a recorded verdict is not asked for again, and a push of what is there
changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from ganger.core import events as ev
from ganger.core.delivery.expected_ci import is_red, unexpected_for, was_red_before
from ganger.core.delivery.shared_pushes import is_at_it, needs_tip
from ganger.core.logs.ci_logs import named_files
from ganger.core.model.ci import UNSETTLED, Ci, Finding, RunFact, judge
from ganger.core.names import branch_stem
from ganger.core.times import unix_time
from ganger.engine.delivery.ci.failure import CiTrouble
from ganger.engine.delivery.ci.own_commits import OwnCommits
from ganger.engine.delivery.ci.red_before import RedBefore
from ganger.engine.delivery.context import DeliveryContext, passes
from ganger.engine.delivery.pollers.ci import CiPoller
from ganger.engine.delivery.shared_push import Train
from ganger.engine.resources.run_resources import one_line
from ganger.errors import ForgeError
from ganger.ports.forge import Sent
from ganger.ports.repository import Conflict

UNKNOWN = "unknown"


class Culprits:
    def __init__(self, train: Train, following: CiPoller) -> None:
        self.train, self.following = train, following
        self.state, self.journal, self.repo = train.state, train.journal, train.repo
        self.repository, self.rules = train.repository, train.rules
        self.own = OwnCommits(self.state, self.repo, self.repository)
        self._looking = asyncio.Lock()
        self._told: dict[str, tuple[RunFact, ...]] = {}

    async def of(self, at: DeliveryContext, sha: str, log: str, *, own: bool = False, old: bool = False) -> str:
        """The task that turned `sha` red, empty where what is below this run did; `log` is what CI printed. `own`: it
        has faults that what is below does not have. `old`: it has no other faults than that."""
        async with self._looking:
            if sha in self.state.pushes.blamed:
                return await self._known(at, sha)
            names = await self._in_it(sha)
            if not names:
                return at.case.task
            name, how = "", f"{self.rules.branch} is red without any change of this run"
            if not old:
                name, how = await self._find(at, sha, names, log, own=own)
            if not name and self.rules.base_red == "mend" and (able := self._unreverted(names)):
                name, how = able[0], f"{how}, and it fixes that"
            if name and len(names) == 1 and not self._others_track(sha, name):
                return name
            await self.journal.record(ev.CulpritFound(self.repo, sha, name, how))
            self.train.wake()
            return name

    async def _known(self, at: DeliveryContext, sha: str) -> str:
        """Whose fault is recorded. A tip may be tracked again, as what came on top of it was removed: until its fix is
        pushed nothing waits for CI of it."""
        name = self.state.pushes.blamed[sha]
        if name and name != at.case.task and not at.now.waits_for:
            await self.journal.record(ev.CulpritFound(self.repo, sha, name, "as found before"))
            self.train.wake()
        return name

    def _others_track(self, sha: str, name: str) -> bool:
        """Whether a task that changed nothing, or is already proved, tracks the same tip: it waits as well."""
        return any(
            other != name and (now := task.delivery) is not None and now.pending and now.commit == sha
            for other, task in self.state.tasks.items()
            if self.state.specs[other].repo == self.repo
        )

    def _unreverted(self, names: Sequence[str]) -> list[str]:
        """A task whose change is reverted fixes nothing."""
        return [name for name in names if self.train.sending.delivery(name).revert is None]

    async def wait_for_mend(self, at: DeliveryContext, sha: str, name: str) -> None:
        """Returns when another tip is tracked or this one is green; raises Waits where no one works on it."""
        while at.now.commit == sha and not needs_tip(at.now):
            at.check_interrupts()
            proved = await self.own.proved(sha)
            if proved == sha:
                return
            if proved and await self.repository.is_ancestor(at.now.own, proved):
                await self.train.adopt(at.case.task, proved)
                return
            task = self.state.tasks.get(name)
            if task is None or not is_at_it(task):
                raise await self.train.red_because_of(name)
            await self.train.wait_for_change()

    async def blame(self, sha: str, name: str, how: str) -> None:
        """Records whose fault it is, without a trial."""
        async with self._looking:
            if sha not in self.state.pushes.blamed and len(await self._in_it(sha)) > 1:
                await self.journal.record(ev.CulpritFound(self.repo, sha, name, how))
                self.train.wake()

    async def _in_it(self, sha: str) -> list[str]:
        """Every task with a change in this tip that no green tip holds."""
        return [name for name, commits in (await self.own.by_task(sha)).items() if commits]

    async def _find(
        self, at: DeliveryContext, sha: str, names: Sequence[str], log: str, *, own: bool
    ) -> tuple[str, str]:
        good, bad = -1, len(names) - 1
        while bad - good > 1:
            middle = (good + bad) // 2
            verdict = await self._half(at, sha, names[middle + 1 :])
            if verdict == UNKNOWN:
                return self._likeliest(names[good + 1 : bad + 1], log)
            good, bad = (middle, bad) if verdict == "green" else (good, middle)
        if bad == 0 and not own and await self._is_red_below(at, sha, names):
            return "", f"{self.rules.branch} is red without any change of this run"
        if len(names) == 1:
            return names[0], "its change is the only one in it"
        return names[bad], f"CI is green without it and what came later, and red with {names[bad]}"

    def _likeliest(self, names: Sequence[str], log: str) -> tuple[str, str]:
        """Where CI judges no other branch: the task that has not tried to fix it yet, changed most of the files that
        its log names, and came last."""
        told = named_files(log)
        counts = {name: self._named(name, told) for name in names}
        tried = {name: self._tries(name) for name in names}
        best = min(names, key=lambda name: (tried[name], -counts[name], -names.index(name)))
        if counts[best]:
            return best, "CI's log names files that it changed"
        return best, "the last one that has not tried to fix it yet, as CI runs on no other branch"

    def _named(self, name: str, told: Sequence[str]) -> int:
        change = self.state.tasks[name].work.change
        files = change.files if change is not None else ()
        return sum(
            any(f"/{one}".endswith(f"/{file}") or f"/{file}".endswith(f"/{one}") for file in files) for one in told
        )

    def _tries(self, name: str) -> int:
        """How often the task was blamed since the branch was green."""
        tries = 0
        for verdict in reversed(self.state.pushes.verdicts):
            if verdict.repo == self.repo and verdict.green:
                break
            tries += verdict.repo == self.repo and verdict.task == name
        return tries

    # --- one half -----------------------------------------------------------------------------------------------------

    async def _half(self, at: DeliveryContext, tip: str, without: Sequence[str]) -> str:
        """CI's verdict on the tip without these tasks' changes."""
        made = await self._without(tip, without)
        if made is None:
            return UNKNOWN
        commit, tree = made
        if unexpected_for(await self.repository.files_between(commit, tip), self.rules):
            # CI does not run where these files alone differ, so it says of both what it said of the tip.
            return "red"
        proved = self.state.pushes.proved.get(self.repo, "")
        if proved and tree == await self.repository.tree_of(proved):
            return "green"
        if known := self.state.pushes.halves.get(commit):
            return known
        finding = await self._tried(at, commit)
        verdict = await self._without_base(at, commit, finding)
        await self.journal.record(ev.HalfJudged(self.repo, tip, commit, verdict, one_line(finding.why, 300)))
        return verdict

    async def _without_base(self, at: DeliveryContext, commit: str, finding: Finding) -> str:
        """What was red before the run, and is ignored or not fixed yet, says nothing about a part either."""
        if finding.ci is Ci.RED and was_red_before(self.state, self.rules):
            base = RedBefore(at, CiTrouble(at.case, at.outlet))
            if await base.same(commit, finding, self._told.get(commit, ())) is not None:
                return "green"
        return _word(finding)

    async def _is_red_below(self, at: DeliveryContext, sha: str, names: Sequence[str]) -> bool:
        """Whether CI says that what others put on the branch is red without this run."""
        below = await self.own.below(sha)
        ours = {one.commit for one in self.state.pushes.verdicts if one.repo == self.repo}
        if not below or below in ours or self.rules.forge == "command":
            return False
        if await self.own.any_in(below):
            verdict = await self._half(at, sha, names)
            if verdict != UNKNOWN or is_red(self.state, names[0]):
                return verdict == "red"
        return _word(await self.verdict(at, below, appear_sec=0.0)) == "red"

    async def _without(self, tip: str, names: Sequence[str]) -> tuple[str, str] | None:
        """The tip with these tasks' changes reverted, the latest first; None where they cannot be reverted."""
        top, tree = tip, await self.repository.tree_of(tip)
        for name in reversed(names):
            now = self.train.sending.delivery(name)
            for commit in reversed(await self.own.of(name, tip)):
                message = f"Trial without {one_line(name, 60)}"
                back = await self.repository.take_back(commit, top, message, unix_time(now.pushed_at))
                if isinstance(back, Conflict):
                    return None
                top, tree = back.commit, back.tree
        return top, tree

    async def _tried(self, at: DeliveryContext, commit: str) -> Finding:
        if self.rules.forge == "command":
            return await self.verdict(at, commit)
        branch = f"ganger/{branch_stem(self.state.run_id)}/half-{commit[:12]}"
        call, remote, sending = at.unless_stopped, self.train.remote, self.train.sending
        task, most = at.case.task, self.rules.ci_sec
        outcome = await sending.patiently(task, lambda: call(remote.push(commit, branch)), most)
        if not isinstance(outcome, Sent):
            return Finding(Ci.ABSENT, f"the remote refuses {branch}")
        try:
            return await self.verdict(at, commit)
        finally:
            with contextlib.suppress(ForgeError):
                await remote.remove(commit, branch)

    async def verdict(self, at: DeliveryContext, commit: str, *, appear_sec: float | None = None) -> Finding:
        """What CI says of a commit that belongs to no task; ABSENT when no run started in time."""
        patience = self.rules.appear_sec if appear_sec is None else appear_sec
        clock = at.tools.clock
        since, seen, sure = clock.monotonic(), 0, 0
        self.following.begin(commit)
        try:
            while True:
                at.check_interrupts()
                look = await self.following.look(commit, (), after=seen, wait_sec=at.outlet.poll_most_sec)
                seen = look.version
                if look.trouble is not None and not passes(look.trouble):
                    raise look.trouble
                if not look.looks:
                    continue
                self._told[commit] = look.runs
                finding, spent = judge(commit, look.runs, self.rules.ci_rules), clock.monotonic() - since
                if finding.ci is Ci.ABSENT and spent >= patience:
                    return finding
                if finding.ci not in UNSETTLED and 0 < sure < look.looks:
                    return finding
                # Another workflow of the same push may start a moment later: a finished CI is looked at again.
                sure = 0 if finding.ci in UNSETTLED else sure or look.looks
                self.following.nudge()
                if spent >= self.rules.ci_most_sec:
                    return Finding(Ci.WAITING, f"CI of {commit[:12]} is not finished after {spent:.0f} s")
        finally:
            self.following.forget(commit)


def _word(finding: Finding) -> str:
    return {Ci.GREEN: "green", Ci.MIRROR: "green", Ci.RED: "red"}.get(finding.ci, UNKNOWN)

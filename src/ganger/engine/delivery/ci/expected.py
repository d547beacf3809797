"""Asks git and the ledger whether a CI run is expected for a pushed commit, and whether a push starts one at all."""

from __future__ import annotations

from ganger.core import events as ev
from ganger.core.delivery.ci_files import go_by_paths
from ganger.core.delivery.expected_ci import (
    NOT_EXPECTED,
    had_run,
    has_run_before,
    is_red,
    may_go_by_paths,
    told_of,
    unexpected_by,
    unexpected_for,
    unproved,
    was_pushed_again,
)
from ganger.core.model.ci import Ci, Finding
from ganger.core.model.ledger import TAKEN_UP
from ganger.core.vocabulary import PushStyle
from ganger.engine.delivery.context import DeliveryContext, passes


class ExpectedCi:
    def __init__(self, at: DeliveryContext, *, shares: bool) -> None:
        """`shares`: other changes go to the same branch, so a push holds more than one."""
        self.at, self.shares = at, shares
        self.state, self.repo, self.repository = at.case.state, at.case.spec.repo, at.sending.repository

    async def waived(self, sha: str, finding: Finding) -> bool:
        """Whether no run started, none was expected, and that is recorded."""
        case = self.at.case
        if finding.ci is not Ci.ABSENT or self.at.now.finding != Ci.ABSENT or had_run(self.at.now, sha):
            return False
        if not (why := await self.unexpected(sha)):
            return False
        why = f"{why}, and no run started within {self.at.rules.appear_sec:g} s"
        await case.record(ev.CiWaived(case.task, case.number, sha, NOT_EXPECTED, why))
        return True

    async def unexpected(self, sha: str) -> str:
        """Why no run is expected for it; empty where one is. Other tasks' changes in the push count like its own."""
        if not self._is_asked():
            return ""
        proved, names = self._proved, {self.at.case.task: self.at.now.merges}
        names |= unproved(self.state, self.repo) if self.shares else {}
        found = ""
        for name, commits in names.items():
            mine = name == self.at.case.task
            if not mine and not await self._holds(sha, commits, proved):
                continue
            spec = self.state.specs[name]
            why = "" if is_red(self.state, name) else unexpected_by(spec, self.at.rules)
            if not why and may_go_by_paths(spec, self.at.rules) and not is_red(self.state, name):
                why = await self._by_paths(sha)
            if not why:
                return ""
            found = why if mine else found
        return found

    def _is_asked(self) -> bool:
        spec, rules = self.at.case.spec, self.at.rules
        return bool(unexpected_by(spec, rules)) or may_go_by_paths(spec, rules)

    @property
    def _proved(self) -> str:
        return self.state.pushes.proved.get(self.repo, "") if self.shares else ""

    async def _holds(self, sha: str, commits: tuple[str, ...], proved: str) -> bool:
        """Whether any of them is in `sha` and not yet proved."""
        for one in commits:
            if await self.repository.is_ancestor(one, sha) and not (
                proved and await self.repository.is_ancestor(one, proved)
            ):
                return True
        return False

    async def _by_paths(self, sha: str) -> str:
        base = await self._base(sha)
        if not base:
            return ""
        if base == sha:
            return told_of(self.state, sha)
        return unexpected_for(await self.repository.files_between(base, sha), self.at.rules)

    async def _base(self, sha: str) -> str:
        """The commit below everything that is not proved yet; empty where it is unknown."""
        if not self.shares:
            target = await self.at.unless_stopped(self.at.outlet.remote.fetch(self.at.rules.branch))
            return await self.repository.fork_point(sha, target) if target else ""
        proved, onto = self._proved, self.at.now.onto
        if proved and await self.repository.is_ancestor(proved, sha):
            return proved
        if not onto or onto == sha or not await self.repository.is_ancestor(onto, sha):
            return ""
        for commits in unproved(self.state, self.repo).values():
            if await self._holds(onto, commits, ""):
                return ""
        return onto

    # --- an empty commit --------------------------------------------------------------------------------------------

    async def goes_by_paths(self, sha: str) -> bool:
        """Whether an empty commit, which changes no path, starts no run: by its workflows, or by the settings."""
        return bool(self.at.rules.ci_paths_ignore) or go_by_paths(await self.repository.ci_texts(sha))

    async def no_push_helps(self, sha: str) -> str:
        """Why another commit would not start a run either; empty where it may."""
        if was_pushed_again(self.at.now):
            return "an empty commit was pushed for it before, and none is pushed a second time"
        if await self.goes_by_paths(sha):
            return "its workflows filter by changed paths, and an empty commit changes none"
        taken_up = any(fact.what == TAKEN_UP and fact.commit == sha for fact in self.at.now.facts)
        if not taken_up or has_run_before(self.state, self.repo) or await self._ran_below(sha):
            return ""
        return f"nothing pushed to {self.at.now.branch} is known to have started a run, so another commit would not"

    async def _ran_below(self, sha: str) -> bool:
        """Whether CI ran for the branch's earlier commits."""
        onto, following = self.at.now.onto, self.at.following
        if self.at.rules.style is PushStyle.REQUEST or onto in ("", sha) or following is None:
            return False
        following.begin(onto)
        try:
            look = await following.look(onto, (), after=0, wait_sec=self.at.outlet.poll_most_sec)
            while not look.looks and look.trouble is None:
                # No answer yet says nothing.
                self.at.check_interrupts()
                look = await following.look(onto, (), after=0, wait_sec=self.at.outlet.poll_most_sec)
        finally:
            following.forget(onto)
        if look.trouble is not None and not passes(look.trouble):
            raise look.trouble
        return any(run.event in self.at.rules.events for run in look.runs)

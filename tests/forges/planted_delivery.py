"""Bugs of delivery, put into a running engine on purpose: whoever judges the table must see each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ganger import forges
from ganger.core.delivery.request_merges import MergeStep, RequestLook as RequestLook, next_step
from ganger.core.model import ci
from ganger.core.model.ci import CiRules, Finding, RunFact, Word
from ganger.engine.delivery.ci import wait
from ganger.engine.delivery.ci.culprits import Culprits
from ganger.engine.delivery.pollers.ci import CiLook, CiPoller
from ganger.engine.delivery.requests import merge
from ganger.engine.delivery.requests.merge import RequestMerging
from ganger.forges import ForgeSettings, Hosts
from ganger.forges.forgejo import read_run
from ganger.ports.forge import Forge


def newest_run(patch: pytest.MonkeyPatch) -> None:
    """The forge's newest run counts, whichever commit it is of."""
    really = forges.open_forge

    def opened(kind: str, settings: ForgeSettings, hosts: Hosts | None = None) -> Forge:
        forge: Any = really(kind, settings, hosts)

        async def runs(shas: Sequence[str]) -> Sequence[RunFact]:
            answer = await forge._site.get("R/actions/runs", {"limit": 50})
            rows = [read_run(row) for row in answer.json()["workflow_runs"] or []]
            newest = max(rows, key=lambda run: int(run.id), default=None)
            return [] if newest is None else [replace(newest, sha=sha) for sha in shas]

        forge.runs = runs
        return forge  # type: ignore[no-any-return]

    patch.setattr(forges, "open_forge", opened)


def skipped_is_success(patch: pytest.MonkeyPatch) -> None:
    """A job that was left out is taken for one that succeeded."""

    def judge(sha: str, runs: Iterable[RunFact], rules: CiRules) -> Finding:
        rosy = [
            replace(
                run,
                jobs=tuple(replace(job, word=Word.SUCCESS) if job.word is Word.SKIPPED else job for job in run.jobs),
            )
            for run in runs
        ]
        return ci.judge(sha, rosy, rules)

    patch.setattr(wait, "judge", judge)


def old_commit(patch: pytest.MonkeyPatch) -> None:
    """What was pushed first is followed for ever."""
    really, first = CiPoller.look, list[str]()

    async def look(self: CiPoller, sha: str, known: Iterable[RunFact], *, after: int, wait_sec: float) -> CiLook:
        first.append(sha)
        seen = await really(self, first[0], (), after=after, wait_sec=wait_sec)
        return replace(seen, runs=tuple(replace(run, sha=sha) for run in seen.runs))

    patch.setattr(CiPoller, "look", look)
    patch.setattr(CiPoller, "forget", lambda self, sha: None)
    patch.setattr(Culprits, "_is_red_below", _never)


async def _never(*_: object) -> bool:
    return False


def run_s_own_word(patch: pytest.MonkeyPatch) -> None:
    """A run that calls itself a success is believed, whatever its jobs say."""

    def judge(sha: str, runs: Iterable[RunFact], rules: CiRules) -> Finding:
        seen = list(runs)
        if any(run.word is Word.SUCCESS for run in seen):
            return Finding(ci.Ci.GREEN, "the run says so", mirror="success")
        return ci.judge(sha, seen, rules)

    patch.setattr(wait, "judge", judge)


def untested_head(patch: pytest.MonkeyPatch) -> None:
    """What a request is brought up to date with is merged before CI has said anything of it."""
    really = RequestMerging._update

    async def update(self: RequestMerging, target: str) -> None:
        await really(self, target)
        now = self.at.now
        await self.outlet.place_of(now.branch).push(now.commit, now.branch)
        known = self.request
        assert known is not None and self._forge is not None
        await self._forge.merge(self._at_forge(known), now.commit)

    patch.setattr(RequestMerging, "_update", update)


def no_update(patch: pytest.MonkeyPatch) -> None:
    """A request is merged although its target has moved on since it was tested."""

    def step(look: RequestLook, *, updates: bool) -> MergeStep:
        return next_step(look, updates=False)

    patch.setattr(merge, "next_step", step)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "newest run": newest_run,
    "skipped is success": skipped_is_success,
    "old commit": old_commit,
    "the run's own word": run_s_own_word,
    "untested head": untested_head,
    "no update": no_update,
}

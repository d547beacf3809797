"""The census of a commit: taken once for each tree and profile, in a fresh checkout, and stored as evidence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ganger.engine.stop_guard import StopGuard
from ganger.engine.verification.checks import Checks
from ganger.engine.verification.proof import CensusFiles, Copied, ProfileCensus, Proof, check_folder, tells_anything
from ganger.ports.repository import Repository


@dataclass(frozen=True, slots=True)
class Candidate:
    """A verified commit, its base, and the author of its change."""

    commit: str
    base: str
    base_tree: str
    files: tuple[str, ...]
    may_change_tests: bool = False
    promised: tuple[str, ...] = ()


class Censuses:
    """Of one repository in one run."""

    def __init__(self, checks: Checks, repository: Repository, run: Path) -> None:
        self._checks, self._repository = checks, repository
        self._files, self._logs = CensusFiles(run / "census"), run / "logs"
        self._taking: dict[str, asyncio.Lock] = {}

    def keep(self, evidence: str, census: ProfileCensus) -> None:
        """A merged candidate is the base of the next one."""
        if tells_anything(census):
            self._files.save(evidence, census)

    def proof(self, candidate: Candidate, profile: str, gate: StopGuard) -> Proof:
        """What the verdict on a candidate is compared with."""
        evidence = self._checks.evidence(candidate.base_tree, profile)

        async def base() -> ProfileCensus:
            return await self._of(evidence, candidate.base, profile, gate)

        async def known() -> ProfileCensus | None:
            return self._files.load(evidence)

        return Proof(
            base=base,
            known=known,
            without=lambda: self._checkout(candidate.base),
            files=candidate.files,
            promised=candidate.promised,
            may_change_tests=candidate.may_change_tests,
            copy=lambda: self._checkout(candidate.commit),
        )

    @asynccontextmanager
    async def _checkout(self, commit: str) -> AsyncIterator[Copied]:
        name = check_folder()
        try:
            yield await self._repository.checkout(name, commit), ()
        finally:
            await self._repository.drop_checkout(name)

    async def _of(self, evidence: str, commit: str, profile: str, gate: StopGuard) -> ProfileCensus:
        """Runs it now, unless that was done before or is being done."""
        async with self._taking.setdefault(evidence, asyncio.Lock()):
            known = self._files.load(evidence)
            if known is None:
                known = await self._take(evidence, commit, profile, gate)
                self._files.save(evidence, known)
            return known

    async def _take(self, evidence: str, commit: str, profile: str, gate: StopGuard) -> ProfileCensus:
        name = check_folder()
        log = self._logs / f"base.{evidence[:12]}.log"
        folder = await self._repository.checkout(name, commit)
        try:
            return await self._checks.count(profile, folder=folder, log=log, gate=gate, key=f"{log}#{name}")
        finally:
            await self._repository.drop_checkout(name)

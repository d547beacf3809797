"""The census in direct mode: the project without a change is a copy in which that change is undone."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ganger.engine.stop_guard import StopGuard
from ganger.engine.verification.checks import Checks
from ganger.engine.verification.proof import CensusFiles, Copied, ProfileCensus, Proof, check_folder, tells_anything
from ganger.local.run_folder import named_os_errors
from ganger.ports.copies import Copies

Originals = Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change in the project's own folder: its files, as they were before it (None: they did not exist)."""

    originals: Originals
    may_change_tests: bool = False
    promised: tuple[str, ...] = ()


class DirectCensuses:
    """Kept by what the folder held, so that the census of an accepted change is the base of the next one."""

    def __init__(self, checks: Checks, copies: Copies, run: Path) -> None:
        self._checks, self._copies = checks, copies
        self._files, self._run = CensusFiles(run / "census"), run

    async def keep(self, profile: str, census: ProfileCensus) -> None:
        evidence = await self._evidence({}, profile) if tells_anything(census) else ""
        if evidence:
            self._files.save(evidence, census)

    async def _evidence(self, originals: Originals, profile: str) -> str:
        """Empty if the project is too large to examine."""
        identity = await asyncio.to_thread(self._copies.identity, originals)
        return "" if identity is None else self._checks.evidence(identity, profile)

    def proof(self, edit: Edit, profile: str, gate: StopGuard) -> Proof:

        async def base() -> ProfileCensus:
            evidence = await self._evidence(edit.originals, profile)
            known = self._files.load(evidence) if evidence else {}
            if known is None:
                known = await self._take(edit.originals, profile, gate)
                self._files.save(evidence, known)
            return known

        async def known() -> ProfileCensus | None:
            evidence = await self._evidence(edit.originals, profile)
            return self._files.load(evidence) if evidence else None

        return Proof(
            base=base,
            known=known,
            without=lambda: self._copy_if_small(edit.originals),
            files=tuple(edit.originals),
            promised=edit.promised,
            may_change_tests=edit.may_change_tests,
            copy=lambda: self._copy_if_small({}),
            may_swap=False,
        )

    @asynccontextmanager
    async def _copy_if_small(self, originals: Originals) -> AsyncIterator[Copied | None]:
        if await asyncio.to_thread(self._copies.identity, originals) is None:
            yield None
            return
        async with self._copy(originals) as made:
            yield made

    async def _take(self, originals: Originals, profile: str, gate: StopGuard) -> ProfileCensus:
        async with self._copy(originals) as (folder, readable):
            log = self._run / "logs" / f"base.{folder.name}.log"
            return await self._checks.count(profile, folder=folder, log=log, gate=gate, key=str(log), readable=readable)

    @asynccontextmanager
    async def _copy(self, originals: Originals) -> AsyncIterator[Copied]:
        folder = self._run / "checks" / check_folder()
        try:
            with named_os_errors(folder):
                yield folder, await asyncio.to_thread(self._copies.copy, folder, originals)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

"""A repository to push to, and the real adapters asked about it: what tests against the loopback forge share."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ganger.core.model.ci import UNSETTLED, Ci, CiRules, Finding, RunFact, judge
from ganger.forges import ForgeSettings, Patience, open_forge
from ganger.ports.forge import Forge
from tests.forges.loopback.flavour import PROJECT
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.server import TOKEN, LoopbackForge, kind_of

T = TypeVar("T")
QUICK = Patience(first_sec=0.01, most_sec=0.5, rest_sec=0.05, rest_most_sec=0.2)


def ground_in(folder: Path) -> Ground:
    source = folder / "source"
    source.mkdir()
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q", "-b", "main"], [*who, "commit", "-q", "--allow-empty", "-m", "begin"]):
        subprocess.run(["git", *words], cwd=source, check=True)
    return Ground.make(folder / "forge.git", source)


def settings_for(server: LoopbackForge, **more: object) -> ForgeSettings:
    return ForgeSettings(server.url, PROJECT, token=lambda: server.token, call_sec=1.0, patience=QUICK)


def with_forge(flavour: str, server: LoopbackForge, asking: Callable[[Forge], Awaitable[T]]) -> T:
    """Asks through the real adapter of this kind of forge."""

    async def whole() -> T:
        forge = open_forge(kind_of(flavour), settings_for(server))
        try:
            return await asking(forge)
        finally:
            await forge.close()

    return asyncio.run(whole())


async def followed(forge: Forge, sha: str, rules: CiRules, *, looks: int = 20) -> Finding:
    """Looks until time alone brings nothing else, as whoever follows CI does; or the last finding."""
    known: dict[str, RunFact] = {}
    finding = Finding(Ci.ABSENT, "nobody looked")
    for _ in range(looks):
        for row in await forge.runs([sha]):
            if row.id not in known or known[row.id].asked != row.state:
                known[row.id] = await forge.jobs(row)
        finding = judge(sha, known.values(), rules)
        if finding.ci not in UNSETTLED:
            break
    return finding


def no_secret(*texts: Sequence[object]) -> bool:
    return TOKEN not in "\n".join(str(one) for text in texts for one in text)

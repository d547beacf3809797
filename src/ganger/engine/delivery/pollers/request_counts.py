"""Requests to forges, counted per minute and kept in a file for screens outside of the run."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Mapping

from ganger.errors import GangerError
from ganger.local.run_folder import RunFolder, replace_file
from ganger.ports.clock import Clock
from ganger.ports.forge import Forge

PACE_FILE = "forges.json"
_EVERY_SEC = 5.0
_MINUTE_SEC = 60.0


class ForgePace:
    """`forges` are by repository; those of one name share their count."""

    def __init__(self, folder: RunFolder, forges: Mapping[str, Forge], clock: Clock) -> None:
        self._path, self._forges, self._clock = folder.path / PACE_FILE, forges, clock
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        self._over = asyncio.Event()
        self._told: dict[str, dict[str, int]] = {}

    async def run(self) -> None:
        while not self._over.is_set():
            self.note()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_SEC):
                    await self._over.wait()

    def stop(self) -> None:
        if not self._over.is_set():
            self.note()
        self._over.set()

    def note(self) -> None:
        """Writes the file where a count changed; no work depends on it."""
        now, counts = self._clock.monotonic(), dict[str, dict[str, int]]()
        for repo, forge in self._forges.items():
            per_minute = self._per_minute(repo, forge.calls, now)
            known = counts.setdefault(forge.name, {"calls": 0, "per_minute": 0})
            counts[forge.name] = {
                "calls": known["calls"] + forge.calls,
                "per_minute": known["per_minute"] + per_minute,
            }
        if counts != self._told:
            self._told = counts
            with contextlib.suppress(GangerError):
                replace_file(self._path, json.dumps({"at": self._clock.now(), "forges": counts}))

    def _per_minute(self, repo: str, calls: int, now: float) -> int:
        seen = self._seen.setdefault(repo, deque([(now, 0)]))
        seen.append((now, calls))
        while len(seen) > 2 and seen[1][0] <= now - _MINUTE_SEC:
            seen.popleft()
        return calls - seen[0][1]

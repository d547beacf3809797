"""The keeper and the walls: what runs in them is timed, ended and found again as if there were none."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from ganger.launchers.launcher import KeptLauncher
from ganger.local.procfs import has_ended, mark_of, pids, tag_of
from ganger.ports.processes import Exit, Launch
from tests.patience import Patience
from tests.sandboxes.sandboxed import KINDS, Place, place

T = TypeVar("T")


class Kept:
    """A run with a keeper of its own, in whose workspace everything is confined."""

    def __init__(self, here: Place) -> None:
        self.here = here
        self.folder = here.settings.state_dir / "run"
        self.log = self.folder / "out.log"

    def launch(self, code: str, *, timeout_sec: float | None = 60) -> Launch:
        key = f"{self.folder}/attempt"
        launch = replace(self.here.launch("sh", "-c", code), key=key, log_path=self.log, timeout_sec=timeout_sec)
        return self.here.walls.confine(launch, self.here.room)

    def play(self, main: Callable[[KeptLauncher], Awaitable[T]]) -> T:
        async def whole() -> T:
            launcher = KeptLauncher(self.folder, grace_sec=20)
            try:
                return await main(launcher)
            finally:
                await launcher.close()

        return asyncio.run(whole())

    async def said(self, word: str) -> None:
        while word not in (self.log.read_text() if self.log.exists() else ""):
            await asyncio.sleep(0.005)

    def living(self) -> list[int]:
        """Every process of the attempt, however deep in the walls."""
        found = [pid for pid in pids() if (mark_of(pid) or "").startswith(str(self.folder))]
        return [pid for pid in found if not has_ended(pid)]


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return Kept(place(tmp_path, request.param))


def test_an_agent_that_is_stopped_has_its_grace(kept: Kept) -> None:
    """T23 G05: SIGTERM reaches the agent, not only the walls, and what it says on the way out is kept."""

    async def main(launcher: KeptLauncher) -> Exit:
        busy = "while :; do sleep .01; done"
        running = await launcher.start(kept.launch(f"trap 'echo saved; exit 7' TERM; echo up; {busy}"))
        await kept.said("up")
        await launcher.stop_all(20)
        return await running.wait()

    ended = kept.play(main)
    assert ended.code == 7 and "saved" in kept.log.read_text()


def test_what_an_agent_started_has_its_grace_too(kept: Kept) -> None:
    """T23 G05: the walls stand until a child that is still tidying up has done so."""
    child = "sh -c 'trap \"sleep .2; echo saved; exit\" TERM; echo up; while :; do sleep .01; done' & wait"

    async def main(launcher: KeptLauncher) -> Exit:
        running = await launcher.start(kept.launch(child))
        await kept.said("up")
        await launcher.stop_all(20)
        return await running.wait()

    assert kept.play(main).signal == signal.SIGTERM
    assert "saved" in kept.log.read_text() and kept.living() == []


@pytest.mark.parametrize("code", ["sleep 60", "setsid sleep 60 & echo up; wait", "trap '' TERM; sleep 60; sleep 60"])
def test_a_time_limit_ends_everything_in_the_walls(kept: Kept, code: str) -> None:
    """T23 H08 G05: also what fled into a session of its own."""

    async def main(launcher: KeptLauncher) -> Exit:
        launcher._grace_sec = 0.1
        return await (await launcher.start(kept.launch(code, timeout_sec=0.5))).wait()

    ended = kept.play(main)
    assert ended.timed_out and kept.living() == []


def test_a_daemon_does_not_outlive_the_attempt(kept: Kept) -> None:
    """H08 G05: when the agent ends, so does all it left behind, before its end is told."""

    async def main(launcher: KeptLauncher) -> Exit:
        return await (await launcher.start(kept.launch("(setsid sleep 60 &) ; echo done"))).wait()

    assert kept.play(main).code == 0
    assert kept.living() == [] and kept.log.read_text() == "done\n"


@pytest.mark.sample(3)
@pytest.mark.parametrize("after_ms", [0, 2, 5, 10, 20, 40])
def test_walls_that_fall_while_they_are_built_leave_nothing_behind(kept: Kept, after_ms: int) -> None:
    """T23 H08: bubblewrap's own tie to its parent has a gap there; the keeper's has none."""

    async def main(launcher: KeptLauncher) -> Exit:
        running = await launcher.start(kept.launch("sleep 60; :"))
        await asyncio.sleep(after_ms / 1000)
        launcher.kill_all()
        return await running.wait()

    assert kept.play(main).signal == signal.SIGKILL
    assert kept.living() == []


def test_every_process_in_the_walls_carries_the_attempts_mark_and_tag(kept: Kept) -> None:
    """G01 H08: so a later keeper finds and ends them by either."""

    async def main(launcher: KeptLauncher) -> list[bool]:
        await launcher.start(kept.launch("sleep 60 & echo up; wait"))
        await kept.said("up")
        tagged = [tag_of(pid) is not None for pid in kept.living()]
        launcher.kill_all()
        return tagged

    tagged = kept.play(main)
    assert len(tagged) >= 3 and all(tagged)


def test_the_keepers_death_ends_what_is_in_the_walls(kept: Kept) -> None:
    """G01 G05: no agent works on unknown."""

    async def main(launcher: KeptLauncher) -> None:
        await launcher.start(kept.launch("echo up; sleep 60; :"))
        await kept.said("up")
        os.kill(int((kept.folder / "keeper" / "lock").read_text()), signal.SIGKILL)

    kept.play(main)
    patience = Patience(20)
    while kept.living() and not patience.is_over():
        time.sleep(0.01)
    assert kept.living() == []

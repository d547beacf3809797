"""The simulator's own parts: time, death, processes and files behave as the real ones promise."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.contracts.task_result import Write
from ganger.ports.changes import Rules
from ganger.ports.processes import Launch
from sim.borrowed import Hands
from sim.clock import SimClock
from sim.keeper import Ending, Keeper, SimLauncher
from sim.life import Death, Killed, Life
from sim.loop import SimLoop, Stuck
from sim.workspace import Project, SimWorkspace


def a_loop(death: Death | None = None) -> SimLoop:
    clock = SimClock()
    return SimLoop(clock, Life(1, death, clock.monotonic), Hands(1))


def a_keeper(clock: SimClock, ending: Ending) -> Keeper:
    return Keeper(clock, lambda _launch: ending, watch_start=lambda _p: None, watch_end=lambda _p: None)


def a_launch(folder: Path, **changes: float) -> Launch:
    return Launch("key", ("agent",), folder, {}, None, folder / "log", changes.get("timeout_sec"))


def test_hours_of_waiting_take_no_time_and_happen_in_order() -> None:
    """H09: time moves only when nothing else can happen."""
    loop, seen = a_loop(), []

    async def wait(hours: float) -> None:
        await asyncio.sleep(hours * 3600)
        seen.append((hours, loop.time()))

    async def both() -> None:
        await asyncio.gather(wait(24), wait(1))

    loop.run_until_complete(both())
    assert seen == [(1, 3600.0), (24, 86400.0)]


def test_waiting_for_what_can_never_happen_is_an_error() -> None:
    """H09: a deadlock is found, not waited for."""

    async def forever() -> None:
        await asyncio.Event().wait()

    loop = a_loop()
    with pytest.raises(Stuck):
        loop.run_until_complete(forever())
    loop.bury()


def test_a_killed_lead_does_nothing_more_in_its_handlers() -> None:
    """G01: what a process would have done after SIGKILL is not done."""
    loop, done = a_loop(Death(after_sec=10)), []

    async def work() -> None:
        try:
            await asyncio.sleep(20)
        finally:
            loop.life.point("effect")
            done.append("cleaned up")

    with pytest.raises(Killed):
        loop.run_until_complete(work())
    loop.bury()
    assert done == []


def test_processes_outlive_the_lead_and_are_found_by_their_key(tmp_path: Path) -> None:
    """G01 H10: started once; the next lead gets the same end."""
    loop = a_loop()
    keeper = a_keeper(loop.clock, Ending(60.0, "said\n"))
    launcher = SimLauncher(keeper, loop.life)

    async def twice() -> tuple[int, int | None]:
        await launcher.start(a_launch(tmp_path))
        await launcher.start(a_launch(tmp_path))
        found = await launcher.find("key")
        assert found is not None and await launcher.find("other") is None
        return len(keeper.processes), (await found.wait()).code

    assert loop.run_until_complete(twice()) == (1, 0)
    assert (tmp_path / "log").read_text() == "said\n"


def test_what_ran_when_the_keeper_died_is_lost(tmp_path: Path) -> None:
    """H10 G01: only what really ran is lost."""
    clock = SimClock()
    keeper = a_keeper(clock, Ending(60.0, "said\n"))
    process = keeper.start(a_launch(tmp_path))
    clock.advance(30.0)
    keeper.die()
    assert process.exit is not None and process.exit.lost and not keeper.living()


def test_a_process_is_ended_at_its_limit_with_nobody_there(tmp_path: Path) -> None:
    """H08: limits need no lead."""
    clock = SimClock()
    process = a_keeper(clock, Ending(3600.0)).start(a_launch(tmp_path, timeout_sec=10))
    clock.advance(11.0)
    assert process.exit is not None and process.exit.timed_out and process.exit.duration_sec == 10.0


def test_a_process_that_gets_more_time_is_ended_later_or_not_at_all(tmp_path: Path) -> None:
    """D14: as with a real keeper."""
    clock = SimClock()
    keeper = a_keeper(clock, Ending(60.0))
    launch = a_launch(tmp_path, timeout_sec=10)
    late, through = (keeper.start(replace(launch, key=key)) for key in ("late", "through"))
    clock.advance(9.0)
    keeper.extend(late, 20.0)
    keeper.extend(through, 100.0)
    clock.advance(100.0)
    assert late.exit is not None and late.exit.timed_out and late.exit.duration_sec == 29.0
    assert through.exit is not None and through.exit.code == 0 and through.exit.duration_sec == 60.0


def test_files_are_left_half_written_where_the_lead_dies_and_put_back_from_the_backup(tmp_path: Path) -> None:
    """T18 T19: half a change is told from a whole one by what the files hold."""
    project = Project(tmp_path, {"a": "old"})
    dying = Life(1, Death(place="apply.file"), lambda: 0.0)
    writes = [
        Write(path=name, op="replace" if name == "a" else "create", encoding="utf8", content="new") for name in "ab"
    ]
    first = SimWorkspace(project, dying, watch_apply=lambda _name: None)
    changes, backup = first.propose(writes, Rules()), tmp_path / "backup"
    first.back_up(changes, backup)
    with pytest.raises(Killed):
        first.apply(changes, backup)
    second = SimWorkspace(project, Life(2, None, lambda: 0.0), watch_apply=lambda _name: None)
    assert second.landed(backup) is None
    assert second.roll_back(backup) == () and project.files == {"a": "old"}

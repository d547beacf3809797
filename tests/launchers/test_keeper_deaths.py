"""The death of the keeper, of its guard, of both: nothing runs on, no end is forgotten, the rest is known lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from ganger.errors import DiskFullError, KeeperError
from ganger.launchers.connect import start_keeper
from ganger.launchers.launcher import KeptLauncher
from ganger.launchers.paths import House, hold
from ganger.ports.processes import Exit
from tests.launchers.keeper_bench import Run, until

ROUNDS = int(os.environ.get("GANGER_TEST_ROUNDS", "6"))
# Out of its session, out of its parent's hands, with an empty environment.
FUGITIVE = """
import os, sys, time
print(os.getpid(), file=open('pids', 'a'), flush=True)
if len(sys.argv) == 1 and not os.fork():
    os.setsid()
    os.fork() and os._exit(0)
    os.execve(sys.executable, [sys.executable, '-S', 'fugitive.py', 'x'], {})
time.sleep(600)
"""
DEATHS = {"keeper": ("keeper",), "guard": ("guard",), "both": ("guard", "keeper")}


async def busy(run: Run, launcher: KeptLauncher) -> None:
    """One program has ended, one runs, one runs and has a fugitive."""
    (run.folder / "fugitive.py").write_text(FUGITIVE)
    await (await launcher.start(run.shell("ended", "exit 3"))).wait()
    await launcher.start(run.shell("running", "echo $$ >> pids; sleep 600"))
    await launcher.start(run.launch("fleeing", sys.executable, "-S", "fugitive.py"))
    while len(run.noted()) < 3:
        await asyncio.sleep(0.005)


def outcome(exit_: Exit | None) -> tuple[int | None, bool, bool] | None:
    return (exit_.code, exit_.started, exit_.lost) if exit_ is not None else None


@pytest.mark.brief(2)
@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "no-cgroup"])
@pytest.mark.parametrize("parts", DEATHS.values(), ids=DEATHS)
def test_a_lead_that_lives_learns_what_is_lost_once_it_is_gone(
    tmp_path: Path, parts: tuple[str, ...], cgroup: bool
) -> None:
    """G01 H08: whoever waits hears that it is lost, with the whole tree ended; what is asked next works."""
    run = Run(tmp_path, cgroup=cgroup)

    async def main(launcher: KeptLauncher) -> tuple[list[Exit], list[int], Exit]:
        await busy(run, launcher)
        waiting = [await launcher.start(run.shell(name, "never")) for name in ("running", "fleeing", "ended")]
        run.kill(*parts)
        exits = [await running.wait() for running in waiting]
        survivors = run.survivors()
        return exits, survivors, await (await launcher.start(run.shell("next", "exit 7"))).wait()

    exits, survivors, later = run.play(main)
    assert [each.lost for each in exits] == [True, True, False] and exits[2].code == 3
    assert survivors == [] and later.code == 7
    run.clear()


@pytest.mark.brief(2)
@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "no-cgroup"])
@pytest.mark.parametrize("parts", DEATHS.values(), ids=DEATHS)
def test_without_a_lead_nothing_runs_on_and_the_next_one_finds_out(
    tmp_path: Path, parts: tuple[str, ...], cgroup: bool
) -> None:
    """G01 H08: no unknown orphan works or spends; with both gone it ends as soon as anybody asks."""
    run = Run(tmp_path, cgroup=cgroup)
    run.play(lambda launcher: busy(run, launcher))
    run.kill(*parts)
    if parts != DEATHS["both"]:
        until(lambda: not run.survivors() and not run.processes("guard"))
    ended, running, fleeing, other = run.find_all(["ended", "running", "fleeing", "other"])
    assert outcome(ended) == (3, True, False) and other is None
    assert running is not None and running.lost and fleeing is not None and fleeing.lost
    assert run.survivors() == []
    run.clear()


@pytest.mark.parametrize("broken", ["DiesBeforeStarting", "DiesAfterStarting"])
def test_a_keeper_killed_around_a_start_leaves_a_lost_launch_and_no_process(tmp_path: Path, broken: str) -> None:
    """G01 T19: whether it ran can no longer be told, so it counts as run; it is never started a second time."""
    run = Run(tmp_path, broken=broken)

    async def main(launcher: KeptLauncher) -> Exit:
        return await (await launcher.start(run.shell("a", "echo $$ >> pids; sleep 600"))).wait()

    assert outcome(run.play(main)) == (None, True, True)
    assert outcome(run.found("a")) == (None, True, True)
    assert run.starts() <= 1 and run.survivors() == []
    run.clear()


def test_a_second_keeper_leaves_the_first_ones_things_alone(run: Run) -> None:
    """G01 H08: a keeper without its guard may still be ending programs; whoever comes then goes away again."""
    house = House(run.folder)
    house.room.mkdir()
    lock = hold(house.lock)
    house.write(house.address, "/nowhere/ganger-x/s")
    house.write(house.cgroup, "/nowhere/ganger-x")
    assert asyncio.run(start_keeper(house, run.options, 30)) == b"busy\n"
    until(lambda: not run.processes("guard"))
    assert house.read(house.address) and house.read(house.cgroup)
    os.close(lock or 0)


def told_is_kept(run: Run) -> bool:
    """Whether an end that was told is still known after the keeper is killed at that moment."""

    async def main(launcher: KeptLauncher) -> Exit:
        exit_ = await (await launcher.start(run.shell("a", "exit 3"))).wait()
        run.kill("keeper")
        return exit_

    told = run.play(main)
    found = run.found("a")
    run.clear()
    return told == found


def test_an_end_is_recorded_before_it_is_told(run: Run) -> None:
    """G01: what a lead has heard, the next one hears too."""
    assert told_is_kept(run)


def test_a_keeper_that_tells_before_it_records_is_caught(tmp_path: Path) -> None:
    """G01: planted bug."""
    assert not told_is_kept(Run(tmp_path, broken="TellsUnrecorded"))


def test_an_end_that_cannot_be_recorded_is_not_told(tmp_path: Path) -> None:
    """G01: the lead is told about the disk instead, and everything is ended."""
    run = Run(tmp_path, broken="CannotRecordEnds")

    async def main(launcher: KeptLauncher) -> None:
        other = await launcher.start(run.shell("other", "echo $$ >> pids; sleep 600"))
        await (await launcher.start(run.shell("a", "exit 3"))).wait()
        await other.wait()

    with pytest.raises(KeeperError, match=r"ledger.*No space left"):
        run.play(main)
    until(lambda: not run.processes("keeper"))
    assert run.survivors() == []
    run.clear()


def test_a_ledger_that_finds_no_room_lets_nothing_start(tmp_path: Path) -> None:
    """G01: what could not be recorded must not run."""
    run = Run(tmp_path, broken="CannotRecordStarts")

    async def main(launcher: KeptLauncher) -> None:
        await launcher.start(run.shell("a", ":"))

    with pytest.raises(DiskFullError, match="disk is full"):
        run.play(main)
    assert run.starts() == 0


def test_asked_to_terminate_the_keeper_ends_everything_and_says_so(run: Run) -> None:
    """G01 H08: a machine that shuts down; the programs are told first, and count as lost, not as failed."""

    async def main(launcher: KeptLauncher) -> Exit:
        running = await launcher.start(
            run.shell("a", "trap 'echo saved; exit 9' TERM; echo $$ >> pids; sleep 600 & wait")
        )
        while not run.noted():
            await asyncio.sleep(0.005)
        os.kill(run.processes("keeper")[0], signal.SIGTERM)
        return await running.wait()

    exit_ = run.play(main)
    assert (exit_.code, exit_.lost) == (9, True) and "saved" in (run.folder / "a.log").read_text()
    until(lambda: not run.processes("keeper") and not run.processes("guard"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_terminal_that_goes_away_is_nothing_to_the_keeper(run: Run, number: signal.Signals) -> None:
    """G01: Ctrl-C and a closed window are for the lead."""

    async def main(launcher: KeptLauncher) -> int | None:
        running = await launcher.start(run.shell("a", "while [ ! -e go ]; do sleep .01; done; exit 4"))
        for pid in [*run.processes("keeper"), *run.processes("guard")]:
            os.kill(pid, number)
        (run.folder / "go").touch()
        return (await running.wait()).code

    assert run.play(main) == 4


@pytest.mark.brief(3)
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_any_moment_nothing_is_lost_that_was_told_and_nothing_is_left(tmp_path: Path, seed: int) -> None:
    """G01 H08 T19: the keeper dies somewhere in a stream of starts and ends; GANGER_TEST_ROUNDS sets how often."""
    run, chance = Run(tmp_path), random.Random(seed)
    told: dict[str, Exit] = {}

    async def one(launcher: KeptLauncher, name: str) -> None:
        launch = run.shell(name, f"echo $$ >> pids; sleep 0.0{chance.randrange(10)}; exit 3")
        told[name] = await (await launcher.start(launch)).wait()

    async def main(launcher: KeptLauncher) -> None:
        tasks = [asyncio.create_task(one(launcher, f"t{n}")) for n in range(30)]
        await asyncio.sleep(chance.random() * 0.3)
        run.kill(*chance.choice(list(DEATHS.values())))
        await asyncio.gather(*tasks)

    run.play(main)
    assert run.survivors() == [] and run.starts() <= 30
    assert run.find_all(told) == list(told.values())
    assert all(exit_.lost or exit_.code == 3 for exit_ in told.values())
    run.clear()

"""A keeper that somebody stopped, or that hangs, holds up nobody who wants to end a run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from ganger.launchers.launcher import KeptLauncher
from ganger.launchers.paths import House, is_held
from ganger.local.procfs import has_ended, is_stopped, parent_of
from tests.cli.cli_project import kept, make_project, task
from tests.patience import stretched, until

pytestmark = pytest.mark.whole

WORKING = {"one": [[{"hang": True}]]}


def lead_of(root: Path) -> subprocess.Popen[bytes]:
    """A run with an agent that works and works."""
    make_project(root, task("one", timeout_sec=600), script=WORKING)
    lead = subprocess.Popen([sys.executable, "-m", "ganger", "run"], cwd=root, stdout=subprocess.PIPE)
    assert lead.stdout is not None
    with lead.stdout:
        assert any(b"attempt 1 started" in line for line in lead.stdout)
    return lead


def keeper_of(root: Path) -> tuple[House, int]:
    house = House(kept(root))
    until(lambda: is_held(house.lock) and bool(house.read(house.lock).strip()))
    return house, int(house.read(house.lock))


@pytest.mark.parametrize("frozen", ["keeper", "guard", "both"])
def test_a_run_with_a_frozen_keeper_can_be_stopped(tmp_path: Path, frozen: str) -> None:
    """H08 G12: the lead ends within its grace, and everything it started with it."""
    lead = lead_of(tmp_path)
    house, keeper = keeper_of(tmp_path)
    guard = parent_of(keeper)
    for pid in {"keeper": [keeper], "guard": [guard], "both": [keeper, guard]}[frozen]:
        os.kill(pid, signal.SIGSTOP)
        until(partial(is_stopped, pid))
    subprocess.run(
        [sys.executable, "-m", "ganger", "stop"], cwd=tmp_path, check=True, capture_output=True, timeout=stretched(30)
    )
    assert lead.wait(30) == 130
    until(lambda: has_ended(keeper) and has_ended(guard) and not is_held(house.lock))


@pytest.mark.parametrize("dies", [False, True], ids=["the lead", "the next lead"])
def test_whoever_leads_continues_a_frozen_keeper(tmp_path: Path, dies: bool) -> None:
    """H08 H10 G12: else no end would be told, no time limit kept, and an attempt that a person ends would go on."""
    lead = lead_of(tmp_path)
    _, keeper = keeper_of(tmp_path)
    os.kill(keeper, signal.SIGSTOP)
    until(lambda: is_stopped(keeper))
    if dies:
        lead.kill()
        lead.wait()
    subprocess.run([sys.executable, "-m", "ganger", "end", "one"], cwd=tmp_path, check=True, capture_output=True)
    if dies:
        lead = subprocess.Popen([sys.executable, "-m", "ganger", "run"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert lead.wait(50) == 3
    until(lambda: has_ended(keeper))


def test_a_keeper_that_answers_nobody_is_killed_and_its_programs_end(tmp_path: Path) -> None:
    """H08: continued again and again by nobody; a debugger holds it."""
    lead = lead_of(tmp_path)
    _, keeper = keeper_of(tmp_path)
    freezer = subprocess.Popen([sys.executable, "-c", f"{FREEZER}\nfreeze({keeper})"])
    try:
        until(lambda: is_stopped(keeper))
        lead.send_signal(signal.SIGTERM)
        assert lead.wait(60) == 130
    finally:
        freezer.kill()
        freezer.wait()
    until(lambda: has_ended(keeper))


def test_a_keeper_that_is_frozen_once_it_has_ended_everything_does_not_stay(tmp_path: Path) -> None:
    """H08: it would be a stopped process with a guard beside it, for good."""

    async def main() -> int:
        launcher = KeptLauncher(tmp_path, grace_sec=0.2)
        await launcher.prepare()
        house = House(tmp_path)
        keeper = int(house.read(house.lock))
        await launcher.stop_all(0.2)
        os.kill(keeper, signal.SIGSTOP)
        until(lambda: is_stopped(keeper))
        await launcher.close()
        return keeper

    keeper = asyncio.run(main())
    until(lambda: has_ended(keeper) and not is_held(House(tmp_path).guard_lock))


FREEZER = """
import os, signal, time
def freeze(pid):
    while True:
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return
        time.sleep(0.0005)
"""

"""What a launcher promises of trees: whatever a program started is gone when its end is told."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.launchers.launcher import KeptRunning
from ganger.ports.processes import Exit
from tests.patience import Patience
from tests.promises.launcher_bench import PRELUDE, Bench, children_of, keep_company


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    run = tmp_path_factory.mktemp("run")
    for pid in keep_company(run):
        yield run, pid


@pytest.fixture
def bench(keeper: tuple[Path, int], tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(keeper[0], tmp_path, keeper[1])
    yield bench
    bench.clear()


IGNORER = "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
TREES = {
    "plain": "wait()",
    "term-ignorer": IGNORER + "wait()",
    "stops-itself": "note(); open('ready', 'a').close(); os.kill(os.getpid(), signal.SIGSTOP)",
    "child": "os.fork(); wait()",
    "ignoring-child": "os.fork() or signal.signal(signal.SIGTERM, signal.SIG_IGN); wait()",
    "double-fork": "(os.fork() or (os.fork() and os._exit(0))); wait()",
    "setsid-child": "os.fork() or os.setsid(); wait()",
    "setsid-ignorer": IGNORER + "os.fork() or os.setsid(); wait()",
    "daemon": "note(); os.fork() or (os.setsid(), os.fork() and os._exit(0), wait()); time.sleep(60)",
    "own-group": "os.fork() or os.setpgid(0, 0); wait()",
}
ALONE = ("plain", "term-ignorer", "stops-itself")


async def grown(bench: Bench, *, timeout_sec: float | None = 60) -> dict[str, tuple[Bench, KeptRunning]]:
    """Every tree, each in a folder of its own, all grown."""
    trees = {}
    for name, code in TREES.items():
        own = Bench(bench.run, bench.folder / name)
        own.folder.mkdir()
        own.launcher = bench.launcher
        trees[name] = (own, await own.python(code, timeout_sec=timeout_sec))
    for name, (own, _) in trees.items():
        await own.ready(pids=1 if name in ALONE else 2)
    return trees


def test_a_time_out_ends_the_whole_tree(bench: Bench) -> None:
    """T23 H08: children, SIGTERM ignorers, stopped ones and those that left the group are gone when wait returns."""

    async def main() -> dict[str, tuple[Exit, list[int]]]:
        trees = await grown(bench, timeout_sec=4)
        return {name: (await running.wait(), own.survivors()) for name, (own, running) in trees.items()}

    for name, (exit_, survivors) in bench.play(main).items():
        assert exit_.timed_out and exit_.signal is not None and survivors == [], name


def test_stop_all_ends_the_whole_tree(bench: Bench) -> None:
    """T23 H08: the same trees, ended by the lead's own shutdown; a stop is no time-out."""

    async def main() -> dict[str, tuple[Exit, list[int]]]:
        trees = await grown(bench)
        await bench.launcher.stop_all(0.1)
        survivors = {name: own.survivors() for name, (own, _) in trees.items()}
        return {name: (await running.wait(), survivors[name]) for name, (_, running) in trees.items()}

    for name, (exit_, survivors) in bench.play(main).items():
        assert not exit_.timed_out and survivors == [], name
    assert children_of(bench.keeper) == []


def test_kill_all_ends_the_whole_tree_while_the_loop_stands_still(bench: Bench) -> None:
    """T23 H08: a second signal ends everything at once, without a turn of the lead's loop."""

    async def main() -> dict[str, list[int]]:
        trees = await grown(bench)
        bench.launcher.kill_all()
        patience = Patience(20)
        while any(own.survivors() for own, _ in trees.values()) and not patience.is_over():
            time.sleep(0.005)
        survivors = {name: own.survivors() for name, (own, _) in trees.items()}
        assert {(await running.wait()).signal for _, running in trees.values()} == {signal.SIGKILL}
        return survivors

    assert not any(bench.play(main).values())


@pytest.mark.parametrize("tree", ["child", "setsid-child", "daemon"])
def test_the_tree_harness_catches_a_launcher_that_kills_only_the_leader(bench: Bench, tree: str) -> None:
    """T23: planted bug; what the tests above look for is really there to be found."""
    argv = [sys.executable, "-S", "-c", PRELUDE + TREES[tree]]
    leader = subprocess.Popen(argv, cwd=bench.folder, stdout=subprocess.DEVNULL, start_new_session=True)
    asyncio.run(bench.ready(pids=2))
    leader.kill()
    leader.wait()
    assert bench.survivors() != []


UNTIL_READY = "\nwhile not os.path.exists('ready'): time.sleep(.005)"


def test_an_ordinary_end_leaves_no_process_of_the_group(bench: Bench) -> None:
    """H08: a program that exits 0 and leaves a child behind does not leave it behind."""
    exit_ = bench.ended_python(IGNORER + "os.fork() or wait()" + UNTIL_READY)
    assert exit_.code == 0
    assert bench.survivors() == []


def test_a_grandchild_that_holds_the_output_open_does_not_delay_the_end_and_does_not_survive_it(bench: Bench) -> None:
    """T06 H08: output is a file, nobody waits for a pipe to close; what left its session is ended too."""
    exit_ = bench.ended_python("os.fork() or (os.setsid(), wait())" + UNTIL_READY)
    assert exit_.code == 0 and exit_.duration_sec < 30
    assert bench.survivors() == []


def test_a_daemon_does_not_outlive_the_attempt_that_made_it(bench: Bench) -> None:
    """H08 T17: forked twice, out of its session, its parents gone: adopted and ended before anything is verified."""
    code = "if not os.fork():\n os.setsid()\n os.fork() and os._exit(0)\n wait()"
    assert bench.ended_python(code + UNTIL_READY).code == 0
    assert bench.survivors() == []


def test_the_daemon_of_one_program_outlives_the_end_of_another(bench: Bench) -> None:
    """T23 H08: even with an empty environment and a session of its own it is known whose it is."""
    become = f"os.execve(sys.executable, ['d', '-S', '-c', {PRELUDE + 'wait()'!r}], {{}})"
    daemon = f"os.fork() or (os.setsid(), os.fork() and os._exit(0), {become})"

    async def main() -> tuple[int, list[int]]:
        running = await bench.python(f"{daemon}\ntime.sleep(60)", name="owner")
        await bench.ready()
        await (await bench.python("sys.exit()", name="other")).wait()
        kept = len(bench.survivors())
        os.killpg(running.pid or 0, signal.SIGKILL)
        await running.wait()
        return kept, bench.survivors()

    assert bench.play(main) == (1, [])


def test_others_are_ended_by_their_whole_key(bench: Bench) -> None:
    """T23: the key is compared whole, so keeping attempt 1 does not keep attempt 11, and the other way round."""

    async def main() -> tuple[int, list[bool]]:
        started = [
            await bench.python("os.fork() or (os.setsid(), wait())\ntime.sleep(60)", name=n) for n in ("1", "11")
        ]
        await bench.ready(pids=2)
        ended = await bench.launcher.end_others([bench.key("11")])
        lives = [Path(f"/proc/{running.pid}").exists() for running in started]
        await bench.launcher.end_others([])
        return ended, lives

    assert bench.play(main) == (1, [False, True])
    assert bench.survivors() == []


def test_a_graceful_program_is_given_its_grace(bench: Bench) -> None:
    """T23: SIGTERM first; what it does within the grace counts."""

    async def main() -> Exit:
        running = await bench.python("signal.signal(15, lambda *_: (time.sleep(.3), sys.exit(7))); wait()")
        await bench.ready()
        await bench.launcher.stop_all(20)
        return await running.wait()

    assert bench.play(main).code == 7


def test_a_stopped_program_is_woken_to_see_its_end_coming(bench: Bench) -> None:
    """T23: without that a program that stands still could never use its grace."""

    async def main() -> Exit:
        stopping = "note(); open('ready', 'a').close(); os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)"
        running = await bench.python(f"signal.signal(15, lambda *_: sys.exit(7)); {stopping}")
        while ") T " not in Path(f"/proc/{running.pid}/stat").read_text():
            await asyncio.sleep(0.005)
        await bench.launcher.stop_all(20)
        return await running.wait()

    assert bench.play(main).code == 7


def test_an_obedient_leader_does_not_take_the_grace_from_its_child(bench: Bench) -> None:
    """T23: a wrapper that dies at once leaves the real program its time to finish."""

    async def main() -> Exit:
        child = "signal.signal(15, lambda *_: (time.sleep(.3), print('saved', flush=True), os._exit(0)))"
        running = await bench.python(f"os.fork() or ({child}, wait()); time.sleep(60)")
        await bench.ready()
        await bench.launcher.stop_all(20)
        return await running.wait()

    assert bench.play(main).signal == signal.SIGTERM
    assert "saved" in bench.log.read_text()


def test_a_second_stop_with_a_shorter_grace_shortens_it(bench: Bench) -> None:
    """T23: a second signal ends at once."""

    async def main() -> Exit:
        running = await bench.python(IGNORER + "wait()", timeout_sec=None)
        await bench.ready()
        patient = asyncio.create_task(bench.launcher.stop_all(3600))
        await asyncio.sleep(0)
        await bench.launcher.stop_all(0)
        await patient
        return await running.wait()

    assert bench.play(main).signal == signal.SIGKILL


def test_stopping_with_nothing_running_is_harmless(bench: Bench) -> None:
    """H08: a stop may come at any time, also before anything was started."""

    async def main() -> None:
        await bench.launcher.stop_all(0)
        await bench.launcher.start(bench.launch("no-such-program"))
        await bench.launcher.stop_all(0)
        bench.launcher.kill_all()

    bench.play(main)

"""What a launcher promises of a program that runs: what its processes do now, and more time if it is asked."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ganger.engine.workers.monitor import is_at_work
from ganger.launchers.launcher import KeptRunning
from ganger.launchers.processes.facts import tree_facts
from ganger.ports.processes import Exit, Facts, Launch
from ganger.ports.sandbox import Room
from ganger.sandboxes.bubblewrap import Bubblewrap
from ganger.sandboxes.choose import SandboxSettings, candidates
from ganger.sandboxes.trial import give
from tests.patience import Patience
from tests.promises.launcher_bench import PRELUDE, Bench, keep_company

BUSY = "note(); open('ready', 'a').close()\nwhile True: pass"
PATIENCE_SEC = 30.0


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    run = tmp_path_factory.mktemp("run")
    for pid in keep_company(run):
        yield run, pid


@pytest.fixture
def bench(company: tuple[Path, int], tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(company[0], tmp_path, company[1])
    yield bench
    bench.clear()


async def facts(bench: Bench, running: KeptRunning, holds: Callable[[Facts], bool]) -> Facts:
    """The first look of which that holds."""
    patience = Patience(PATIENCE_SEC)
    while (found := bench.launcher.facts(running)) is None or not holds(found):
        assert not patience.is_over(), f"it never came to be: {found}"
        await asyncio.sleep(0.01)
    return found


def wrapped(bench: Bench, code: str) -> Launch:
    """The same program inside walls."""
    root = bench.folder / "project"
    home, workspace = bench.folder / "home", root / ".ganger" / "work"
    for folder in (home, workspace):
        folder.mkdir(parents=True)
    settings = SandboxSettings(root, root / ".ganger", home, os.environ["PATH"])
    walls = next(walls for walls in candidates(settings) if isinstance(walls, Bubblewrap))
    give(walls, workspace)
    launch = Launch(
        bench.key(), (sys.executable, "-S", "-c", code), workspace, {"PATH": os.environ["PATH"]}, None, bench.log, 60
    )
    return walls.confine(launch, Room(writable=(workspace,)))


PLACES = ["plain", "child", pytest.param("walled", marks=pytest.mark.needs("bwrap"))]


async def started(bench: Bench, where: str, code: str) -> KeptRunning:
    """In a process of its own, as a child of another, or inside walls."""
    if where == "walled":
        return await bench.launcher.start(wrapped(bench, f"import time\n{code}"))
    if where == "child":
        code = f"subprocess.run([sys.executable, '-S', '-c', {f'import time{chr(10)}{code}'!r}])"
    return await bench.python(code)


@pytest.mark.whole
@pytest.mark.parametrize("where", PLACES)
def test_a_busy_program_uses_ever_more_processor_time(bench: Bench, where: str) -> None:
    """H02: whoever computes in silence is seen at work, wherever in its tree."""

    async def main() -> None:
        running = await started(bench, where, "while True: pass")
        first = await facts(bench, running, lambda found: found.cpu_sec > 0.2)
        then = await facts(bench, running, lambda found: found.cpu_sec > first.cpu_sec + 0.2)
        assert not first.stopped and not then.stopped
        assert then.processes >= (1 if where == "plain" else 2)
        await bench.launcher.end(bench.key())
        await running.wait()

    bench.play(main)


@pytest.mark.parametrize("where", PLACES)
def test_a_sleeping_program_uses_none(bench: Bench, where: str) -> None:
    """H02 H03: so its silence can be told from work."""

    async def main() -> float:
        running = await started(bench, where, "print('begun', flush=True)\ntime.sleep(60)")
        while not bench.log.exists() or "begun" not in bench.log.read_text():
            await asyncio.sleep(0.01)
        first = await facts(bench, running, lambda _: True)
        await asyncio.sleep(1.0)
        then = await facts(bench, running, lambda _: True)
        assert not then.stopped
        await bench.launcher.end(bench.key())
        await running.wait()
        return then.cpu_sec - first.cpu_sec

    assert bench.play(main) <= 0.05


def descendants(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for thread in Path(f"/proc/{one}/task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found


@pytest.mark.parametrize("where", PLACES)
def test_a_stopped_program_is_seen_to_be_stopped_until_it_goes_on(bench: Bench, where: str) -> None:
    """H03: also where those around it only wait for it."""

    async def main() -> None:
        running = await started(bench, where, "print('begun', flush=True)\ntime.sleep(60)")
        while not bench.log.exists() or "begun" not in bench.log.read_text():
            await asyncio.sleep(0.01)
        last = descendants(running.pid or 0)[-1]
        os.kill(last, signal.SIGSTOP)
        await facts(bench, running, lambda found: found.stopped)
        os.kill(last, signal.SIGCONT)
        await facts(bench, running, lambda found: not found.stopped)
        await bench.launcher.end(bench.key())
        await running.wait()

    bench.play(main)


def test_a_stopped_child_of_a_busy_program_stops_nobody(bench: Bench) -> None:
    """H02: somebody else of the tree is at work."""
    code = "subprocess.Popen(['sleep', '60'])\n" + BUSY

    async def main() -> Facts:
        running = await bench.python(code)
        await bench.ready()
        os.kill(descendants(running.pid or 0)[-1], signal.SIGSTOP)
        first = await facts(bench, running, lambda found: found.processes == 2)
        then = await facts(bench, running, lambda found: found.cpu_sec > first.cpu_sec + 0.1)
        await bench.launcher.end(bench.key())
        await running.wait()
        return then

    assert not bench.play(main).stopped


def test_nothing_is_told_of_a_program_that_is_gone(bench: Bench) -> None:
    """H08: nor of another that got its number."""

    async def main() -> None:
        running = await bench.python("wait()")
        await bench.ready()
        other = KeptRunning(asyncio.get_running_loop().create_future(), running.pid, (running.start_time or 0) + 1)
        assert bench.launcher.facts(running) is not None and bench.launcher.facts(other) is None
        await bench.launcher.end(bench.key())
        await running.wait()
        assert bench.launcher.facts(running) is None

    bench.play(main)


def test_a_program_that_gets_more_time_lives_past_its_limit(bench: Bench) -> None:
    """D14: and a shorter time than it has takes nothing away."""

    async def main() -> tuple[list[bool], Exit]:
        running = await bench.python("note(); time.sleep(1.2)", timeout_sec=0.8)
        given = [await bench.launcher.extend(bench.key(), sec) for sec in (30.0, 0.01, 30.0)]
        return given, await running.wait()

    given, exit_ = bench.play(main)
    assert given == [True, True, True] and (exit_.code, exit_.timed_out) == (0, False)


def test_the_new_limit_is_held(bench: Bench) -> None:
    """D14: by the keeper, whoever leads."""

    async def main() -> Exit:
        running = await bench.python("wait()", timeout_sec=0.3)
        assert await bench.launcher.extend(bench.key(), 1.0)
        return await running.wait()

    exit_ = bench.play(main)
    assert exit_.timed_out and exit_.duration_sec >= 1.0


def test_one_without_a_limit_gets_none(bench: Bench) -> None:
    """D14: more time is never less."""

    async def main() -> Exit:
        running = await bench.python("time.sleep(.4)", timeout_sec=None)
        assert await bench.launcher.extend(bench.key(), 0.1)
        return await running.wait()

    assert not bench.play(main).timed_out


def test_what_is_not_running_or_being_ended_gets_no_time(bench: Bench) -> None:
    """H08: an end that was asked for comes."""
    code = PRELUDE + "signal.signal(signal.SIGTERM, signal.SIG_IGN); wait()"

    async def main() -> list[bool]:
        found = [await bench.launcher.extend(bench.key("nobody"), 30.0)]
        running = await bench.python(code, timeout_sec=20)
        await bench.ready()
        found += [await bench.launcher.extend(bench.key(), sec) for sec in (0.0, -1.0, float("nan"))]
        await bench.launcher.end(bench.key())
        found.append(await bench.launcher.extend(bench.key(), 30.0))
        await running.wait()
        return [*found, await bench.launcher.extend(bench.key(), 30.0)]

    assert bench.play(main) == [False] * 6


STARVED = "import os; os.sched_setaffinity(0, {0}); os.nice(19)\nwhile True: pass"
GREEDY = "import os; os.sched_setaffinity(0, {0})\nwhile True: pass"
# On a busy machine it stands in line each time it wakes, so it wakes rarely.
IDLE = "import time\nwhile True: time.sleep(2)"


@pytest.mark.parametrize(("code", "works"), [(STARVED, True), (GREEDY, True), (IDLE, False)])
def test_who_gets_next_to_nothing_of_the_processor_is_still_seen_at_work(code: str, works: bool) -> None:
    """H02: on a machine with too much to do it stands in line; one that is idle does not."""
    programs = [subprocess.Popen([sys.executable, "-S", "-c", text]) for text in (code, GREEDY)]
    try:
        watched = programs[0].pid
        seen: list[bool] = []
        # How long it stood in line is known only once it had its turn: on a busy machine that takes many looks.
        patience = Patience(10)
        before, at = tree_facts(watched, None), time.monotonic()
        while len(seen) < 5 or (works and sum(seen[1:]) < 2 and not patience.is_over()):
            time.sleep(0.3)
            found, now = tree_facts(watched, None), time.monotonic()
            assert before is not None and found is not None
            seen.append(is_at_work(before, found, now - at))
            before, at = found, now
        assert sum(seen[1:]) >= 2 if works else sum(seen[1:]) <= 1
    finally:
        for program in programs:
            program.kill()
            program.wait()

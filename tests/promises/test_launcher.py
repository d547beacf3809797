"""What a launcher promises of one program: its log first, its end seen, its limits held, its failure told."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.errors import DiskFullError
from ganger.local.procfs import start_ticks
from ganger.ports.processes import Exit, Launch
from tests.promises.launcher_bench import ENV, Bench, children_of, keep_company


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


def test_both_outputs_go_to_the_log_in_the_order_they_were_written(bench: Bench) -> None:
    """T06: combined stdout and stderr of a worker are in its log, and only the owner may read it."""
    bench.ended_python("[os.write(1 + n % 2, b'%d ' % n) for n in range(200)]")
    assert bench.log.read_text().split() == [str(n) for n in range(200)]
    assert bench.log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("code", [0, 1, 2, 64, 130, 255])
def test_an_exit_code_is_reported_as_it_is(bench: Bench, code: int) -> None:
    """T06: the code is kept; what it means is decided elsewhere."""
    exit_ = bench.ended_python(f"sys.exit({code})")
    assert (exit_.code, exit_.signal, exit_.timed_out, exit_.started) == (code, None, False, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_an_end_by_signal_is_no_exit_code(bench: Bench, number: signal.Signals) -> None:
    """T06: a process that was killed shows the signal."""
    exit_ = bench.ended_python(f"os.kill(os.getpid(), {int(number)})")
    assert (exit_.code, exit_.signal, exit_.timed_out) == (None, number, False)


def test_a_prompt_file_is_the_programs_input_and_without_one_the_input_is_empty(bench: Bench) -> None:
    """T24: a program never reads the terminal of the lead."""
    prompt = bench.folder / "prompt"
    prompt.write_text("do it")
    code = "import sys; print(repr(sys.stdin.read()))"
    argv, log = (sys.executable, "-S", "-c", code), bench.log
    bench.ended(Launch(bench.key("in"), argv, bench.folder, ENV, prompt, log, 30))
    bench.ended(Launch(bench.key("none"), argv, bench.folder, ENV, None, log, 30, append=True))
    assert log.read_text().split("\n") == ["'do it'", "''", ""]


def test_a_log_is_started_afresh_unless_it_is_appended_to(bench: Bench) -> None:
    """T06: an attempt's log holds that attempt alone."""
    bench.log.write_text("old\n")
    bench.ended_python("print('new')")
    assert bench.log.read_text() == "new\n"


def unstartable(bench: Bench) -> dict[str, tuple[Launch, str]]:
    plain, odd = bench.folder / "plain", bench.folder / "odd"
    plain.write_text("#!/bin/sh\n")
    odd.write_text("no first line")
    odd.chmod(0o700)
    os.mkfifo(bench.folder / "fifo")
    (bench.folder / "link").symlink_to(bench.folder / "elsewhere")

    def at(cwd: str = ".", log: str = "out.log", stdin: Path | None = None) -> Launch:
        return Launch(bench.key("k"), ("true",), bench.folder / cwd, ENV, stdin, bench.folder / log, 30)

    return {
        "missing-program": (bench.launch("no-such-program"), "'no-such-program'"),
        "missing-path": (bench.launch("./nowhere/x"), "'./nowhere/x'"),
        "not-executable": (bench.launch(str(plain)), "not executable"),
        "no-interpreter-line": (bench.launch(str(odd)), "#!"),
        "huge-arguments": (bench.launch("true", *["x" * 100_000] * 40), "too long"),
        "nul-in-arguments": (bench.launch("true", "a\0b"), "null byte"),
        "half-a-surrogate": (bench.launch("true", "\ud800"), "not usable"),
        "bad-variable-name": (bench.launch("true", env={**ENV, "A=B": "c"}), "not usable"),
        "no-program": (bench.launch(), "no program"),
        "missing-directory": (at("gone"), "gone cannot be entered"),
        "directory-is-a-file": (at("plain"), "plain cannot be entered"),
        "missing-log-folder": (at(log="gone/out.log"), "gone/out.log cannot be opened"),
        "log-is-a-link": (at(log="link"), "link cannot be opened"),
        "log-is-a-fifo": (at(log="fifo"), "fifo cannot be opened"),
        "missing-input": (at(stdin=bench.folder / "gone"), "gone cannot be opened"),
        "input-is-a-fifo": (at(stdin=bench.folder / "fifo"), "fifo cannot be opened"),
    }


UNSTARTABLE = [
    *("missing-program", "missing-path", "not-executable", "no-interpreter-line", "huge-arguments", "nul-in-arguments"),
    *("half-a-surrogate", "bad-variable-name", "no-program", "missing-directory", "directory-is-a-file"),
    *("missing-log-folder", "log-is-a-link", "log-is-a-fifo", "missing-input", "input-is-a-fifo"),
]


@pytest.mark.parametrize("case", UNSTARTABLE)
def test_a_program_that_cannot_start_says_why_in_a_sentence(bench: Bench, case: str) -> None:
    """T24: it is an outcome of the attempt, never an exception in the lead."""
    launch, words = unstartable(bench)[case]
    exit_ = bench.ended(launch)
    assert (exit_.started, exit_.code, exit_.signal) == (False, None, None)
    assert words in exit_.error
    assert not (bench.folder / "elsewhere").exists()


def test_a_log_that_finds_no_room_is_a_full_disk(bench: Bench) -> None:
    """T06: without a log nothing may run, and the person is told about the disk."""
    small = bench.folder / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=1", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        assert os.environ.get("CI") != "true", "this test must run where CI=true"
        pytest.skip("mounting a full disk needs root")
    try:
        with pytest.raises(DiskFullError, match="disk is full"):
            bench.ended(Launch(bench.key("k"), ("true",), bench.folder, ENV, None, small / "log", 30))
    finally:
        subprocess.run(["umount", small], check=True)


def test_cancelling_the_waiting_task_loses_no_program(bench: Bench) -> None:
    """H08: the program goes on, still known, until it ends or is stopped."""

    async def main() -> tuple[bool, Exit]:
        running = await bench.python("wait()")
        await bench.ready()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.wait(), 0.01)
        survived = bench.survivors() != []
        await bench.launcher.stop_all(0)
        return survived, await running.wait()

    survived, exit_ = bench.play(main)
    assert survived and exit_.signal is not None and bench.survivors() == []


def test_a_program_that_ended_before_anybody_looked_is_seen(bench: Bench) -> None:
    """T06: no end is missed, however early it comes."""

    async def main() -> Exit:
        running = await bench.launcher.start(bench.launch("false"))
        while Path(f"/proc/{running.pid}").exists():
            await asyncio.sleep(0.005)
        return await running.wait()

    assert bench.play(main).code == 1


def test_an_end_just_before_the_limit_is_no_time_out(bench: Bench) -> None:
    """T06: a program whose end and whose limit are seen in one turn of the keeper has ended by itself."""

    async def main() -> Exit:
        running = await bench.python("wait()", timeout_sec=1)
        os.kill(bench.keeper, signal.SIGSTOP)
        try:
            os.killpg(running.pid or 0, signal.SIGKILL)
            await asyncio.sleep(1.1)
        finally:
            os.kill(bench.keeper, signal.SIGCONT)
        return await running.wait()

    exit_ = bench.play(main)
    assert (exit_.signal, exit_.timed_out) == (signal.SIGKILL, False)


def test_fifty_programs_run_side_by_side_without_threads_or_leaks(bench: Bench) -> None:
    """H08: each has its own end; no thread, descriptor or zombie stays, here or in the keeper."""

    async def main() -> tuple[list[int | None], int]:
        argv = [("sh", "-c", f"sleep .3; exit {n}") for n in range(50)]
        started = [await bench.launcher.start(bench.launch(*argv[n], name=str(n))) for n in range(50)]
        return [(await running.wait()).code for running in started], threading.active_count()

    def descriptors() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{bench.keeper}/fd"))

    before, threads = descriptors(), threading.active_count()
    codes, during = bench.play(main)
    assert codes == list(range(50))
    assert descriptors() == before and during == threads
    assert children_of(bench.keeper) == []


def test_output_over_its_limit_ends_the_program(bench: Bench) -> None:
    """T23: a program that floods its log is ended by the keeper, at once and without grace."""

    async def main() -> Exit:
        flood = bench.launch("sh", "-c", "trap '' TERM; while :; do echo flood; done")
        limited = Launch(flood.key, flood.argv, flood.cwd, ENV, None, flood.log_path, 30, output_limit_bytes=10_000)
        return await (await bench.launcher.start(limited)).wait()

    exit_ = bench.play(main)
    assert (exit_.over_output, exit_.timed_out, exit_.signal) == (True, False, signal.SIGKILL)
    assert exit_.log_bytes == bench.log.stat().st_size > 10_000


def test_output_under_its_limit_is_left_alone(bench: Bench) -> None:
    """T23: a limit that is not reached changes nothing, however often it is looked at."""
    launch = bench.launch("sh", "-c", "echo little; sleep .6")
    limited = Launch(launch.key, launch.argv, launch.cwd, ENV, None, launch.log_path, 30, output_limit_bytes=10_000)
    exit_ = bench.ended(limited)
    assert (exit_.code, exit_.over_output, exit_.log_bytes) == (0, False, 7)


def test_a_process_is_named_by_its_number_and_start_time(bench: Bench) -> None:
    """H08: a number that was given to another process is recognised."""

    async def main() -> tuple[int | None, int | None, int | None]:
        running = await bench.python("wait()")
        seen = start_ticks(running.pid or 0)
        await bench.launcher.stop_all(0)
        return running.start_time, seen, start_ticks(running.pid or 0)

    recorded, seen, after = bench.play(main)
    assert recorded is not None and recorded == seen and after is None


def test_signals_the_keeper_ignores_are_not_ignored_by_its_programs(bench: Bench) -> None:
    """T24: a program starts with every signal as it expects it."""
    bench.ended_python("print(all(signal.getsignal(n) != signal.SIG_IGN for n in (1, 15)))")
    assert bench.log.read_text() == "True\n"

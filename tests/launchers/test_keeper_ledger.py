"""The ledger: what it says after any kind of end, and that nothing is told before it is safely there."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.launchers.launcher import KeptLauncher
from ganger.launchers.ledger import LOST, EndRecord, Ledger, read_ledger, refusal
from ganger.ports.processes import Exit
from tests.launchers.keeper_bench import Run

DONE = Exit(0, None, timed_out=False, duration_sec=0.5, started=True, error="", log_bytes=10)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Three launches: one ended, one refused, one running."""
    ledger = Ledger(tmp_path / "ledger")
    for number, key in enumerate(("ended", "refused", "running")):
        ledger.starting(key, tmp_path / f"{key}.log", number, 0.0)
        ledger.started(key, 10 + number, 20 + number, "boot")
    ledger.ended("ended", DONE)
    ledger.ended("refused", refusal("no such program"))
    ledger.close()
    return tmp_path / "ledger"


def test_a_ledger_tells_what_ended_and_what_never_did(written: Path) -> None:
    """G01: the next keeper starts from what the last one wrote."""
    account = read_ledger(written)
    assert account.ended["ended"] == EndRecord(DONE, written.parent / "ended.log", 10, 20)
    assert account.ended["refused"].exit.error == "no such program"
    assert list(account.open) == ["running"] and account.open["running"].tag == 2


def test_a_ledger_cut_off_anywhere_says_nothing_untrue(written: Path) -> None:
    """G01: a torn last line is as good as none, and the line after it is whole."""
    whole, full = written.read_bytes(), read_ledger(written)
    for length in range(0, len(whole), 5):
        written.write_bytes(whole[:length])
        cut = read_ledger(written)
        assert all(full.ended[key].exit == ended.exit for key, ended in cut.ended.items())
        ledger = Ledger(written)
        ledger.starting("later", written, 9, 0.0)
        ledger.close()
        assert "later" in read_ledger(written).open


def test_an_end_whose_log_lost_its_tail_is_worth_nothing(tmp_path: Path) -> None:
    """G01 T19: after a power cut the log may be shorter than it was; then the launch counts as lost."""
    log = tmp_path / "log"
    log.write_text("x" * 10)
    assert EndRecord(DONE, log).now() == DONE
    log.write_text("x" * 9)
    assert EndRecord(DONE, log).now() == replace(DONE, lost=True)
    log.unlink()
    assert EndRecord(DONE, log).now().lost
    assert EndRecord(LOST, log).now() == LOST


def synced_before_told(run: Run) -> bool:
    """What the kernel saw: whether the ledger was flushed before the end was sent."""
    trace = run.folder / "trace"

    async def main(launcher: KeptLauncher) -> None:
        first = await launcher.start(run.shell("first", "while [ ! -e go ]; do sleep .01; done"))
        argv = [
            "strace",
            "-e",
            "trace=fsync,sendto",
            "-s",
            "200",
            "-o",
            str(trace),
            "-p",
            str(run.processes("keeper")[0]),
        ]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None and "attached" in tracer.stderr.readline()
            (run.folder / "go").touch()
            await first.wait()
            tracer.terminate()

    run.play(main)
    before, told, _ = trace.read_text().partition('\\"ended\\"')
    assert told

    return "fsync(" in before


@pytest.mark.needs("strace")
def test_an_end_is_on_disk_before_it_is_told(run: Run) -> None:
    """G01: power may fail at the moment the lead hears of it."""
    assert synced_before_told(run)


@pytest.mark.needs("strace")
def test_a_keeper_that_tells_before_it_flushes_is_caught(tmp_path: Path) -> None:
    """G01: planted bug."""
    run = Run(tmp_path, broken="TellsUnsynced")
    assert not synced_before_told(run)


@pytest.mark.parametrize("part", ["guard", "keeper"])
def test_the_small_processes_load_little(part: str) -> None:
    """G01: they outlive everything, so they must be small and start at once; the guard is smaller still."""
    code = f"from ganger.launchers import {part}; import sys; print(*sys.modules)"
    source = Path(__file__).parents[2] / "src"
    boot = f"import sys; sys.path.append({str(source)!r}); {code}"
    seen = subprocess.run([sys.executable, "-I", "-S", "-c", boot], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "pydantic", "apsw", "click", "yaml", "rich", "ganger.contracts", "ganger.core", "ganger.engine"}
    heavy |= {"pathlib", "dataclasses", "subprocess", "json"} if part == "guard" else {"tempfile", "logging", "ssl"}
    assert heavy & set(seen.stdout.split()) == set()


def test_the_guard_does_not_go_by_the_keepers_name(run: Run) -> None:
    """G01: whoever ends keepers by name leaves the guard to do its work."""

    async def main(launcher: KeptLauncher) -> list[bytes]:
        await launcher.start(run.shell("a", ":"))
        return Path(f"/proc/{run.processes('guard')[0]}/cmdline").read_bytes().split(b"\0")

    assert not any(b"keeper" in word for word in run.play(main) if str(run.folder).encode() not in word)

"""Logs of any size: bounded memory, linear time, the right block."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.contracts.parser import Parsed, parse_result
from ganger.contracts.reading.blocks import TASK_RESULT

MB = 1024 * 1024
START, END = TASK_RESULT.start, TASK_RESULT.end
GOOD = b'{"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "s"}'
BLOCK = b"\n" + START + b"\n" + GOOD + b"\n" + END + b"\n"
LINE = b"2026-11-15 06:53:02 INFO building module 12345 with <option> ok and more words here\n"
COLOURED = b"\x1b[32m2026-11-15\x1b[0m \x1b[1mINFO\x1b[0m building module <12345>\r\n"
# VmHWM, not ru_maxrss: the latter begins with the size of the process that started this one.
MEASURE = """
import sys
from pathlib import Path
from ganger.contracts.parser import parse_result
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
parse_result(b"")
before = peak()
verdict = parse_result(Path(sys.argv[1]))
print(type(verdict).__name__, peak() - before)
"""


def fill(file: Path, unit: bytes, size: int, *, first: bytes = b"", last: bytes = b"") -> Path:
    piece = unit * max(1, MB // len(unit))
    with file.open("wb") as handle:
        handle.write(first)
        while handle.tell() < size:
            handle.write(piece)
        handle.write(last)
    return file


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "big.log"
    (tmp_path / "big.log").unlink(missing_ok=True)


def growth(log: Path) -> tuple[str, int]:
    """The verdict's type and by how many KB a fresh process grew to reach it."""
    ran = subprocess.run([sys.executable, "-c", MEASURE, str(log)], capture_output=True, text=True, check=True)
    kind, kilobytes = ran.stdout.split()
    return kind, int(kilobytes)


@pytest.mark.brief(2)
@pytest.mark.parametrize(
    ("unit", "first", "last", "kind"),
    [
        (LINE, b"", b"", "Refused"),
        (LINE, BLOCK, b"", "Parsed"),
        (COLOURED, BLOCK, b"", "Parsed"),
        (b"x", b"", BLOCK, "Parsed"),
        (b"x", BLOCK, b"", "Parsed"),
        (LINE, b"\n" + START + b"\n", END, "Refused"),
    ],
    ids=["plain", "block first", "coloured", "one line, block last", "one line, block first", "body of 100 MB"],
)
def test_a_log_of_100_mb_takes_little_memory(unit: bytes, first: bytes, last: bytes, kind: str, log: Path) -> None:
    """T07: the log is never loaded; less than 64 MB are added to the process."""
    verdict, kilobytes = growth(fill(log, unit, 100 * MB, first=first, last=last))
    assert verdict == kind and kilobytes < 64 * 1024


def test_a_reader_that_loads_the_log_is_caught(log: Path) -> None:
    """T07: the memory harness sees a planted bug."""
    fill(log, LINE, 100 * MB)
    loading = MEASURE.replace("parse_result(Path(sys.argv[1]))", "parse_result(Path(sys.argv[1]).read_bytes())")
    ran = subprocess.run([sys.executable, "-c", loading, str(log)], capture_output=True, text=True, check=True)
    assert int(ran.stdout.split()[1]) > 64 * 1024


def test_a_sparse_log_of_a_terabyte_yields_its_last_block_at_once(log: Path) -> None:
    """T07: only the end is read when the answer is at the end."""
    with log.open("wb") as handle:
        handle.truncate(1 << 40)
        handle.seek(0, os.SEEK_END)
        handle.write(BLOCK)
    assert isinstance(parse_result(log), Parsed)


ADVERSARIES = {
    "starts": START + b"\n", "starts inside lines": b"a" + START, "ends": END + b"\n", "ends inside lines": END + b"x",
    "ends on one line": END, "quoted blocks": b"a" + START + b"1" + END + b"b\n", "no line break": b"x", "spaces": b" ",
    "escapes": b"\x1b", "colours": COLOURED, "open titles": b"\x1b]" + b"x" * 4000,
    "long titles": b"\x1b]" + b"x" * 5000,
    "NUL": b"\0", "carriage returns": b"10%\r", "C1": b"\xc2\x9b", "continuation bytes": b"\x80", "angles": b"<",
    "blank starts": b" " * 1000 + START, "line breaks": b"\n",
}  # fmt: skip


@pytest.mark.brief(9)
@pytest.mark.parametrize("unit", ADVERSARIES.values(), ids=ADVERSARIES)
def test_an_adversarial_log_takes_linear_time_and_hides_nothing(unit: bytes, log: Path) -> None:
    """T07: four times the log takes about four times the time; an answer before it is found."""

    def seconds(megabytes: int) -> float:
        fill(log, unit, megabytes * MB, first=BLOCK)
        began = time.process_time()
        assert isinstance(parse_result(log), Parsed)
        return time.process_time() - began

    small = min(seconds(12), seconds(12))
    assert seconds(48) < 10 * small + 0.5

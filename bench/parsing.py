"""What reading an agent's answer out of a large log costs, against only reading the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from bench.processes import BenchError, run, scratch
from bench.sizes import MIB, Sizes

MOST_TO_READ = 3.0
MOST_OVER_BARE_MB = 64.0
_JUDGED_FROM = 100_000_000
_CHILD = Path(__file__).with_name("parse_once.py")
_BARE = "print(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])"
_BODY = b'{"contract_version":"2.0","task_id":"t","status":"DONE","summary":"done"}'
_BLOCK = b"\n<<<TASK_RESULT_V2>>>\n" + _BODY + b"\n<<<END_TASK_RESULT_V2>>>\n"
_BROKEN = b"".join(b"\x1b[32m" + _BLOCK[at : at + 7] + b"\x1b[0m" for at in range(0, len(_BLOCK), 7))
_PLAIN_LINE = b"reading src/ledger/account.py and looking for the place where a balance is rounded, step %09d\n"
_COLOUR_LINE = b"\x1b[2m12:34:56\x1b[0m \x1b[36mreading\x1b[0m src/ledger/\x1b[1maccount.py\x1b[0m step %09d\r\n"


@dataclass(frozen=True, slots=True)
class Reading:
    """One log read and parsed: the least time of each, and the parsing process's memory."""

    size: int
    read_sec: float
    parse_sec: float
    found: bool
    imported_bytes: int
    peak_bytes: int


def measure(sizes: Sizes) -> Iterator[Figure]:
    log = scratch() / "worker.log"
    _fill(log, _PLAIN_LINE, sizes.log_bytes)
    whole = _reading(log, sizes, found=False)
    yield from _figures("plain log without a block", whole)
    with _extended(log, _BLOCK):
        yield from _figures("plain log, block at the end", _reading(log, sizes, found=True))
    with _extended(log, _BROKEN):
        yield from _figures("plain log, block broken up by escape codes", _reading(log, sizes, found=True))
    _cut(log, sizes.log_bytes // 4)
    yield _slope(_reading(log, sizes, found=False), whole)
    _fill(log, _COLOUR_LINE, sizes.log_bytes)
    yield from _figures("colours on every line, no block", _reading(log, sizes, found=False))
    log.unlink()


@contextmanager
def _extended(log: Path, tail: bytes) -> Iterator[None]:
    """The log with something at its end, which is cut off again afterwards."""
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(tail)
    yield
    _cut(log, size)


def _cut(log: Path, size: int) -> None:
    with log.open("r+b") as file:
        file.truncate(size)


def _fill(log: Path, line: bytes, size: int) -> None:
    part = b"".join(line % number for number in range(max(1, min(size, 8 * MIB) // len(line % 0))))
    with log.open("wb") as file:
        for _ in range(max(1, size // len(part))):
            file.write(part)


def _reading(log: Path, sizes: Sizes, *, found: bool) -> Reading:
    said = run([sys.executable, str(_CHILD), str(log), str(sizes.log_rounds)], log.parent).output
    reading = Reading(size=log.stat().st_size, **json.loads(said))
    if reading.found is not found:
        raise BenchError(f"{log.name}: the parser {'missed a' if found else 'found a'} block")
    return reading


def _figures(name: str, reading: Reading) -> Iterator[Figure]:
    megabytes = reading.size / 1e6
    speed = f"{megabytes / reading.parse_sec:,.0f} MB/s of {megabytes:,.0f} MB"
    yield Figure("parser", f"{name}: to reading the file", reading.parse_sec / reading.read_sec, "x", how=speed)
    over_import = (reading.peak_bytes - reading.imported_bytes) / 1e6
    over_bare = (reading.peak_bytes - _bare_bytes()) / 1e6
    note = f"{over_import:.1f} MB of it after the import"
    yield Figure("parser", f"{name}: memory over a bare interpreter", over_bare, "MB", MOST_OVER_BARE_MB, note)


def _slope(small: Reading, large: Reading) -> Figure:
    """What each further megabyte costs: the fixed second look at a log's tail cancels out."""
    ratio = (large.parse_sec - small.parse_sec) / (large.read_sec - small.read_sec)
    note = f"from {small.size / 1e6:,.0f} to {large.size / 1e6:,.0f} MB"
    bound = MOST_TO_READ if large.size >= _JUDGED_FROM else None
    return Figure("parser", "plain log without a block: each further MB, to reading it", ratio, "x", bound, note)


def _bare_bytes() -> int:
    return int(run([sys.executable, "-c", _BARE], Path.cwd()).output) * 1024

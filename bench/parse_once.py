"""Reads and parses one log in turn, several times; prints the best of each and the peak memory as one JSON line.

Run as a program, so that the memory is its own: `python parse_once.py LOG ROUNDS`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from ganger.contracts.parser import Parsed, parse_result
from ganger.contracts.reading.blocks import CHUNK


def peak_bytes() -> int:
    """The most memory this process ever had, as the kernel counts it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmHWM")


def read_all(log: Path) -> float:
    began = time.perf_counter()
    handle = os.open(log, os.O_RDONLY)
    while os.read(handle, CHUNK):
        pass
    os.close(handle)
    return time.perf_counter() - began


def parse(log: Path) -> tuple[float, bool]:
    began = time.perf_counter()
    answer = parse_result(log)
    return time.perf_counter() - began, isinstance(answer, Parsed)


def main(log: Path, rounds: int) -> None:
    imported = peak_bytes()
    reads, parses = [], []
    for _ in range(rounds):
        reads.append(read_all(log))
        seconds, found = parse(log)
        parses.append(seconds)
    answer = {"read_sec": min(reads), "parse_sec": min(parses), "found": found}
    print(json.dumps(answer | {"imported_bytes": imported, "peak_bytes": peak_bytes()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

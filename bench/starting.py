"""What a short command costs, against starting the same interpreter with nothing to do."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure
from bench.processes import GANGER, ganger, run, scratch
from bench.project import Fleet, build
from bench.sizes import Sizes

MOST_HELP = 6.0
MOST_HEARTBEAT = 3.0
_TAKEN = b'{"ok": true, "messages": 0, "latest": 0}'
_BARE = (sys.executable, "-c", "pass")
_COMMANDS: dict[tuple[str, ...], float | None] = {
    ("--help",): MOST_HELP,
    ("--version",): None,
    ("status", "--json"): None,
    ("validate",): None,
}


def measure(sizes: Sizes) -> Iterator[Figure]:
    """The least of many, each round running every command once: start-up is a floor, noise only adds."""
    root = scratch()
    build(root, Fleet(4))
    ganger(root, "run")
    bare: list[float] = []
    taken: dict[tuple[str, ...], list[float]] = {words: [] for words in _COMMANDS}
    for _ in range(sizes.start_rounds):
        bare.append(run(_BARE, root).wall_sec)
        for words, times in taken.items():
            times.append(run([*GANGER, *words], root).wall_sec)
    for words, most in _COMMANDS.items():
        best = min(taken[words])
        note = f"{best * 1000:.0f} ms to {min(bare) * 1000:.0f} ms"
        yield Figure("start", f"ganger {' '.join(words)}: to python -c pass", best / min(bare), "x", most, note)
    yield heartbeats(sizes.start_rounds)


def heartbeats(rounds: int) -> Figure:
    """Processor time: a worker makes one every few seconds, beside everything else that runs."""
    root = scratch()
    (root / "desk").mkdir()
    place = {"GANGER_REPORT": str(root / "s"), "GANGER_TOKEN": "w1.1." + "a" * 40, "GANGER_DESK": str(root / "desk")}
    bare, beats = [], []
    with _taking(root / "s"):
        for _ in range(rounds):
            bare.append(run(_BARE, root).cpu_sec)
            beats.append(run([*GANGER, "worker", "heartbeat"], root, place).cpu_sec)
    note = f"processor time: {min(beats) * 1000:.0f} ms to {min(bare) * 1000:.0f} ms"
    what = "ganger worker heartbeat: to python -c pass"
    return Figure("start", what, min(beats) / min(bare), "x", MOST_HEARTBEAT, note)


@contextmanager
def _taking(path: Path) -> Iterator[None]:
    """Somebody who takes every request; the socket's end ends it."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        thread = threading.Thread(target=_take, args=(door,))
        thread.start()
        try:
            yield
        finally:
            door.shutdown(socket.SHUT_RDWR)
            thread.join()


def _take(door: socket.socket) -> None:
    while True:
        try:
            line, _ = door.accept()
        except OSError:
            return
        with line:
            while not line.recv(65536).endswith(b"}"):
                continue
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(_TAKEN) + _TAKEN)

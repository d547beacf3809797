"""What workers of a disturbed run wrote down themselves: what they were given, what they said, what they were told.

Every thing they say has a word of its own, by which it is found among the events.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Note:
    """One line: `asked`, `given`, `says` (before it is sent), `taken`, `kept`, `refused`, and `over` at the end.

    `waited_sec`: how long it had asked when it was given its task. `why`: the code of a refusal.
    """

    what: str
    worker: str
    at: float
    task: str = ""
    attempt: int = 0
    verb: str = ""
    word: str = ""
    waited_sec: float = 0.0
    why: str = ""


class WorkerRecord:
    """On the disk before its writer goes on."""

    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(exist_ok=True)
        self.worker = worker
        self._file = os.open(folder / f"{worker}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, what: str, **more: object) -> None:
        line = Note(what, self.worker, time.time(), **more)  # type: ignore[arg-type]
        os.write(self._file, json.dumps(asdict(line)).encode() + b"\n")
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def read(folder: Path) -> list[Note]:
    """Every note, each worker's own in their order."""
    return [note for file in sorted(folder.glob("*.jsonl")) for note in _notes(file)]


def _notes(file: Path) -> Iterator[Note]:
    for line in file.read_bytes().split(b"\n")[:-1]:
        yield Note(**json.loads(line))


def count(folder: Path, what: str) -> int:
    """How often this was noted so far; cheap enough to ask often."""
    mark = f'{{"what": "{what}"'.encode()
    return sum(file.read_bytes().count(mark) for file in folder.glob("*.jsonl"))

"""`python -m faults.sessions BASE`: many sessions that take tasks, speak of them and report, until the run is over.

A process of its own beside the leads that are killed: its threads must not be forked. What it should do lies in
`BASE/crowd.json`; each session keeps a record.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from faults import planted_reports
from faults.carriers import Away, Carrier, Files, Held, Mcp, Program, Said, Socket, WorkerError
from faults.worker_records import WorkerRecord
from ganger.worker.folders import private_folder

CARRIERS = ("socket", "http", "program", "mcp", "files")
SPOKEN = ("progress", "heartbeat", "milestone", "checkpoint")
_AWAY_SEC = 0.05


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many sessions there are of each kind, and how much each says of every task. `files`: it edits its folder."""

    run: str
    sessions: dict[str, int]
    reports: int = 1
    files: bool = False
    seed: int = 0
    bug: str = ""

    def write(self, base: Path) -> None:
        (base / "crowd.json").write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, base: Path) -> Crowd:
        return cls(**json.loads((base / "crowd.json").read_text()))


class Session:
    def __init__(self, base: Path, crowd: Crowd, kind: str, number: int) -> None:
        self.worker = f"{kind}-{number:03d}"
        self._crowd, self._over = crowd, base / "over"
        self._chance = random.Random(f"{crowd.seed} {self.worker}")  # noqa: S311
        self._carrier = _carrier(base, crowd, kind, self.worker)
        self._record = WorkerRecord(base / "records", self.worker)
        self._words = 0

    def work(self) -> None:
        asked_at = time.monotonic()
        while not self._over.exists():
            try:
                held = self._carrier.next()
            except WorkerError as trouble:
                if not isinstance(trouble, Away):
                    raise
                time.sleep(_AWAY_SEC)
                continue
            if held is not None:
                waited = round(time.monotonic() - asked_at, 4)
                self._record.note("given", task=held.task, attempt=held.attempt, waited_sec=waited)
                self._do(held)
                asked_at = time.monotonic()
        self._record.note("over")

    def _do(self, held: Held) -> None:
        for number in range(self._crowd.reports):
            if self._spoken(held, SPOKEN[(number + self._words) % len(SPOKEN)]) == "refused":
                return
        if self._leaves(held):
            self._spoken(held, "checkpoint", leave=True)
            self._carrier.settle(held)
            return
        if self._crowd.files:
            (held.workspace / "out").mkdir(exist_ok=True)
            (held.workspace / "out" / f"{held.task}.txt").write_text("x\n")
        self._spoken(held, "report")
        self._carrier.settle(held)

    def _leaves(self, held: Held) -> bool:
        """Some tasks need two sessions: the first one leaves. Who can only write files cannot say so."""
        return held.attempt == 1 and int(held.task.lstrip("t")) % 8 == 3 and not self.worker.startswith("files")

    def _spoken(self, held: Held, verb: str, **more: object) -> str:
        """Until it is taken, kept or refused; nothing is said before it is written down."""
        self._words += 1
        word = f"{self.worker}.{self._words}"
        body = {"id": word, **_body(verb, word, held.task, writes=not self._crowd.files), **more}
        what = {"task": held.task, "attempt": held.attempt, "verb": verb, "word": word}
        self._record.note("says", **what)
        said = self._insisted(held, verb, body)
        self._record.note(said.what, why=said.why, **what)
        return said.what

    def _insisted(self, held: Held, verb: str, body: dict[str, object]) -> Said:
        while True:
            try:
                return self._carrier.say(held, verb, body)
            except Away as away:
                if verb == "heartbeat":
                    return Said("gone", away.why)
                if self._over.exists():
                    return Said("gone", "the run is over")
                time.sleep(_AWAY_SEC)


def change_of(task: str) -> tuple[str, str, str]:
    """What a task does where its result holds its changes: every second one adds to a file that all share."""
    shared = int(task.lstrip("t")) % 2
    return ("append", "ledger.txt", f"{task}\n") if shared else ("create", f"out/{task}.txt", "x\n")


def _body(verb: str, word: str, task: str, *, writes: bool) -> dict[str, object]:
    if verb == "report":
        change = dict(zip(("op", "path", "content"), change_of(task), strict=True)) | {"encoding": "utf8"}
        result = {"contract_version": "2.0", "task_id": task, "status": "DONE", "summary": word}
        return {"result": result | ({"writes": [change]} if writes else {})}
    if verb == "milestone":
        return {"name": word}
    if verb == "checkpoint":
        return {"summary": word, "done": ["this"], "remaining": ["that"]}
    return {"step": word}


def _carrier(base: Path, crowd: Crowd, kind: str, worker: str) -> Carrier:
    root = base / "ground" / "project"
    above = root / ".ganger" if crowd.files else Path(private_folder(str(root), os.environ))
    folder = above / crowd.run
    if kind == "program":
        return Program(root, worker, base)
    if kind == "mcp":
        return Mcp(folder, worker)
    return Files(folder, worker) if kind == "files" else Socket(folder, worker, http=kind == "http")


def main(base: Path) -> int:
    crowd = Crowd.read(base)
    if crowd.bug:
        planted_reports.plant_in_workers(crowd.bug)
    problems: list[str] = []

    def work(kind: str, number: int) -> None:
        try:
            Session(base, crowd, kind, number).work()
        except BaseException:  # noqa: BLE001 - told at the end, for all of them
            problems.append(traceback.format_exc())

    threads = [
        threading.Thread(target=work, args=(kind, number))
        for kind, many in crowd.sessions.items()
        for number in range(many)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

"""Looks at what a disturbed run left and says what is wrong: the invariants, and how the scenario must end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faults.leads import Ended
from faults.scenario import Place
from ganger.core import events as ev
from ganger.core.invariants import Attempt, Seen, broken
from ganger.runs import read_events
from ganger.engine.files import RunFolder
from ganger.errors import GangerError

MARK = b"GANGER_ATTEMPT_MARK="
_WORKER = re.compile(rb"/logs/([^/]+)\.worker\.(\d+)\.log")
_SETTLE_SEC = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """A living process that belongs to a place."""

    pid: int
    key: bytes
    command: bytes

    @property
    def attempt(self) -> Attempt | None:
        found = _WORKER.search(self.key)
        return (found[1].decode(), int(found[2])) if found else None


def processes(place: Place) -> list[Process]:
    """Everything alive that carries the place's path in its command line or environment; not this process."""
    needle = os.fsencode(str(place.base)) + b"/"
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                command, environ = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
                marks = [word for word in environ.split(b"\0") if word.startswith(MARK)]
                if needle in command or any(needle in mark for mark in marks):
                    found.append(Process(int(entry.name), marks[0].removeprefix(MARK) if marks else b"", command))
    return found


def end_all(place: Place) -> None:
    """Leaves nothing of a place alive, so that one bad point does not disturb the next."""
    for process in processes(place):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)


def starts(place: Place) -> Counter[Attempt]:
    """What the agents themselves wrote down when they began."""
    lines = [line.split() for line in place.starts.read_text().splitlines()]
    return Counter((line[0], int(line[1])) for line in lines if len(line) == 3)


def events_of(place: Place) -> list[ev.Recorded]:
    """The events as they lie in the store; none when there is no store yet."""
    folder = RunFolder(place.run_folder)
    if not folder.database.exists():
        return []
    try:
        return list(read_events(folder, 0))
    except GangerError as error:
        if error.code == "NOT_FOUND" or "nothing has been recorded" in error.message:
            return []
        raise


def changed_files(place: Place) -> list[str]:
    """Files of the project that are not as the run found them; half-made temporary names aside."""
    found = []
    for path in sorted(place.root.rglob("*")):
        name = path.relative_to(place.root).as_posix()
        if name.startswith(".ganger/") or not path.is_file() or path.name.startswith(".ganger"):
            continue
        if name not in _BUILT and path.read_text(errors="replace") != place.scenario.files.get(name):
            found.append(name)
    return found


_BUILT = frozenset({"ganger.toml", "prompt.md", "verify.json", "manifest.json"})


def judge(place: Place, shown: Sequence[tuple[int, str]], *, ended: Ended | None) -> list[str]:
    """What is wrong now. `ended` is given when a lead went its whole way and said so."""
    alive = [process.attempt for process in processes(place)]
    counted = starts(place)
    text = (place.run_folder / "state.json").read_text() if (place.run_folder / "state.json").exists() else None
    try:
        events = events_of(place)
    except GangerError as error:
        return [f"store: {error.message}"]
    seen = Seen(
        state_text=text,
        exact=ended is not None,
        finished=ended is not None,
        shown=shown,
        agent_starts=counted,
        live=[attempt for attempt in dict.fromkeys(alive) if attempt is not None],
        changed=changed_files(place),
    )
    return broken(events, seen)


def judge_end(place: Place, ended: Ended, shown: Sequence[tuple[int, str]]) -> list[str]:
    """A run that was let go on must end as if nothing had happened."""
    wrong = [] if ended.code == 0 else [f"outcome: the lead ended with {ended.code}: {ended.said.strip()[-600:]}"]
    if "Traceback" in ended.said:
        wrong.append(f"outcome: a traceback was shown: {ended.said.strip()[-600:]}")
    wrong += _left_alive(place)
    wrong += judge(place, shown, ended=ended)
    for path, lines in place.scenario.expected_files().items():
        file = place.root / path
        found = file.read_text().splitlines() if file.exists() else []
        if sorted(found) != sorted(lines):
            wrong.append(f"files: {path} holds {found}, expected {sorted(lines)}")
    extra = set(changed_files(place)) - place.scenario.expected_files().keys()
    wrong += [f"files: {path} was left behind" for path in sorted(extra)]
    backups = place.run_folder / "backups"
    wrong += [f"files: the backup {path.name} was left" for path in (backups.iterdir() if backups.exists() else ())]
    return wrong


def _left_alive(place: Place) -> list[str]:
    end = time.monotonic() + _SETTLE_SEC
    while (left := processes(place)) and time.monotonic() < end:
        time.sleep(0.01)
    return [f"left behind: process {one.pid} {one.command.replace(bytes(1), b' ').decode(errors='replace')[:200]}" for one in left]


def extra_starts(place: Place) -> dict[str, int]:
    """How often each task's agent was started beyond an undisturbed run."""
    by_task: Counter[str] = Counter()
    for (name, _), count in starts(place).items():
        by_task[name] += count
    usual = place.scenario.undisturbed_starts
    return {name: by_task[name] - usual[name] for name in usual if by_task[name] != usual[name]}


def interruptions(events: Sequence[ev.Recorded]) -> Counter[str]:
    """How often each task lost an attempt that nobody pays for."""
    return Counter(r.event.task for r in events if isinstance(r.event, ev.AttemptInterrupted))

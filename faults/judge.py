"""Looks at what a disturbed run left and says what is wrong: the invariants, and how the scenario must end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from checker.invariants import HEALER, Attempt, Seen, broken
from faults.branch import branch_at_end, branch_now
from faults.leads import Ended
from faults.scenario import TOGETHER, Place
from ganger.app.runs import read_events
from ganger.core import events as ev
from ganger.core.vocabulary import FailureClass, TaskStatus
from ganger.errors import GangerError
from ganger.local.run_folder import RunFolder

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


def keepers(place: Place) -> list[int]:
    """The processes that keep this place's agents."""
    marks = (b"\0ganger.launchers.keeper\0", b":held_keeper\0")
    return [process.pid for process in processes(place) if any(mark in process.command for mark in marks)]


def end_all(place: Place) -> None:
    """Leaves nothing of a place alive, so that one bad point does not disturb the next."""
    for process in processes(place):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)


def starts(place: Place) -> Counter[Attempt]:
    """What the agents themselves wrote down when they began."""
    lines = [line.split() for line in place.starts.read_text().splitlines()]
    return Counter((HEALER if line[3] == "healer" else line[0], int(line[1])) for line in lines if len(line) == 4)


def starts_by_task(place: Place) -> Counter[str]:
    counted: Counter[str] = Counter()
    for (name, _), count in starts(place).items():
        counted[name or "healer"] += count
    return counted


def events_of(place: Place) -> list[ev.Recorded]:
    """The events as they lie in the store; none when it cannot be read, as when its very creation was cut off.

    An event that somebody was told of is missed all the same, and a broken store stops the next lead.
    """
    try:
        return list(read_events(RunFolder(place.run_folder), 0))
    except GangerError:
        return []


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
    events = events_of(place)
    seen = Seen(
        state_text=text,
        exact=ended is not None,
        finished=ended is not None,
        shown=shown,
        agent_starts=counted,
        live=[attempt for attempt in dict.fromkeys(alive) if attempt is not None],
        changed=() if place.scenario.in_git else changed_files(place),
    )
    landed = branch_now if place.scenario.in_git else _not_landed
    return [*broken(events, seen), *landed(place, events)]


def _not_landed(place: Place, events: Sequence[ev.Recorded]) -> list[str]:
    """What is DONE is in the files, whatever happened since."""
    status = {r.event.task: r.event.status for r in events if isinstance(r.event, ev.TaskSettled)}
    wrong = []
    for job in place.scenario.jobs:
        if job.op and status.get(job.name) is TaskStatus.DONE:
            file = place.root / job.path
            found = file.read_text(errors="replace").splitlines() if file.exists() else []
            if found.count(job.content.strip()) != 1:
                wrong.append(f"files: {job.name} is DONE and {job.path} holds {found}")
    return wrong


def judge_end(place: Place, ended: Ended, shown: Sequence[tuple[int, str]], *, tidy: bool = True) -> list[str]:
    """A run that was let go on must end as if nothing had happened; `tidy`: also without a backup left."""
    wrong = [] if ended.code == 0 else [f"outcome: the lead ended with {ended.code}: {words(ended)}"]
    if "Traceback" in ended.said:
        wrong.append(f"outcome: a traceback was shown: {words(ended)}")
    wrong += left_alive(place)
    wrong += judge(place, shown, ended=ended)
    wrong += branch_at_end(place, events_of(place)) if place.scenario.in_git else _files_at_end(place, tidy=tidy)
    return wrong


def _files_at_end(place: Place, *, tidy: bool) -> list[str]:
    wrong = []
    for path, lines in place.scenario.expected_files().items():
        file = place.root / path
        found = file.read_text().splitlines() if file.exists() else []
        if sorted(found) != lines:
            wrong.append(f"files: {path} holds {found}, expected {lines}")
    extra = set(changed_files(place)) - place.scenario.expected_files().keys()
    wrong += [f"files: {path} was left behind" for path in sorted(extra)]
    backups = place.run_folder / "backups"
    left = sorted(backups.iterdir()) if tidy and backups.exists() else []
    wrong += [f"files: the backup {path.name} was left" for path in left]
    return wrong


def words(ended: Ended) -> str:
    return f"{ended.error} {ended.said.strip()[-800:]}".strip()


def left_alive(place: Place) -> list[str]:
    end = time.monotonic() + _SETTLE_SEC
    while (left := processes(place)) and time.monotonic() < end:
        time.sleep(0.01)
    return [
        f"left behind: process {one.pid} {one.command.replace(bytes(1), b' ').decode(errors='replace')[:200]}"
        for one in left
    ]


def by_chance(event: ev.AttemptFailed) -> bool:
    """Whether it depends on who was merged first."""
    return event.failure_class == FailureClass.MERGE_CONFLICT.value or TOGETHER in event.detail


def usual_starts(place: Place) -> Counter[str]:
    """How often each agent had to run in this undisturbed run, whoever was merged first."""
    counted = starts_by_task(place)
    counted.subtract(
        r.event.task for r in events_of(place) if isinstance(r.event, ev.AttemptFailed) and by_chance(r.event)
    )
    return counted


def paid_twice(
    place: Place,
    usual: Mapping[str, int],
    *,
    keeper_died: bool = False,
    errors: bool = False,
    power_cut: bool = False,
) -> list[str]:
    """G01: agents that were started more or less often than in an undisturbed run, and nothing recorded explains it.

    A dead keeper explains each attempt recorded as lost, and only those; an error also what it made fail. Which of two
    changes conflicts with the other is a matter of chance.
    """
    lost: Counter[str] = Counter()
    ended: set[Attempt] = set()
    wrong = []
    for event in (recorded.event for recorded in events_of(place)):
        if isinstance(event, ev.AttemptExited):
            ended.add((event.task, event.attempt))
        if isinstance(event, ev.AttemptInterrupted):
            lost[event.task] += keeper_died and not event.harvest
            # A power cut may take the end of a log, and with it the answer; a harvested one is not asked for again.
            if (event.task, event.attempt) in ended and not event.harvest and not errors and not power_cut:
                wrong.append(f"paid twice: {event.task}/{event.attempt} had ended and is run again")
        if isinstance(event, ev.HealRefused) and event.code == "LOST":
            lost["healer"] += keeper_died
        if isinstance(event, ev.AttemptFailed):
            lost[event.task] += errors or by_chance(event)
    counted = starts_by_task(place)
    # What an error makes fail may have to be healed, and so may what failed by chance.
    uncertain = {"healer"} if errors or place.scenario.in_git else set()
    for name in sorted({*counted, *usual} - uncertain):
        more = counted[name] - usual.get(name, 0)
        if more > lost[name] or (more < 0 and not lost):
            wrong.append(f"paid twice: {name} was started {more:+d} times, of which {lost[name]} are explained")
    return wrong

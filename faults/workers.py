"""Many sessions take tasks and report on them while leads are killed; then events and records are held side by side.

Each task has one winner at a time, what was acknowledged is recorded once, what was not arrives later or its attempt
was over, and the run ends as if nothing had happened.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from faults import leads, planted_reports, worker_records
from faults.judge import end_all, events_of, judge_end, paid_twice
from faults.leads import Ended, Lead
from faults.pool import Job as Work, Verdict, scratch
from faults.scenario import Job, Place, Scenario
from faults.sessions import Crowd, change_of
from faults.strace import Point, Strike, watched
from faults.worker_records import Note
from ganger.core import events as ev

# Of a hundred: the socket and HTTP are cheap, a process or an MCP client per word is not.
_SHARES = {"program": 0.05, "mcp": 0.03, "files": 0.1, "http": 0.3}
_SPAWNED_SHARE = 0.05
_MOST_WAIT_SEC = 0.2
_STRUCK_WITHIN_SEC = 5.0
_LIMIT_SEC = 900.0
# How many of each a lead makes in its first seconds, about.
_MANY = {"fdatasync": 60, "pwrite64": 500, "sendto": 100, "recvfrom": 200, "unlink": 40, "rename": 40, "openat": 400}
CALLS = tuple(_MANY)


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of so many tasks, so many sessions that each say `reports` things per task, and `restarts` dead leads.

    Where there is strace, a share of the leads dies at one of the `calls`, the others at random moments.
    """

    seed: int = 0
    workers: int = 100
    tasks: int = 1000
    reports: int = 1
    restarts: int = 5
    mode: str = "direct"
    bug: str = ""
    calls: tuple[str, ...] = CALLS
    struck: float = 0.5

    def words(self) -> str:
        size = f"--workers {self.workers} --tasks {self.tasks} --reports {self.reports} --restarts {self.restarts}"
        bug = f" --bug {self.bug}" if self.bug else ""
        return f"workers --mode {self.mode} --seed {self.seed} {size}{bug}"

    def scenario(self) -> Scenario:
        jobs = tuple(_job(f"t{number:04d}", self.mode) for number in range(self.tasks))
        chance = random.Random(f"{self.seed} jobs")  # noqa: S311
        pulled = frozenset(job.name for job in jobs if chance.random() >= _SPAWNED_SHARE)
        return Scenario(
            "trial",
            jobs,
            mode=self.mode,
            schedule="off",
            concurrency=2,
            warm=2 if self.mode != "direct" else 0,
            wanted={f"out/{job.name}.txt": "x\n" for job in jobs} if self.mode != "direct" else {},
            pulled=pulled,
            settings="[health]\nlook_sec = 0.25\n",
        )

    def crowd(self) -> Crowd:
        sessions = {kind: max(1, round(share * self.workers)) for kind, share in _SHARES.items()}
        sessions["socket"] = max(1, self.workers - sum(sessions.values()))
        return Crowd("trial", sessions, self.reports, self.mode != "direct", self.seed, self.bug)


def _job(name: str, mode: str) -> Job:
    if mode == "direct":
        return Job(name, *change_of(name))
    return Job(name, edit=f"mkdir -p out; echo x > out/{name}.txt")


@dataclass(frozen=True, slots=True)
class Figures:
    """What it took, over all leads."""

    seconds: float
    lead_cpu_sec: float
    killed: int
    notes: Sequence[Note]

    def __str__(self) -> str:
        given = [note for note in self.notes if note.what == "given"]
        taken = Counter(note.what for note in self.notes)["taken"]
        waits = sorted(note.waited_sec for note in given) or [0.0]
        span = max(note.at for note in given) - min(note.at for note in given) if len(given) > 1 else 1.0
        return (
            f"{len(given)} claims by {len({n.worker for n in given})} sessions in {self.seconds:.1f} s, "
            f"{len(given) / max(span, 0.001):.1f} claims/s, lead {1000 * self.lead_cpu_sec / max(1, len(given)):.1f} "
            f"ms of processor per claim, waited {waits[len(waits) // 2]:.2f} s (median) {waits[-1]:.2f} s (longest), "
            f"{taken} acknowledged, {self.killed} leads killed"
        )


def jobs(trials: Sequence[Trial]) -> list[Work]:
    return [partial(carry_on, trial) for trial in trials]


def carry_on(trial: Trial) -> Verdict:
    leads.import_everything()
    with scratch() as folder:
        place = Place(folder / "run", trial.scenario()).make()
        try:
            wrong, figures = _TrialRun(place, trial).run()
        finally:
            end_all(place)
    return Verdict(trial.words(), tuple(wrong), str(figures))


def planted_trial(name: str, seed: int, *, workers: int, tasks: int, restarts: int, reports: int = 0) -> Trial:
    """With this bug, and leads that die where it bites."""
    bug = planted_reports.BUGS[name]
    trial = Trial(seed, workers, tasks, reports or bug.reports, restarts, bug=name)
    return replace(trial, calls=bug.calls, struck=0.9) if bug.calls else trial


def hunt(name: str, seeds: int = 3) -> Verdict:
    """Whether this planted bug is caught; a moment may be missed, so several are tried."""
    bug = planted_reports.BUGS[name]
    for seed in range(seeds):
        trial = planted_trial(name, seed, workers=12, tasks=16, restarts=6)
        found = carry_on(trial)
        if any(problem.startswith(f"{bug.rule}:") for problem in found.wrong):
            print(f"caught {name} ({bug.what}) by: python -m faults {trial.words()}", flush=True)
            return Verdict(f"planted {name}", (), "caught")
    return Verdict(f"planted {name}", (f"workers did not catch it in {seeds} trials: {bug.what}",), "missed")


class _TrialRun:
    def __init__(self, place: Place, trial: Trial) -> None:
        self.place, self.trial = place, trial
        self.chance = random.Random(f"{trial.seed} trial")  # noqa: S311
        self.before = planted_reports.planter(trial.bug)
        self.shown: list[tuple[int, str]] = []
        self.killed = 0
        self._end = time.monotonic() + _LIMIT_SEC

    def run(self) -> tuple[list[str], Figures]:
        self.trial.crowd().write(self.place.base)
        began, used = time.monotonic(), _children_cpu()
        with self._sessions() as said:
            ended = self._lead_through()
            seconds, used = time.monotonic() - began, _children_cpu() - used
        notes = worker_records.read(self.records)
        wrong = [f"sessions: {text[-800:]}" for text in said if text]
        wrong += compare(events_of(self.place), notes) + self._at_end(ended)
        return wrong, Figures(seconds, used, self.killed, notes)

    @property
    def records(self) -> Path:
        return self.place.base / "records"

    @contextlib.contextmanager
    def _sessions(self) -> Iterator[list[str]]:
        """What they complain of is in the list once they have ended."""
        said: list[str] = []
        argv = [sys.executable, "-m", "faults.sessions", str(self.place.base)]
        env = {**os.environ, "XDG_STATE_HOME": str(self.place.state_home)}
        with subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL) as process:
            try:
                yield said
            finally:
                (self.place.base / "over").touch()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said.append(process.communicate(timeout=60)[1].strip())
                if process.poll() is None:
                    process.kill()
                    said.append("they do not end")

    def _lead_through(self) -> Ended:
        """Leads die one after the other while tasks are left; the last one ends the run."""
        moments = sorted(self.chance.randrange(self.trial.tasks * 9 // 10) for _ in range(self.trial.restarts))
        for moment in moments:
            if not self._dies(moment):
                break
        lead = Lead(self.place, before=self.before)
        ended = lead.wait(max(1.0, self._end - time.monotonic()))
        return Ended(ended.code, tuple(self.shown) + ended.shown, ended.said, ended.error)

    def _dies(self, moment: int) -> bool:
        """Whether the lead was killed after so many claims, or ended before."""
        strike = shutil.which("strace") and self.chance.random() < self.trial.struck
        lead = Lead(self.place, before=self.before, held=bool(strike))
        if strike:
            call = self.chance.choice(self.trial.calls)
            point = Point(call, self.chance.randrange(2, _MANY[call]))
            with watched(lead.pid, [*Strike(point).options(), "-o", "/dev/null"]):
                self._wait(lead, self.trial.tasks, _STRUCK_WITHIN_SEC)
                lead.kill()
        else:
            self._wait(lead, moment, max(1.0, self._end - time.monotonic()))
            self._wait(lead, self.trial.tasks, self.chance.uniform(0, _MOST_WAIT_SEC))
            lead.kill()
        ended = lead.wait()
        self.shown += ended.shown
        self.killed += ended.killed
        return ended.killed

    def _wait(self, lead: Lead, claims: int, most_sec: float) -> None:
        end = time.monotonic() + most_sec
        while lead.poll() is None and time.monotonic() < end and worker_records.count(self.records, "given") < claims:
            time.sleep(0.01)

    def _at_end(self, ended: Ended) -> list[str]:
        wrong = judge_end(self.place, ended, ended.shown)
        begun = [r.event for r in events_of(self.place) if isinstance(r.event, ev.AttemptStarted)]
        # A session takes any task it is given, also one that somebody would have been started for.
        wrong += paid_twice(self.place, {event.task: 1 for event in begun if not event.worker})
        desks = self.place.run_folder / "desks"
        wrong += [f"left behind: the desk {desk.name}" for desk in sorted(desks.iterdir())] if desks.is_dir() else []
        return wrong


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# --- the judgement ----------------------------------------------------------------------------------------------------


def compare(events: Sequence[ev.Recorded], notes: Sequence[Note]) -> list[str]:
    """What the records tell and the events do not, or otherwise."""
    told = [recorded.event for recorded in events]
    winners = {(e.task, e.attempt): e.worker for e in told if isinstance(e, ev.AttemptStarted)}
    recorded = Counter(word for event in told if (word := word_of(event)))
    return [
        *_winners(winners, notes),
        *_acknowledged(recorded, notes),
        *_in_order(told, recorded, notes),
        *_refused(told, notes),
        *_waited_for(told),
    ]


def word_of(event: ev.Event) -> str:
    """The word of its own that somebody's message had."""
    match event:
        case ev.WorkerBeat(step=word) | ev.WorkerMilestone(name=word) | ev.WorkerReported(summary=word):
            return word
        case ev.CheckpointTaken(checkpoint=stand) if stand.by == "worker":
            return stand.summary
    return ""


def _winners(winners: dict[tuple[str, int], str], notes: Sequence[Note]) -> Iterator[str]:
    for note in notes:
        if note.what == "given" and winners.get((note.task, note.attempt)) != note.worker:
            won = winners.get((note.task, note.attempt), "nobody")
            yield f"winners: {note.worker} was given {note.task}/{note.attempt}, recorded is {won}"


def _acknowledged(recorded: Counter[str], notes: Sequence[Note]) -> Iterator[str]:
    """H07: recorded before it is acknowledged, and once."""
    spoken = {note.word: note for note in notes if note.what == "says"}
    for note in notes:
        if note.what == "taken" and note.verb != "heartbeat" and not recorded[note.word]:
            yield f"lost: {note.verb} {note.word} of {note.task}/{note.attempt} was acknowledged and is not recorded"
    for word, times in recorded.items():
        if times > 1 and word in spoken and spoken[word].verb != "heartbeat":
            yield f"twice: {spoken[word].verb} {word} of {spoken[word].task} is recorded {times} times"


def _in_order(told: Sequence[ev.Event], recorded: Counter[str], notes: Sequence[Note]) -> Iterator[str]:
    """What was said before a recorded report arrived before it: the spool keeps its order, and loses nothing."""
    reported = {(e.task, e.attempt) for e in told if isinstance(e, ev.WorkerReported)}
    for note in notes:
        owed = note.what in ("kept", "gone") and note.verb != "heartbeat" and not note.worker.startswith("files")
        if owed and (note.task, note.attempt) in reported and not recorded[note.word]:
            yield f"lost: {note.verb} {note.word} of {note.task}/{note.attempt} was kept and never arrived"


def _refused(told: Sequence[ev.Event], notes: Sequence[Note]) -> Iterator[str]:
    """Only what came after the end of its attempt may be refused."""
    over: dict[str, int] = defaultdict(int)
    latest: dict[str, int] = defaultdict(int)
    for event in told:
        if isinstance(event, ev.AttemptStarted):
            latest[event.task] = event.attempt
        if isinstance(event, ev.WorkerEnding | ev.AttemptInterrupted):
            over[event.task] = event.attempt
    for note in notes:
        if note.what == "refused" and (note.why != "ATTEMPT_OVER" or not note.attempt <= over[note.task]):
            yield f"refused: {note.verb} {note.word} of {note.task}/{note.attempt}: {note.why}"


def _waited_for(told: Sequence[ev.Event]) -> Iterator[str]:
    """Every session here reports or leaves in time: whoever is waited for until its time is up was not heard."""
    for event in told:
        if isinstance(event, ev.AttemptExited) and event.timed_out:
            yield f"unheard: {event.task}/{event.attempt} was waited for until its time was up"

"""One run whose tasks each behave in another way, with short limits, and the judge that compares it with a table."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ganger.core import events as ev
from ganger.errors import NotFoundError
from ganger.views.run.why import why
from tests.engine.git_runs import GitProject
from tests.engine.run_projects import Project, task

BEHAVIOURS = Path(__file__).with_name("agent_behaviours.py")
STALL_SEC, BUSY_SEC, LOOK_SEC = 1.6, 4.8, 0.2
LIMITS: Mapping[str, float] = {
    "heartbeat_sec": 1.0,
    "stale_sec": 1.6,
    "stall_sec": STALL_SEC,
    "busy_sec": BUSY_SEC,
    "lease_sec": 2.0,
    "linger_sec": 1.6,
    "shutdown_sec": 0.8,
    "look_sec": LOOK_SEC,
}
# What a machine with other work to do may take on top of every limit.
SLACK_SEC = 1.5
CRASH_SEC = 1.0


@dataclass(frozen=True)
class Row:
    """What must come of one behaviour.

    `failures`: class and counter of each failed attempt. `verdicts`: of each worker Ganger ended. `limit_sec`: from the
    behaviour's own note of the cause to the first verdict; without a verdict, to the first exit.
    """

    failures: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    status: str = "DONE"
    why: str = ""
    limit_sec: float | None = None
    counters: Mapping[str, str] = field(default_factory=dict)

    @property
    def attempts(self) -> int:
        return len(self.failures) + (self.status == "DONE")


def health_of(limits: Mapping[str, float] = LIMITS) -> str:
    return "[health]\n" + "".join(f"{name} = {value}\n" for name, value in limits.items())


def agent_of(notes: Path) -> str:
    """The behaviours, as an agent of kind `command`; the environment of the person who runs them is not theirs."""
    return f'kind = "command"\nargv = ["{sys.executable}", "-E", "-S", "{BEHAVIOURS}", "{notes}"]'


def project(
    root: Path, mode: str, *names: str, policy: str = "", more: str = "", limits: Mapping[str, float] = LIMITS
) -> Project:
    """A folder, or a git repository, in which these behaviours are the tasks, all at once."""
    notes = root / "notes"
    notes.mkdir(parents=True, exist_ok=True)
    tasks = [task(name, timeout_sec=4 if name == "babbles" else 60) for name in names]
    policy = f"concurrency = {len(tasks)}\noutput_limit_mb = 8\n{policy}\n{health_of(limits)}"
    kind = GitProject if mode == "local-git" else Project
    made = kind(root / "project", tasks=tasks, agent=agent_of(notes), policy=policy).make()
    if more:
        config = made.root / "ganger.toml"
        config.write_text(f"{config.read_text()}\n{more}\n")
    return made


def seen(made: Project, kind: type[ev.Event], **fields: object) -> list[Any]:
    """Such events of a run that is perhaps only beginning."""
    with contextlib.suppress(NotFoundError):
        return [e for e in made.find(kind) if all(getattr(e, name) == value for name, value in fields.items())]
    return []


class Book:
    """What is known of a run that is over."""

    def __init__(self, made: Project) -> None:
        self.project, self.state, self.events = made, made.state(), made.events()

    def of(self, name: str, kind: type[ev.Event]) -> list[ev.Recorded]:
        return [r for r in self.events if isinstance(r.event, kind) and getattr(r.event, "task", "") == name]

    def at(self, name: str, kind: type[ev.Event], number: int = 0) -> float:
        return moment(self.of(name, kind)[number])

    def noted(self, name: str, attempt: int = 1, about: str = "cause") -> float:
        return float((self.project.root.parent / "notes" / f"{name}.{attempt}.{about}").read_text())

    def noticed_after(self, name: str) -> float:
        """From the cause to what Ganger made of it."""
        kind = ev.WorkerEnding if self.of(name, ev.WorkerEnding) else ev.AttemptExited
        return self.at(name, kind) - self.noted(name)

    def counters(self, name: str) -> dict[str, str]:
        return why(self.state, name).counters


def moment(recorded: ev.Recorded) -> float:
    return datetime.fromisoformat(recorded.at).timestamp()


def complaints(book: Book, rows: Mapping[str, Row]) -> list[str]:
    """Everything that is not as the table says; nothing, if all is well."""
    found = [f"{name}: {text}" for name, row in rows.items() for text in _of_one(book, name, row)]
    left = book.project.processes()
    return [*found, f"processes are left: {left}"] if left else found


def _of_one(book: Book, name: str, row: Row) -> Iterator[str]:
    now = book.state.tasks[name]
    if now.status.value != row.status:
        yield f"is {now.status.value}, not {row.status}: {now.detail}"
    if now.attempts != row.attempts:
        yield f"took {now.attempts} attempts, not {row.attempts}"
    failed = [r.event for r in book.of(name, ev.AttemptFailed)]
    said = tuple(f"{f.failure_class}/{f.counter}" for f in failed)  # type: ignore[attr-defined]
    if said != row.failures:
        yield f"failed as {said}, not {row.failures}"
    endings = [r.event for r in book.of(name, ev.WorkerEnding)]
    verdicts = tuple(e.verdict for e in endings)  # type: ignore[attr-defined]
    if verdicts != row.verdicts:
        yield f"was ended as {tuple(map(str, verdicts))}, not {row.verdicts}: {endings}"
    elif row.why and not any(row.why in text for text in _reasons([*endings, *failed])):
        yield f"nobody says {row.why!r}: {_reasons([*endings, *failed])}"
    counters = book.counters(name)
    wrong = {key: counters[key] for key, value in row.counters.items() if counters[key] != value}
    if wrong:
        yield f"counters are {wrong}, not {row.counters}"
    yield from _times(book, name, row)


def _reasons(events: Iterable[ev.Event]) -> list[str]:
    return [str(getattr(event, "why", "") or getattr(event, "detail", "")) for event in events]


def _times(book: Book, name: str, row: Row) -> Iterator[str]:
    if row.limit_sec is None:
        return
    took = book.noticed_after(name)
    if took > row.limit_sec + LOOK_SEC + SLACK_SEC:
        yield f"was noticed after {took:.2f} s, not within {row.limit_sec:g} s and a look"
    if row.verdicts:
        lived = book.at(name, ev.WorkerEnding) - book.at(name, ev.AttemptStarted)
        if lived < row.limit_sec:
            yield f"was ended after {lived:.2f} s already, {row.limit_sec:g} s are allowed"

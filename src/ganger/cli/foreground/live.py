"""The live view on a terminal: progress, counts, one line per worker, open questions, and a line per notable event."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ganger.cli.foreground.screens import closing, opening, question_lines, still_open
from ganger.core import events as ev
from ganger.core.model.workers import WorkerNow
from ganger.core.names import verify_log, worker_log
from ganger.core.times import stamp
from ganger.core.vocabulary import AttemptStep, TaskStatus
from ganger.engine.lead import Lead
from ganger.views.run.board import GLYPHS, counts_line, open_questions, rest_seconds, shown_duration
from ganger.views.run.deliveries import delivery_row
from ganger.views.run.hosts import troubled_hosts
from ganger.views.text import clean_text, one_line

_REFRESH_SEC = 0.25
_ROWS = 10
_QUESTIONS = 3
_TAIL = 2048
STYLES = {
    TaskStatus.PENDING: "dim",
    TaskStatus.RUNNING: "cyan",
    TaskStatus.DONE: "green",
    TaskStatus.BLOCKED: "yellow",
    TaskStatus.FAILED: "red",
    TaskStatus.ESCALATED: "magenta",
}


class Live:
    """Draws the run's state; decides nothing."""

    def __init__(self, lead: Lead, console: Console | None = None) -> None:
        self._lead = lead
        self._console = console or Console(highlight=False)
        self._begun = time.monotonic()
        self._started: dict[str, float] = {}
        self._live = RichLive(console=self._console, auto_refresh=False, transient=True)

    def begin(self, lead: Lead) -> None:
        for line in [*opening(lead), *still_open(lead.state)]:
            self._console.print(Text(line), soft_wrap=True)
        self._begun = time.monotonic()
        self._live.start()

    def on_event(self, recorded: ev.Recorded) -> None:
        event = recorded.event
        if isinstance(event, ev.AttemptStarted):
            self._started[event.task] = time.monotonic()
        line = event_text(event)
        if line is not None:
            self._live.console.print(line, soft_wrap=True)
        if isinstance(event, ev.QuestionAsked | ev.QuestionRaised):
            for said in question_lines(self._lead.state, event.question):
                self._live.console.print(Text(f"            {said}", style="magenta"), soft_wrap=True)
            # On a terminal only: the bell is not text.
            self._live.console.bell()

    def note(self, text: str) -> None:
        self._live.console.print(Text(f"note: {text}", style="dim"), soft_wrap=True)

    async def tick(self, lead: Lead) -> None:
        while True:
            if lead.state.tasks:
                self._live.update(self.view(), refresh=True)
            await asyncio.sleep(_REFRESH_SEC)

    def view(self) -> Group:
        """Progress, counts and time to go; then the running tasks, oldest first."""
        state = self._lead.state
        elapsed = time.monotonic() - self._begun
        settled = len(state.tasks) - state.index.counts[TaskStatus.PENDING] - state.index.counts[TaskStatus.RUNNING]
        rest = rest_seconds(state, elapsed)
        guess = f", about {shown_duration(rest)} to go" if rest is not None else ""
        head = Table.grid(padding=(0, 1))
        head.add_row(
            ProgressBar(total=len(state.tasks), completed=settled, width=24),
            Text(f"{settled}/{len(state.tasks)}"),
            Text(f"{counts_line(state)} · {shown_duration(elapsed)}{guess}", style="dim"),
        )
        rows = Table.grid(padding=(0, 1))
        running = sorted(state.index.running, key=lambda name: self._started.get(name, 0.0))
        for name in running[:_ROWS]:
            rows.add_row(*self._row(name))
        if len(running) > _ROWS:
            rows.add_row(Text(f"… and {len(running) - _ROWS} more", style="dim"))
        return Group(head, rows, *self._waiting())

    def _waiting(self) -> list[Text]:
        """What waits for an answer or for a time, so that it stays in view without scrolling."""
        state, now = self._lead.state, time.time()
        lines = [
            Text(f"… {name or 'the account'} waits for its quota until {stamp(until)[11:19]}", style="yellow")
            for name, until in state.quota.paused.items()
            if until > now
        ]
        lines += [Text(f"… {one_line(row.line)}", style="yellow") for row in troubled_hosts(state, now)]
        asked = open_questions(state)
        for question in asked[:_QUESTIONS]:
            about = f"{question.task}: " if question.task else ""
            said = f"? {question.id}  {about}{_flat(question.text)}  > ganger answer {question.id} TEXT"
            lines.append(Text(said, style="bold magenta", no_wrap=True, overflow="ellipsis"))
        if len(asked) > _QUESTIONS:
            lines.append(Text(f"? {len(asked) - _QUESTIONS} more questions: ganger inbox", style="bold magenta"))
        return lines

    def _row(self, name: str) -> tuple[Text, ...]:
        task = self._lead.state.tasks[name]
        since = time.monotonic() - self._started.get(name, time.monotonic())
        log = (
            verify_log(name, task.attempts)
            if task.attempt.step == AttemptStep.VERIFY
            else worker_log(name, task.attempts)
        )
        last = self._lead.tools.masked(last_line(self._lead.tools.folder.path / log))
        told, style = last, ""
        if task.worker is not None and task.attempt.step == AttemptStep.AGENT:
            told, style = _told(task.worker, last)
        if name in self._lead.state.index.delivering:
            return self._delivery_row(name)
        return (
            Text(f"{GLYPHS[TaskStatus.RUNNING]} {name}", style="cyan", no_wrap=True, overflow="ellipsis"),
            Text(f"{task.attempt.step or 'agent'} {shown_duration(since)}", style="dim", no_wrap=True),
            Text(told, style=style, no_wrap=True, overflow="ellipsis"),
        )

    def _delivery_row(self, name: str) -> tuple[Text, ...]:
        """A task in delivery has no worker; its row shows CI's progress."""
        row = delivery_row(self._lead.state, name, stamp(time.time()))
        parts = row.parts if row is not None else []
        return (
            Text(f"{GLYPHS[TaskStatus.RUNNING]} {name}", style="cyan", no_wrap=True, overflow="ellipsis"),
            Text(parts[0] if parts else "", style="dim", no_wrap=True),
            Text(_flat(", ".join(parts[1:])), no_wrap=True, overflow="ellipsis"),
        )

    def close(self) -> None:
        self._live.stop()

    async def show_end(self, lead: Lead, *, quiet: bool) -> None:
        if not quiet:
            for line in closing(lead):
                self._console.print(Text(line), soft_wrap=True)


def _told(worker: WorkerNow, last: str) -> tuple[str, str]:
    """The monitor's verdict or suspicion first, else what the worker says itself and the last line of its output."""
    if worker.verdict:
        return _flat(f"! being stopped ({worker.verdict}): {worker.why}"), "yellow"
    if worker.suspicious:
        return _flat(f"! suspicious: {worker.suspicious}"), "yellow"
    percent = "" if worker.percent is None else f"{worker.percent:g} %"
    words = [f"{worker.name}:" if worker.pulled else "", percent, worker.step or worker.milestone, last or worker.note]
    return _flat(" ".join(filter(None, words))), ""


def event_text(event: ev.Event) -> Text | None:
    """The events that get a lasting line: settled, retried, rolled back, and more."""
    match event:
        case ev.TaskSettled(task=task, status=status, detail=detail, block_reason=reason, final=final):
            why = f" ({reason.value})" if reason else "" if final else " (will be retried)"
            return Text.assemble(
                (f"{GLYPHS[status]} {status.value:<8}", STYLES[status]), f" {task}{why}  ", (_flat(detail), "dim")
            )
        case ev.TaskRequeued(task=task, why=why):
            return Text.assemble(("↻ AGAIN   ", "yellow"), f" {task}  ", (_flat(why), "dim"))
        case ev.WritesRolledBack(task=task):
            return Text.assemble(("↶ UNDONE  ", "yellow"), f" {task}  ", ("its changes were rolled back", "dim"))
        case ev.ResultRefused(task=task, code=code):
            return Text.assemble(
                ("? REFUSED ", "yellow"), f" {task}  ", (f"the answer does not match its contract: {code}", "dim")
            )
    return _worker_text(event)


def _worker_text(event: ev.Event) -> Text | None:
    match event:
        case ev.QuestionAsked(question=name, task=task, kind=kind, text=text):
            return Text.assemble(("? QUESTION", "bold magenta"), f" {name} {task} ({kind})  ", (one_line(text), "bold"))
        case ev.QuestionRaised(question=name):
            return Text.assemble(("? QUESTION", "bold magenta"), f" {name} is still open")
        case ev.WorkerSuspected(task=task, why=why):
            return Text.assemble(("! QUIET   ", "yellow"), f" {task}  ", (_flat(why), "dim"))
        case ev.WorkerEnding(task=task, verdict=verdict, why=why):
            return Text.assemble(("! STOPPED ", "yellow"), f" {task} ({verdict})  ", (_flat(why), "dim"))
        case ev.LimitWarned(task=task, text=text):
            return Text.assemble(("! WARNING ", "yellow"), f" {task}  ", (_flat(text), "dim"))
        case ev.AttemptCheckpointed(task=task, why=why):
            return Text.assemble(("↻ HANDOVER", "yellow"), f" {task}  ", (_flat(why), "dim"))
    return _delivery_text(event)


_MARKS: dict[type, tuple[str, str]] = {
    ev.Pushed: ("→ PUSHED  ", "cyan"),
    ev.PushRefused: ("✗ REFUSED ", "red"),
    ev.Retriggered: ("↻ CI AGAIN", "yellow"),
    ev.MirrorProved: ("✓ MIRROR  ", "green"),
    ev.RequestOpened: ("→ REQUEST ", "cyan"),
    ev.ReviewAsked: ("? REVIEW  ", "magenta"),
    ev.Reviewed: ("→ REVIEWED", "cyan"),
    ev.ChainHalted: ("! HALTED  ", "bold red"),
    ev.ChainPaused: ("! RED     ", "red"),
    ev.ChainCleared: ("✓ GREEN   ", "green"),
    ev.Reverted: ("→ REVERTED", "yellow"),
    ev.RepoUnlocked: ("→ UNLOCKED", "yellow"),
}


def _delivery_text(event: ev.Event) -> Text | None:
    if isinstance(event, ev.CiJudged):
        mark = ("✓ CI GREEN", "green") if event.verdict == "green" else ("✗ CI RED  ", "red")
    elif type(event) in _MARKS:
        mark = _MARKS[type(event)]
    else:
        return None
    return Text.assemble(mark, " ", (_flat(event.sentence()), "dim"))


def _flat(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)[:140]


def last_line(path: Path) -> str:
    """The last line a process printed, safe to show."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _TAIL))
            tail = file.read(_TAIL)
    except OSError:
        return ""
    lines = [line for line in clean_text(tail).splitlines() if line.strip()]
    return _flat(lines[-1].strip()) if lines else ""

"""What a run prints while it goes on: plain lines, or JSON lines."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from typing import Protocol

from ganger.cli.shell.main import printable
from ganger.cli.shell.options import counted
from ganger.core import events as ev
from ganger.core.delivery.landings import is_pushed, is_requested, repos_merged, where_words
from ganger.core.model.run_state import RunState
from ganger.core.times import seconds_between
from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.engine.lead import Lead
from ganger.views.history.stream import event_line
from ganger.views.run.board import GLYPHS, counts_line, shown_duration
from ganger.views.run.inbox import inbox, inbox_row
from ganger.views.text import one_line

_LONGEST_SHORT = 400
_SHOWN_AHEAD = 120


class Screen(Protocol):
    def begin(self, lead: Lead) -> None: ...

    def on_event(self, recorded: ev.Recorded) -> None: ...

    def note(self, text: str) -> None: ...

    async def tick(self, lead: Lead) -> None: ...

    def close(self) -> None: ...

    async def show_end(self, lead: Lead, *, quiet: bool) -> None: ...


def _say(line: str) -> None:
    print(line, flush=True)


class JsonLines:
    """One event per line on stdout; messages on stderr."""

    def begin(self, lead: Lead) -> None:
        return None

    def on_event(self, recorded: ev.Recorded) -> None:
        _say(json.dumps(event_line(recorded), ensure_ascii=False))

    def note(self, text: str) -> None:
        print(f"note: {text}", file=sys.stderr)

    async def tick(self, lead: Lead) -> None:
        return None

    def close(self) -> None:
        return None

    async def show_end(self, lead: Lead, *, quiet: bool) -> None:
        if quiet and lead.state.finished:
            last = [
                r
                async for r in lead.journal.store.read(max(0, lead.state.log.last_seq - 1))
                if isinstance(r.event, ev.RunFinished)
            ]
            for recorded in last:
                self.on_event(recorded)


class LineScreen:
    """One timestamped line per change, for pipes and logs. A question is printed with the command that answers it."""

    def __init__(self) -> None:
        self._state: RunState | None = None

    def begin(self, lead: Lead) -> None:
        self._state = lead.state
        for line in [*opening(lead), *still_open(lead.state)]:
            _say(line)

    def on_event(self, recorded: ev.Recorded) -> None:
        event, at = recorded.event, recorded.at[11:19]
        if event.shown and (said := one_line(event.sentence())):
            _say(f"{at} {said}")
        if isinstance(event, ev.QuestionAsked | ev.QuestionRaised) and self._state is not None:
            for line in question_lines(self._state, event.question):
                _say(f"{at}   {line}")
            ring()

    def note(self, text: str) -> None:
        print(f"note: {text}", file=sys.stderr, flush=True)

    async def tick(self, lead: Lead) -> None:
        return None

    def close(self) -> None:
        return None

    async def show_end(self, lead: Lead, *, quiet: bool) -> None:
        if not quiet:
            for line in closing(lead):
                _say(line)


def question_lines(state: RunState, name: str) -> list[str]:
    """The facts of an open question, and what to type."""
    question = state.inbox.questions.get(name)
    if question is None or question.answer is not None:
        return []
    row = inbox_row(state, question)
    return [*(one_line(fact) for fact in row.facts), *(f"> {command}" for command in row.commands[:1])]


def still_open(state: RunState) -> list[str]:
    """The questions still open when the run is continued."""
    lines = []
    for row in inbox(state):
        lines.append(f"  open    {row.id} ({row.kind}{f', {row.task}' if row.task else ''}): {one_line(row.text, 300)}")
        lines += [f"          {line}" for line in question_lines(state, row.id)]
    return lines


def ring() -> None:
    """Rings the terminal's bell."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stdout.isatty():
            print("\a", end="", flush=True)


def opening(lead: Lead) -> list[str]:
    """Printed at the start of every run: what it is, how to watch it, how to continue it."""
    order = lead.order
    again = "continues" if lead.state.log.last_seq else "starts"
    policy, run = order.policy, shlex.quote(order.run_id)
    how = f"concurrency {policy.concurrency}, schedule {policy.heal_schedule.value}"
    return [
        f"run {order.run_id} {again}: {counted(len(order.tasks), 'task')}, {how}",
        f"  folder  {lead.tools.folder.known_as}",
        f"  watch   ganger status --run {run}   ganger events --run {run} --follow",
        "  resume  run the same command again at any time, also after a crash",
        f"  sandbox {sandbox_line(lead)}",
        *(["  paused  nothing new starts until: ganger resume"] if lead.state.lead.paused else []),
    ]


def sandbox_line(lead: Lead) -> str:
    """The sandbox of this run, and what agents can write in it."""
    name = lead.tools.sandbox.name
    if name == "none":
        return "none: agents can read and write everything you can; ganger doctor says how to change that"
    where = "their own workspaces" if lead.tools.repositories else "this folder"
    fixed = lead.tools.fixed
    if fixed is not None and fixed.exposed:
        where += " including .git and installed packages; changes there are undone, see ganger doctor"
    return f"{name}: agents can write only to {where}"


def closing(lead: Lead) -> list[str]:
    """The summary at the end: how the run stands, what needs attention, what to do next."""
    state = lead.state
    took = shown_duration(seconds_between(state.started_at, state.finished_at))
    lines = ["", f"run {state.run_id}: {state.status.value}: {counts_line(state)} ({took})"]
    for status in (TaskStatus.ESCALATED, TaskStatus.BLOCKED, TaskStatus.FAILED):
        names = [name for name in state.index.by_rank if state.tasks[name].status is status]
        lines += [f"  {GLYPHS[status]} {name}: {_short(state, name)}" for name in names[:10]]
        if len(names) > 10:
            lines.append(f"  … and {len(names) - 10} more {status.value}")
    if state.abort_reason and (state.healing.abandoned or not lines[2:]):
        lines.append(f"  why     {printable(state.abort_reason)[:400]}")
    lines.append(f"  report  {lead.tools.folder.known_as / lead.tools.folder.report.name}")
    lines.append(f"  next    {_next(state)}")
    return lines


def _short(state: RunState, name: str) -> str:
    task = state.tasks[name]
    reason = f"({task.block_reason.value}) " if task.block_reason else ""
    text = printable(f"{reason}{task.detail}")
    if len(text) <= _LONGEST_SHORT:
        return text
    # The next step stands at the end, so the cut is made in the middle.
    return f"{text[:_SHOWN_AHEAD].rstrip()} … {text[_SHOWN_AHEAD + 3 - _LONGEST_SHORT :].lstrip()}"


def _found(state: RunState) -> str:
    """Where the result of a completed run is."""
    merged = repos_merged(state)
    if not merged:
        return "everything is DONE and verified"
    proved = all(is_pushed(state, repo) or is_requested(state, repo) for repo in merged)
    done = "everything is DONE with proof" if proved else "everything is DONE, verified and merged"
    return f"{done}; {where_words(state)}"


def _next(state: RunState) -> str:
    if state.status is RunStatus.COMPLETED:
        return _found(state)
    if state.lead.stopping or state.lead.draining:
        return "run the same command again to continue"
    if any(question.answer is None for question in state.inbox.questions.values()):
        return "ganger inbox shows what you have to decide"
    if state.lead.scope.limited:
        return "ganger run without the limit continues with the rest"
    bad = next(
        (n for n in state.index.by_rank if state.tasks[n].status in (TaskStatus.FAILED, TaskStatus.ESCALATED)), None
    )
    bad = bad or next((n for n in state.index.by_rank if state.tasks[n].status is TaskStatus.BLOCKED), None)
    return f"ganger why {shlex.quote(bad)}" if bad else "run the same command again to continue"

"""Commit messages: readable, one per task, with trailers by which a commit is found again."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ganger.core.workers import Checkpoint
from ganger.engine.tools import one_line
from ganger.ports import Touched

_SUBJECT = 72
_MOST_LISTED = 200
# A forge runs no CI for a commit that says so; an agent must not be able to.
_SILENCING = ("[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "***no_ci***")


def change_message(run: str, task: str, attempt: int, summary: str) -> str:
    said = _harmless(one_line(summary, 2000)) or "no summary"
    name = one_line(task, 60)
    subject = f"{name}: {said}"
    body = "" if len(subject) <= _SUBJECT else "\n\n" + "\n".join(textwrap.wrap(said, _SUBJECT))
    short = textwrap.shorten(subject, _SUBJECT, placeholder="…") if body else subject
    return f"{short}{body}\n\n{_trailers(run, task, attempt)}"


def wip_message(
    run: str,
    task: str,
    attempt: int,
    summary: str,
    why: str,
    touched: Sequence[Touched],
    stand: Checkpoint | None = None,
) -> str:
    """What a fresh worker needs in order to go on, in the form the assignment formats use."""
    known = stand or Checkpoint(attempt, "")
    files = [f"  - {_harmless(one_line(t.path, 300))} ({t.kind})" for t in touched[:_MOST_LISTED]]
    if len(touched) > _MOST_LISTED:
        files.append(f"  - and {len(touched) - _MOST_LISTED} more")
    step = _harmless(one_line(summary or known.last_action or known.summary)) or "the agent gave no result"
    then = _harmless(one_line(known.next_action or ", ".join(known.remaining)))
    blockers = _harmless(one_line("; ".join((*known.blockers, why))))
    full = [f"Context-Usage: {known.context_pct:.0f}%"] if known.context_pct is not None else []
    return "\n".join(
        [
            f"WIP: GANGER [worker-{attempt}] checkpoint during {one_line(task, 60)}",
            "",
            "Status: unfinished" if known.percent is None else f"Status: {known.percent:.0f}% complete",
            "Files modified:",
            *files,
            "",
            "Resume context:",
            f"  - Current step: {step}",
            f"  - Next action: {then or 'look at this change, then finish the task'}",
            f"  - Blockers: {blockers or 'none'}",
            "",
            f"Worker-ID: {attempt}",
            f"Feature: {one_line(run, 100)}",
            *full,
            _trailers(run, task, attempt),
        ]
    )


def _trailers(run: str, task: str, attempt: int) -> str:
    return f"Ganger-Run: {one_line(run, 200)}\nGanger-Task: {one_line(task, 300)}\nGanger-Attempt: {attempt}\n"


def _harmless(text: str) -> str:
    for mark in _SILENCING:
        at = text.lower().find(mark)
        while at >= 0:
            text = text[:at] + text[at + len(mark) :]
            at = text.lower().find(mark)
    return text.strip()

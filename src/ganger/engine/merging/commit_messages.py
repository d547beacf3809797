"""Commit messages: readable, one per task, with trailers by which a commit is found again."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ganger.core.delivery.public_text import quoted, uncalling, unmarked, unsilencing
from ganger.core.model.run_state import RunState
from ganger.core.model.workers import Checkpoint
from ganger.engine.resources.run_resources import one_line
from ganger.ports.changes import Touched

_SUBJECT = 72
_MOST_LISTED = 200
_MOST_IN_REQUEST = 50


@dataclass(frozen=True, slots=True)
class MadeBy:
    """Who made a change: the agent, its model if it reports one, and the co-authors that the project names."""

    agent: str = ""
    model: str = ""
    co_author: str = ""

    @property
    def trailers(self) -> str:
        named = (("Ganger-Agent", self.agent), ("Ganger-Model", self.model), ("Co-authored-by", self.co_author))
        return "".join(f"{name}: {unsilencing(one_line(said, 200))}\n" for name, said in named if said.strip())


def change_message(run: str, task: str, attempt: int, summary: str, by: MadeBy | None = None) -> str:
    said = uncalling(one_line(summary, 2000)) or "no summary"
    name = uncalling(one_line(task, 60))
    subject = f"{name}: {_headline(said)}"
    body = "" if len(subject) <= _SUBJECT else "\n\n" + "\n".join(textwrap.wrap(said, _SUBJECT))
    short = textwrap.shorten(subject, _SUBJECT, placeholder="…") if body else subject
    return f"{short}{body}\n\n{_trailers(run, task, attempt)}{by.trailers if by is not None else ''}"


def _headline(said: str) -> str:
    """One sentence without its full stop, as titles are."""
    return said if ". " in said or said.endswith("..") else said.removesuffix(".")


def wip_message(
    run: str,
    task: str,
    attempt: int,
    summary: str,
    why: str,
    touched: Sequence[Touched],
    stand: Checkpoint | None = None,
) -> str:
    """What a new worker needs to continue, in the form that the assignment formats use."""
    known = stand or Checkpoint(attempt, "")
    files = [f"  - {uncalling(one_line(t.path, 300))} ({t.kind})" for t in touched[:_MOST_LISTED]]
    if len(touched) > _MOST_LISTED:
        files.append(f"  - and {len(touched) - _MOST_LISTED} more")
    step = uncalling(one_line(summary or known.last_action or known.summary)) or "the agent gave no result"
    then = uncalling(one_line(known.next_action or ", ".join(known.remaining)))
    blockers = uncalling(one_line("; ".join((*known.blockers, why))))
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


def request_title(task: str, summary: str) -> str:
    said, name = uncalling(one_line(summary, 2000)), uncalling(one_line(task, 60))
    subject = f"{name}: {_headline(said)}" if said else name
    return textwrap.shorten(subject, 2 * _SUBJECT, placeholder="…")


def request_body(state: RunState, task: str, commit: str) -> str:
    """What was done and how it was checked, for its reviewers."""
    now, spec = state.tasks[task], state.specs[task]
    said = unmarked(one_line(now.attempt.summary, 2000))
    steps = [f"- {step.name}: {step.outcome}" for step in now.verification.steps]
    files = now.work.change.files if now.work.change is not None else ()
    listed = [f"- {quoted(one_line(name, 300))}" for name in files[:_MOST_IN_REQUEST]]
    if len(files) > _MOST_IN_REQUEST:
        listed.append(f"- and {len(files) - _MOST_IN_REQUEST} more")
    return "\n".join(
        [
            f"Summary: {said}" if said else "No summary was given.",
            "",
            f"Verified by `{spec.verify_profile}` before the push:",
            "",
            *(steps or ["- passed"]),
            "",
            "Files:",
            "",
            *(listed or ["- none"]),
            "",
            f"Task {quoted(one_line(task, 200))} of run {quoted(one_line(state.run_id, 200))}, commit {commit[:12]}.",
        ]
    )


def trigger_message(run: str, task: str, attempt: int, cause: str) -> str:
    """The message of an empty commit that makes CI run; the trailer says why."""
    subject = textwrap.shorten(f"ci: run again for {uncalling(one_line(task, 40))}", _SUBJECT, placeholder="…")
    return f"{subject}\n\n{_trailers(run, task, attempt)}Ganger-Retrigger: {one_line(cause, 100)}\n"


def revert_message(run: str, task: str, commits: Sequence[str]) -> str:
    """The message of a commit that reverts these commits of the task at a person's request: the same whenever it is
    made."""
    subject = textwrap.shorten(f"Revert {uncalling(one_line(task, 40))}", _SUBJECT, placeholder="…")
    body = "".join(f"This reverts commit {commit}.\n" for commit in commits[:_MOST_LISTED])
    run, task = unsilencing(one_line(run, 200)), unsilencing(one_line(task, 300))
    return f"{subject}\n\n{body}\nGanger-Run: {run}\nGanger-Task: {task}\n"


def join_message(run: str, branch: str, theirs: str, into: str = "") -> str:
    """`into` is the branch of a change request; by default it is the run's own branch."""
    name, target = one_line(branch, 40), one_line(into, 60) or f"ganger/{one_line(run, 40)}"
    moved = f"{name} has moved on to {theirs[:12]}."
    return f"Merge {name} into {target}\n\n{moved}\n\nGanger-Run: {one_line(run, 200)}\n"


def _trailers(run: str, task: str, attempt: int) -> str:
    run, task = unsilencing(one_line(run, 200)), unsilencing(one_line(task, 300))
    return f"Ganger-Run: {run}\nGanger-Task: {task}\nGanger-Attempt: {attempt}\n"

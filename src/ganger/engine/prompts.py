"""Prompt assembly: shared context, the task's own prompt, what was learned so far, and the contract to be kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ganger.contracts.parser import neutralise
from ganger.core.records import TaskSpec
from ganger.core.workers import Checkpoint

# The closing line is named before the opening one and neither stands at a line's edge: an echoed prompt is no answer.
_CONTRACT = """## How to answer

Work on the task above, then end your output with exactly one result block. Its last line is `<<<END_TASK_RESULT_V2>>>`,
its first line is `<<<TASK_RESULT_V2>>>`, each alone on its line. Between the two stands one JSON object with:

- "contract_version": "2.0"
- "task_id": {task_id}
- "status": "DONE", "BLOCKED" or "FAILED"
- "summary": one or two sentences on what you did
- "writes" (optional): files to be written for you, each {{"path", "op": "create|replace|append", "encoding": "utf8",
  "content"}}; paths are relative to the project
- "changed_files", "evidence", "failure_class" (optional)

No other fields, no comments, no text inside the block besides that object. Your claims are checked: the project's own
verification decides.
"""

FORMAT_REMINDER = (
    "Your previous answer could not be read ({code}: {message}). Do the task and answer again. The very last thing you "
    "print must be the result block described below: opening line, one valid JSON object, closing line. No markdown "
    "fence around it, nothing after it."
)
_WORKSPACE = """## Where you work

This folder is your own workspace, made for this task from the newest state of the project. Edit files here; nothing
you do outside it counts. You may use git, and need not: whatever the files are when you end is taken as your change,
checked, and merged. Tests, checks and their configuration that exist already are not yours to change."""
_SAVED = """## Work that was begun

An earlier attempt at this task left work that did not count. It is kept as the commit `{commit}` in this repository:
look at it with `git show {commit}`, and take over what is good with `git cherry-pick -n {commit}`. It touches:
"""
_CONTINUED = """# Task {task_id}, continued

You were interrupted while you worked on this task. Nothing was undone: the workspace is as you left it. A tool that was
running then may not have finished. Look at what is there, do not do again what is done, and finish the task."""
_STOOD = """## Where the last worker stopped

A worker before you saved where it stood and ended. Do not do again what is done; go on from here. It said:
"""
_PROTOCOL = """## While you work

`ganger worker --help` shows what you can say meanwhile: that you are at work (heartbeat), where you stand (checkpoint),
a question only a person can answer (escalate). None of it is needed."""
_MOST_LISTED = 50
_LONGEST_STAND = 8_000
_HINTS = "Hints from healing (for this attempt only; the task and its checks stay as they are)"
_ANSWERS = "From the operator"
_RULES = "Rules learned in earlier runs (advice, not instructions)"


class Reader(Protocol):
    """Where texts of the project come from: a workspace, or a workspace with patches on it."""

    def read_text(self, ref: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Advice:
    """What others have to say about the next attempt: the healer, a person, healers of earlier runs."""

    hints: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    role: str = ""
    workspace: bool = False
    saved: str = ""
    saved_files: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    protocol: bool = False


NO_ADVICE = Advice()


def assemble(spec: TaskSpec, reader: Reader, reminder: str, advice: Advice = NO_ADVICE) -> str:
    """The whole prompt of one attempt. Nothing in it but the contract can pass for a result block when echoed."""
    parts = [f"# Task {neutralise(spec.id)}"]
    parts += [f"## Context: {neutralise(ref)}\n\n{file_text(reader, ref)}" for ref in spec.context_refs]
    parts += _section(_RULES, advice.rules)
    parts.append(f"## What to do\n\n{file_text(reader, spec.prompt_ref)}")
    if advice.role.strip():
        parts.append(f"## Your role: {neutralise(spec.role)}\n\n{neutralise(advice.role).strip()}")
    if advice.workspace:
        parts.append(_WORKSPACE)
    if advice.saved:
        listed = "".join(f"\n- {neutralise(name)}" for name in advice.saved_files[:_MOST_LISTED])
        parts.append(_SAVED.format(commit=advice.saved) + listed)
    if advice.checkpoint is not None:
        parts.append(f"{_STOOD}\n{_quoted(neutralise(checkpoint_text(advice.checkpoint)))}")
    if reminder:
        parts.append(f"## Note on your previous attempt\n\n{neutralise(reminder)}")
    parts += _section(_HINTS, advice.hints)
    parts += _section(_ANSWERS, advice.answers)
    if advice.protocol:
        parts.append(_PROTOCOL)
    parts.append(contract_text(spec.id))
    return "\n\n".join(parts)


def continuation(spec: TaskSpec, reader: Reader, reminder: str, answers: tuple[str, ...]) -> str:
    """What a session is told that goes on. The task again, because a program that was killed may have lost its last
    turns; everything else it knows."""
    parts = [_CONTINUED.format(task_id=neutralise(spec.id))]
    parts.append(f"## What to do\n\n{file_text(reader, spec.prompt_ref)}")
    if reminder:
        parts.append(f"## Note on your previous answer\n\n{neutralise(reminder)}")
    parts += _section(_ANSWERS, answers)
    parts.append(contract_text(spec.id))
    return "\n\n".join(parts)


def checkpoint_text(known: Checkpoint) -> str:
    """Where the last worker stood, as lines of a prompt."""
    lists = {
        "Done": known.done,
        "Remaining": known.remaining,
        "Files": known.files,
        "Commits": known.commits,
        "Decisions": known.decisions,
        "Blockers": known.blockers,
    }
    lines = [known.summary] if known.summary else []
    lines += [f"Last action: {known.last_action}"] if known.last_action else []
    lines += [f"Next action: {known.next_action}"] if known.next_action else []
    for name, entries in lists.items():
        if entries:
            lines += [f"{name}:", *(f"- {entry}" for entry in entries[:50])]
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST_STAND else f"{text[:_LONGEST_STAND]} …"


def contract_text(task_id: str) -> str:
    return _CONTRACT.format(task_id=_as_json(task_id))


def _section(title: str, texts: Iterable[str]) -> list[str]:
    """Each text quoted line by line, so that none can open a section of its own."""
    quoted = [_quoted(neutralise(text)) for text in texts if text.strip()]
    return [f"## {title}\n\n" + "\n\n".join(quoted)] if quoted else []


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def file_text(reader: Reader, ref: str) -> str:
    return neutralise(reader.read_text(ref)).strip()


def _as_json(task_id: str) -> str:
    """The id as the agent shall write it; one that holds a sentinel is escaped, which means the same in JSON."""
    text = json.dumps(task_id, ensure_ascii=False)
    return text.replace("<", "\\u003c") if "<<<" in text else text

"""Prompt assembly: shared context, the task's own prompt, what was learned so far, and the contract to keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ganger.contracts.parser import neutralise
from ganger.core.model.records import TaskSpec
from ganger.core.model.workers import Checkpoint
from ganger.core.prompts.parts import SPAWN_BOUND, Part, Piece, fitted, joined
from ganger.core.prompts.tokens import clipped, estimate
from ganger.engine.change_strategy import FoundWork
from ganger.ports.agents import Capabilities

# The closing line comes before the opening one and neither is at a line's edge: an echoed prompt is not an answer.
_CONTRACT = """## How to answer

Work on the task above, then end your output with exactly one result block. Its last line is `<<<END_TASK_RESULT_V2>>>`,
its first line is `<<<TASK_RESULT_V2>>>`, each alone on its line. Between the two is one JSON object with:

- "contract_version": "2.0"
- "task_id": {task_id}
- "status": "DONE", "BLOCKED" or "FAILED"
- "summary": one or two sentences on what you did
{writes}- "changed_files", "evidence", "failure_class" (optional)

No other fields, no comments, no text inside the block besides that object. Your claims are checked: the project's own
verification decides.
"""

# Only for agents that cannot edit files: others would pay for writing them twice.
_WRITES = """\
- "writes" (optional): files to write for you, each {"path", "op": "create|replace|append", "encoding": "utf8",
  "content"}; paths are relative to the project
"""

FORMAT_REMINDER = (
    "Your previous answer could not be read ({code}: {message}). Do the task and answer again. The very last thing you "
    "print must be the result block described below: opening line, one valid JSON object, closing line. No markdown "
    "fence around it, nothing after it."
)
# What Ganger itself says at the start of a task stays below `SPAWN_BOUND` tokens with the longest names.
_WORKSPACE = "Work in this folder only; its files as you leave them are your change, checked and merged for you."
_WHAT, _ONLY, _ROLE = "## What to do", "Touch only:", "## Your role: "
_READS = """You can read these files and what you may touch. All other files of the project appear empty or not at
all and cannot be written; nothing is wrong with them. A check that you run yourself may miss them, the one that counts
has them:"""
_GATES = "Existing tests, checks and their settings are not yours to change."
_PROTOCOL = "`ganger worker brief` says more, `ganger worker escalate` asks a person."
_CI = """## CI is red: fix {fix} of {most}

Your change was merged and pushed (`{commit}`). CI says: {why}. The end of the log is in the note below{more}.
This folder holds that change: fix the code, not the job. Ganger pushes and follows CI itself; you need not push, poll
or re-run."""
_CHECKS = """## What will be run

The change counts only if {what}. Run {it} yourself before you end, where you can:
"""
_REFUSED = """## An earlier change was refused

A safeguard refused the change of an earlier attempt, so this folder holds nothing of it; the note below says why. Do
the task again. It had touched:
"""
_SAVED = """## Unfinished work

An earlier attempt at this task left work that was not accepted. It is kept as the commit `{commit}` in this repository:
look at it with `git show {commit}`, and take over what is good with `git cherry-pick -n {commit}`. It touches:
"""
_CONTINUED = """You were interrupted while you worked on this task. Nothing was undone: the workspace is as you left it.
A tool that was running then may not have finished. Look at what is there, do not repeat what is done, and finish."""
_TURNED_DOWN = {
    "there": """Your change was saved and is not accepted yet; the note below says why. This folder was recreated from
the newest state, and your change is in it. Fix it here; do not start over.""",
    "aside": """Your change was saved and is not accepted yet; the note below says why. This folder was recreated from
the newest state, and your change is not in it, because it does not fit: `git show {commit}` shows it, and
`git cherry-pick -n {commit}` brings it back with the conflicts marked. Resolve them and keep what others did.""",
    "undone": """Your change was saved and is not accepted; the note below says why. It was undone: the files are as
they were before you began. Do the task again, with what you know now.""",
    "whole": """Your change is not accepted yet; the note below says why. The files are as you left them: fix them.""",
}
_STOOD = """## Where the last worker stopped

A worker before you saved its state and ended. Do not repeat what is done; continue from here. It said:
"""
_MOST_LISTED = 50
_MOST_COMMANDS = 10
_COMMAND_TOKENS = 80
_LONGEST_STAND = 8_000
_HINTS = "Hints from healing (for this attempt only; the task and its checks stay as they are)"
_ANSWERS = "From the operator"
_RULES = "Rules learned in earlier runs (advice, not instructions)"
# Longer names appear in full in the contract, in the brief, and in the environment.
_NAME_TOKENS = 8
_ROLE_TOKENS = 4
_PLACE_TOKENS = 6
_WHY_TOKENS = 40


class TextReader(Protocol):
    """Where texts of the project come from: a workspace, or a workspace with patches on it."""

    def read_text(self, ref: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Handoff:
    """Where a change goes (D15). `request`: as a change request into the branch."""

    repo: str = ""
    branch: str = ""
    request: bool = False


@dataclass(frozen=True, slots=True)
class CiNote:
    """That CI rejected a pushed change, for the attempt that fixes it."""

    fix: int
    most: int
    commit: str
    why: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What an attempt's prompt says besides its task: from the healer, a person, earlier runs' healers, and Ganger.

    `gates`: it may change tests and checks. `hides`: of the project it sees only what its task declares. `ci` is set in
    an attempt that fixes what CI found, and in no other. `checks`: the commands that will judge it. `edits`: it edits
    files itself. `saved_refused`: nothing of what was saved may be used again. `turned_down`: its session continues
    after its change was rejected, and this is what it finds of that in its folder. `budget` is in tokens; 0 is none."""

    hints: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    role: str = ""
    workspace: bool = False
    gates: bool = False
    hides: bool = False
    saved: str = ""
    saved_files: tuple[str, ...] = ()
    saved_refused: bool = False
    turned_down: FoundWork | None = None
    checks: tuple[str, ...] = ()
    edits: bool = False
    checkpoint: Checkpoint | None = None
    protocol: bool = False
    handoff: Handoff = Handoff()
    ci: CiNote | None = None
    budget: int = 0


NO_ADVICE = Advice()


def assemble(spec: TaskSpec, reader: TextReader, reminder: str, advice: Advice = NO_ADVICE) -> str:
    """The whole prompt of one attempt. Nothing in it but the contract can pass for a result block when echoed."""
    return joined(fitted(list(pieces(spec, reader, reminder, advice)), advice.budget))


def pieces(spec: TaskSpec, reader: TextReader, reminder: str, advice: Advice = NO_ADVICE) -> Iterator[Piece]:
    """A prompt piece by piece, in the order they are read."""
    yield _opening(spec, advice)
    for ref in spec.context_refs:
        yield Piece(Part.CONTEXT, f"## Context: {neutralise(ref)}\n\n{file_text(reader, ref)}")
    yield from _section(Part.RULES, _RULES, advice.rules)
    yield Piece(Part.SPAWN, _WHAT)
    yield Piece(Part.TASK, file_text(reader, spec.prompt_ref))
    yield from _boundaries(spec)
    if spec.reads and advice.hides:
        yield Piece(Part.TASK, f"{_READS}\n{_files(spec.reads)}")
    yield from _commands(advice.checks)
    if advice.role.strip():
        yield Piece(Part.SPAWN, f"{_ROLE}{_name(spec.role, _ROLE_TOKENS)}")
        yield Piece(Part.TASK, neutralise(advice.role).strip())
    if advice.saved:
        head = _REFUSED if advice.saved_refused else _SAVED.format(commit=advice.saved)
        yield Piece(Part.HISTORY, head + _files(advice.saved_files))
    if advice.checkpoint is not None:
        yield Piece(Part.HISTORY, f"{_STOOD}\n{quoted(neutralise(checkpoint_text(advice.checkpoint)))}")
    yield from _past(reminder, advice, "attempt")
    yield from _section(Part.HINTS, _HINTS, advice.hints)
    yield from _section(Part.ANSWERS, _ANSWERS, advice.answers)
    yield Piece(Part.CONTRACT, contract_text(spec.id, writes=not advice.edits))


def continuation(spec: TaskSpec, reader: TextReader, reminder: str, advice: Advice = NO_ADVICE) -> str:
    """The prompt of a session that continues. It repeats the task, because a killed program may have lost its last
    turns; the session knows everything else."""
    return joined(fitted(list(_continued(spec, reader, reminder, advice)), advice.budget))


def _continued(spec: TaskSpec, reader: TextReader, reminder: str, advice: Advice) -> Iterator[Piece]:
    yield Piece(Part.SPAWN, f"# Task {_name(spec.id, _NAME_TOKENS)}, continued")
    if advice.turned_down is not None and advice.ci is None:
        yield Piece(Part.SPAWN, _TURNED_DOWN[advice.turned_down].format(commit=advice.saved[:12]))
    elif advice.ci is None:
        yield Piece(Part.SPAWN, _CONTINUED)
    yield Piece(Part.SPAWN, _WHAT)
    yield Piece(Part.TASK, file_text(reader, spec.prompt_ref))
    yield from _past(reminder, advice, "answer" if advice.turned_down is None else "change")
    yield from _section(Part.HINTS, _HINTS, advice.hints)
    yield from _section(Part.ANSWERS, _ANSWERS, advice.answers)
    yield Piece(Part.CONTRACT, contract_text(spec.id, writes=not advice.edits))


def _opening(spec: TaskSpec, advice: Advice) -> Piece:
    """A long id is cut to what the rest of the bound leaves; the contract has it in full."""
    place = _place(advice)
    rest = f"#Task\n\n{place}\n\n{_WHAT}\n\n{_ONLY}\n\n{_ROLE}{_name(spec.role, _ROLE_TOKENS)}\n\n"
    most = max(_NAME_TOKENS, SPAWN_BOUND - estimate(rest) - 2)
    return Piece(Part.SPAWN, f"# Task {_name(spec.id, most)}\n\n{place}".strip())


def _boundaries(spec: TaskSpec) -> Iterator[Piece]:
    """The files a task may touch, where its manifest names them: others are refused."""
    named = {"create": spec.creates or (), "modify": spec.modifies or ()}
    listed = [f"- {how} {neutralise(path)}" for how, paths in named.items() for path in paths]
    if listed:
        more = [f"- and {len(listed) - _MOST_LISTED} more"] if len(listed) > _MOST_LISTED else []
        yield Piece(Part.SPAWN, _ONLY)
        yield Piece(Part.TASK, "\n".join([*listed[:_MOST_LISTED], *more]))


def _commands(checks: Sequence[str]) -> Iterator[Piece]:
    """The commands that will judge the change, as they were typed."""
    if not checks:
        return
    typed = [clipped(neutralise(" ".join(command.split())), _COMMAND_TOKENS) for command in checks[:_MOST_COMMANDS]]
    more = [f"- and {len(checks) - _MOST_COMMANDS} more"] if len(checks) > _MOST_COMMANDS else []
    what, it = ("this succeeds", "it") if len(checks) == 1 else ("these succeed, in this order", "them")
    listed = "\n".join([*(f"- `{command}`" for command in typed), *more])
    yield Piece(Part.CHECKS, f"{_CHECKS.format(what=what, it=it)}\n{listed}")


def _files(names: Sequence[str]) -> str:
    more = f"\n- and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return "".join(f"\n- {neutralise(name)}" for name in names[:_MOST_LISTED]) + more


def _place(advice: Advice) -> str:
    """Where it works, what it may not change, and where to ask: Ganger's own words, and few of them."""
    told = [_goes_to(advice.handoff), _WORKSPACE, "" if advice.gates else _GATES] if advice.workspace else []
    told.append(_PROTOCOL if advice.protocol else "")
    return " ".join(text for text in told if text)


def _goes_to(handoff: Handoff) -> str:
    way = "change request into" if handoff.request else "branch"
    told = [f"repo {_name(handoff.repo, _PLACE_TOKENS)}"] if handoff.repo else []
    told += [f"{way} {_name(handoff.branch, _PLACE_TOKENS)}"] if handoff.branch else []
    text = ", ".join(told)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def ci_text(note: CiNote, *, protocol: bool) -> str:
    """At most `CI_BOUND` tokens with the longest names."""
    more = ", or: `ganger worker brief ci`, with all jobs" if protocol else ""
    why = clipped(" ".join(neutralise(note.why).split()).rstrip("."), _WHY_TOKENS)
    return _CI.format(fix=note.fix, most=note.most, commit=note.commit[:12], why=why, more=more)


def _past(reminder: str, advice: Advice, what: str) -> Iterator[Piece]:
    if advice.ci is not None:
        yield Piece(Part.CI, ci_text(advice.ci, protocol=advice.protocol))
    if reminder:
        yield Piece(Part.FAILURE, f"## Note on your previous {what}\n\n{neutralise(reminder)}")


def checkpoint_text(known: Checkpoint) -> str:
    """The last worker's saved state, as lines of a prompt."""
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


def edits_files(able: Capabilities) -> bool:
    """Whether an agent edits files with its own tools, so that it needs no `writes`."""
    return able.stream or able.interactive


def contract_text(task_id: str, *, writes: bool = True) -> str:
    """`writes`: also how to request file writes, for agents that cannot edit files."""
    return _CONTRACT.format(task_id=_as_json(task_id), writes=_WRITES if writes else "")


def _section(part: Part, title: str, texts: Iterable[str]) -> Iterator[Piece]:
    """Each text quoted line by line, so that none can open a section of its own."""
    told = [quoted(neutralise(text)) for text in texts if text.strip()]
    if told:
        yield Piece(part, f"## {title}\n\n" + "\n\n".join(told))


def quoted(text: str) -> str:
    """Text from others, in which no line can start a section."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _name(text: str, most: int) -> str:
    return clipped(neutralise(" ".join(text.split())), most)


def file_text(reader: TextReader, ref: str) -> str:
    return neutralise(reader.read_text(ref)).strip()


def _as_json(task_id: str) -> str:
    """The id as the agent must write it; an id that contains a sentinel is escaped, which means the same in JSON."""
    text = json.dumps(task_id, ensure_ascii=False)
    return text.replace("<", "\\u003c") if "<<<" in text else text

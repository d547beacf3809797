"""What needs a person: the questions of a run, open ones first, each with what to type."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ganger.core.records import Question, RunState


@dataclass(frozen=True, slots=True)
class InboxRow:
    id: str
    task: str
    kind: str
    since: str
    text: str
    answer: str | None
    commands: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "task": self.task or None,
            "kind": self.kind,
            "since": self.since,
            "text": self.text,
            "open": self.answer is None,
            "answer": self.answer,
            "commands": list(self.commands),
        }


def inbox(state: RunState, *, answered: bool = False) -> list[InboxRow]:
    """Oldest first within open and answered."""
    asked = sorted(state.questions.values(), key=lambda question: question.answer is not None)
    return [_row(state, question) for question in asked if answered or question.answer is None]


def _row(state: RunState, question: Question) -> InboxRow:
    commands = () if question.answer is not None else _commands(state, question)
    return InboxRow(question.id, question.task, question.kind, question.at, question.text, question.answer, commands)


def _commands(state: RunState, question: Question) -> tuple[str, ...]:
    """Ready to paste, also when another run is the newest by then."""
    run = f" --run {shlex.quote(state.run_id)}"
    answer = f"ganger answer {shlex.quote(question.id)} TEXT{run}"
    if question.task:
        task = shlex.quote(question.task)
        return answer, f"ganger logs {task}{run}", f"ganger skip {task}{run}"
    return (f"ganger set budget.usd=AMOUNT{run}", answer) if question.kind == "budget" else (answer,)

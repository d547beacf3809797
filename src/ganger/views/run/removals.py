"""Branches from which a maintainer took commits of the run: whose, and what is to be done."""

from __future__ import annotations

from dataclasses import dataclass

from ganger.core.control.removals import open_question
from ganger.core.model.run_state import RunState


@dataclass(frozen=True, slots=True)
class RemovalRow:
    """`tip`: where the branch was then; empty: it was gone. `leaves_out`: a person decided that they stay out."""

    repo: str
    branch: str
    tip: str
    tasks: tuple[str, ...]
    question: str
    leaves_out: bool

    def as_json(self) -> dict[str, object]:
        return {
            "repo": self.repo,
            "branch": self.branch,
            "tip": self.tip or None,
            "tasks": list(self.tasks),
            "question": self.question or None,
            "leaves_out": self.leaves_out,
        }

    @property
    def line(self) -> str:
        where = f"{self.repo}: {self.branch}" if self.repo else self.branch
        whose = f"commits of this run were removed ({', '.join(self.tasks)})" if self.tasks else "commits were removed"
        if not self.tip:
            whose = f"the branch was deleted ({', '.join(self.tasks)})" if self.tasks else "the branch was deleted"
        if self.question:
            then = f"nothing is pushed there until you answer; ganger inbox: {self.question}"
        else:
            then = "they stay out; the next push goes on without them" if self.leaves_out else "ganger inbox"
        return f"{where}: {whose}; {then}"


def removals(state: RunState) -> list[RemovalRow]:
    """In the order in which they were seen; none that is settled."""
    rows = []
    for repo, removal in state.branches.removals.items():
        asked, rules = open_question(state, repo), state.chains.rules.get(repo)
        branch = rules.branch if rules is not None and rules.branch else "the branch"
        question = asked.id if asked else ""
        rows.append(RemovalRow(repo, branch, removal.tip, removal.tasks, question, removal.leaves_out))
    return rows

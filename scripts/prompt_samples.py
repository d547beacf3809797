"""The prompts a first and a second attempt get, as docs/guide/prompts.md shows them: by the code that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from settings import NoPlaceError

from ganger.core.logs.check_logs import note_of, telling
from ganger.core.model.records import TaskSpec
from ganger.core.prompts.tokens import estimate
from ganger.core.vocabulary import Tier
from ganger.engine.prompts.assemble import Advice, assemble, continuation
from ganger.engine.verification.checks import why_red
from ganger.engine.verification.steps import StepResult, Verdict

PAGE = Path("docs/guide/prompts.md")
LOG = Path("tests/data/check_logs/unittest.log")
BEGIN, END = "<!-- prompts: begin, written by `make generate` -->", "<!-- prompts: end -->"
COMMAND = "python3 -m unittest tests/test_calc.py"
SPEC = TaskSpec("calc", prompt_ref="prompts/calc.md", modifies=("calc.py",))
COMMIT = "3f1c9a52be07"


class _Texts:
    def read_text(self, _ref: str) -> str:
        return "`add` in calc.py subtracts. Make it add, and let `boom` return its argument."


def render(root: Path) -> str:
    page = (root / PAGE).read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoPlaceError(
            f"{PAGE}: the lines {BEGIN!r} and {END!r} are needed; put them where the prompts shall stand"
        )
    return "\n".join([f"{before}{BEGIN}", "", *samples(root), f"{END}{after}"])


def samples(root: Path) -> Iterator[str]:
    known = Advice(workspace=True, protocol=True, checks=(COMMAND,), edits=True)
    afresh = replace(known, saved=COMMIT, saved_files=("calc.py",))
    goes_on = replace(afresh, turned_down="there")
    note = reminder(root)
    prompts = {
        "The first attempt": assemble(SPEC, _Texts(), "", known),
        "The second, in the same session": continuation(SPEC, _Texts(), note, goes_on),
        "The second, where the agent has no session to go on with": assemble(SPEC, _Texts(), note, afresh),
    }
    yield "| prompt | tokens |"
    yield "| --- | --- |"
    yield from (f"| {title} | {estimate(text)} |" for title, text in prompts.items())
    for title, text in prompts.items():
        yield from ("", f"### {title}", "", "````text", text.strip(), "````")
    yield ""


def reminder(root: Path) -> str:
    """Why the first attempt's change is not accepted, from the log of its check."""
    told = note_of(telling((root / LOG).read_text(encoding="utf-8"), "/checkout"))
    step = StepResult("unit", Tier.CORRECTNESS, COMMAND, "failed", 1, 0.4, "AssertionError: 4 != 3")
    return why_red(Verdict(False, (step,), step, command=COMMAND, says=step.first_error, told=told)).reminder

"""What a red CI tells the worker that mends it, and when a fault counts as the same one: real logs, a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ganger.core import events as ev
from tests.engine.delivery_runs import DeliveryProject
from tests.engine.git_runs import edits

pytestmark = pytest.mark.whole

LOGS = Path(__file__).parents[1] / "data" / "ci-logs"
# The file that the worker writes says what CI finds.
CI = 'log="$(cat a.txt)"; [ ! -f "$log.log" ] || { cat "$log.log"; exit 1; }'


def delivered(tmp_path: Path, tool: str, *faults: str) -> DeliveryProject:
    """A run in which CI is red by one log after the other, and then green."""
    base = {f"{fault}.log": (LOGS / tool / f"{fault}.log").read_text() for fault in faults}
    script = {"a": [edits({"a.txt": f"{fault}\n"}) for fault in (*faults, "fine")]}
    project = DeliveryProject(tmp_path / "p", script=script, base=base, jobs={"test": ("sh", "-c", CI)}).make()
    assert project.run() == 0
    return project


def failed(project: DeliveryProject) -> list[ev.AttemptFailed]:
    return [event for event in project.of(ev.AttemptFailed) if isinstance(event, ev.AttemptFailed)]


TOLD = {
    ("pytest", "port--plain"): ("- tests/test_api.py::test_port (tests/test_api.py:9)", "> E       AssertionError"),
    ("jest", "raises--colour"): ("- api › name has no blanks (src/api.js:2)", ">     TypeError: text.trimmed is not"),
    ("go", "add--moved"): ("- TestAdd (calc_test.go:14)", "Add(1, 2) = -1, want 3"),
    ("cargo", "build--plain"): ("src/lib.rs:2:9", "error[E0425]: cannot find value `c` in this scope"),
}


@pytest.mark.parametrize(("tool", "fault"), TOLD)
def test_the_worker_is_told_the_failing_tests_and_their_places(tmp_path: Path, tool: str, fault: str) -> None:
    """D06 G22: and the lines that say why; the signature is of the fault."""
    first = failed(delivered(tmp_path, tool, fault))[0]
    assert all(words in first.reminder for words in TOLD[tool, fault])
    assert first.signature.startswith("ci_error:") and "====" not in first.signature and "\x1b" not in first.reminder


@pytest.mark.parametrize(("second", "asks"), [("port--moved", True), ("raises--plain", False)])
def test_only_the_same_fault_twice_asks_a_person(tmp_path: Path, second: str, asks: bool) -> None:
    """D06: the same with its lines moved is the same; another reason in the same test is progress."""
    project = delivered(tmp_path, "pytest", "port--plain", second)
    questions = [event for event in project.of(ev.QuestionAsked) if isinstance(event, ev.QuestionAsked)]
    assert [question.kind for question in questions] == ["ci"] * asks
    assert len({event.signature for event in failed(project)}) == (1 if asks else 2)

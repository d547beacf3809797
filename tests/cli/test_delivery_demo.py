"""The delivery demo, played once as a person plays it; what it claims, and that its claims can fail."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ganger.app.runs import read_events, read_state
from ganger.core.events import Recorded
from ganger.core.model.ledger import Delivery
from ganger.core.model.run_state import RunState
from ganger.core.vocabulary import TaskStatus
from ganger.demo.delivery import REPO_OF, shortcomings
from ganger.local.run_folder import RunFolder
from tests.cli.cli_project import ganger

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo") / "delivery"
    answer = ganger(
        "demo", "--delivery", "--json", "--keep", str(root), cwd=root.parent, env={"HOME": str(root.parent)}
    )
    (root / "last.json").write_text(json.dumps(answer.lines[-1]))
    assert answer.code == 0, answer.lines[-1]
    return root


def test_every_task_ends_with_proof_of_exactly_what_is_on_its_remote_and_its_mirror(played: Path) -> None:
    """D01 D04 D06 D09: red and mended, skipped and triggered again, and the app waited for the library."""
    last = json.loads((played / "last.json").read_text())
    tasks = {one["task"]: one for one in last["ledger"]}
    assert last["ok"] and set(tasks) == set(REPO_OF) and not any(one["missing"] for one in tasks.values())
    assert [one["verdict"] for one in tasks["units"]["verdicts"]] == ["red", "green"]
    assert tasks["report"]["delivery"]["retriggered"] == ["mirror_skipped"]
    for name, repo in REPO_OF.items():
        commit = tasks[name]["delivery"]["commit"]
        words = [
            "git",
            "--git-dir",
            str(played / "remotes" / "mirror.git"),
            "merge-base",
            "--is-ancestor",
            commit,
            repo,
        ]
        assert subprocess.run(words, check=False).returncode == 0


def test_the_ledger_command_shows_every_job_of_the_proved_commit(played: Path) -> None:
    """D01 D18: tree, commit, push, CI run, jobs, mirror and verdict, with times and sources."""
    answer = ganger("ledger", "report", cwd=played / "office")
    assert answer.code == 0 and answer.out.count("✓") == 3
    for part in ("tree ", "commit ", "push ", "CI run ", "mirror  ", "verdict ", "facts", "mirror_skipped"):
        assert part in answer.out
    told = ganger("ledger", "--json", cwd=played / "office").json
    assert told["schema"] == "ganger.ledger/1" and [one["task"] for one in told["tasks"]] == list(REPO_OF)


def test_a_worker_that_mends_gets_what_ci_said_and_the_first_one_hears_nothing_of_ci(played: Path) -> None:
    """D06 D15: the failing line is in the second prompt alone."""
    prompts = [
        (played / "office" / ".ganger" / "delivery" / "prompts" / f"units.{number}.md").read_text() for number in (1, 2)
    ]
    assert ["the function to_metres has no docstring" in prompt for prompt in prompts] == [False, True]


def delivery_of(state: RunState, name: str) -> Delivery:
    found = state.tasks[name].delivery
    assert found is not None
    return found


def with_delivery(state: RunState, name: str, **changes: object) -> None:
    now = replace(delivery_of(state, name), **changes)  # type: ignore[arg-type]
    state.tasks[name] = replace(state.tasks[name], delivery=now)


Break = Callable[[RunState], None]
BREAKS: Sequence[tuple[Break, str]] = [
    (lambda s: with_delivery(s, "units", green="0" * 40), "units: DONE without proof"),
    (lambda s: with_delivery(s, "rounding", mirrored=""), "rounding: DONE without proof"),
    (lambda s: with_delivery(s, "report", retriggered=()), "was not triggered again"),
    (lambda s: s.tasks.update(report=replace(s.tasks["report"], status=TaskStatus.BLOCKED)), "report is BLOCKED"),
    (lambda s: s.pushes.proved.update(lib="0" * 40), "main of lib.git is at"),
    (lambda s: s.pushes.verdicts.clear(), "expected red, then green"),
]


@pytest.mark.parametrize(("breaks", "found"), BREAKS)
def test_the_demo_notices_what_its_script_does_not_say(played: Path, breaks: Break, found: str) -> None:
    """D01: each claim of the demo fails where it is not so."""
    folder = RunFolder(played / "office" / ".ganger" / "delivery")
    state, events = read_state(folder), list(read_events(folder, 0))
    assert shortcomings(played, state, events) == []
    breaks(state)
    assert any(found in one for one in shortcomings(played, state, events))


def test_the_demo_notices_a_task_that_did_not_wait(played: Path) -> None:
    """D08: the app's task before the library's end."""
    folder = RunFolder(played / "office" / ".ganger" / "delivery")
    turned: list[Recorded] = [replace(one, seq=10_000 - one.seq) for one in read_events(folder, 0)]
    assert "report began while the library was locked" in shortcomings(played, read_state(folder), turned)

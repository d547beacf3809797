"""Healing, budgets and quota as a user meets them: real processes, a real agent program, the real command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_project import Answer, ganger
from tests.cli.heal_project import RIGHT, SENTENCE, WRONG, HealProject, append, decision, names
from tests.patience import until

pytestmark = pytest.mark.whole

QUICK = 'heal_schedule = "{}"\nconcurrency = 4\ngrace_sec = 1'


@pytest.mark.quick
@pytest.mark.brief(2)
@pytest.mark.parametrize("answers", [(RIGHT,), (WRONG, RIGHT)], ids=["right", "wrong first"])
@pytest.mark.parametrize("schedule", ["auto", "batch", "epoch"])
def test_one_missing_sentence_breaks_40_of_60_tasks_and_is_healed_within_bounds(
    tmp_path: Path, schedule: str, answers: tuple[str, ...]
) -> None:
    """T12 T13 T14: at most 3 heal rounds and 60 + 40 + 3 worker attempts; your files stay as they were."""
    project = HealProject(tmp_path / "p", 60, names(11, 50), answers, QUICK.format(schedule)).make()
    before = project.files()
    answer = project.run()
    assert answer.code == 0 and answer.lines[-1]["run_status"] == "COMPLETED"
    assert project.healers() == len(answers) <= 3 and project.workers() <= 60 + 40 + 3
    assert project.files() == before


@pytest.fixture(scope="module")
def hopeless(tmp_path_factory: pytest.TempPathFactory) -> tuple[HealProject, Answer]:
    """Twelve tasks of which ten share a failure that no patch mends."""
    root = tmp_path_factory.mktemp("hopeless") / "p"
    project = HealProject(root, 12, names(1, 10), (WRONG,), QUICK.format("epoch")).make()
    return project, project.run()


def test_a_hopeless_run_aborts_with_a_reason_that_names_the_failure(hopeless: tuple[HealProject, Answer]) -> None:
    """T12 T22 Z07: the same words in the last line, the state file and the report; exit 4, a person must decide."""
    project, answer = hopeless
    reason = answer.lines[-1]["abort_reason"]
    assert answer.code == 4 and answer.lines[-1]["run_status"] == project.state()["run_status"] == "ABORTED"
    assert "healing does not converge: 10 tasks fail with 'prompt_gap:what to put at the top is not said'" in reason
    assert project.state()["abort_reason"] == reason
    assert f"Why it ended: {reason[:400]}" in (project.folder / "report.md").read_text()


def test_an_aborted_run_keeps_its_failing_set_with_signatures(hopeless: tuple[HealProject, Answer]) -> None:
    """T22: in the state file, for whoever goes on."""
    tasks = hopeless[0].state()["tasks"]
    failing = {name: now["last_failure_signature"] for name, now in tasks.items() if now["status"] != "DONE"}
    assert failing == dict.fromkeys(names(1, 10), "prompt_gap:what to put at the top is not said")
    assert [round_["decision"] for round_ in hopeless[0].state()["healing_rounds"]] == ["RETRY", "RETRY"]


def test_a_failing_canary_protects_the_rest_of_its_cluster(hopeless: tuple[HealProject, Answer]) -> None:
    """T12: two heal rounds cost two worker starts, whatever the cluster's size."""
    project, starts = hopeless[0], hopeless[0].starts()
    assert starts["worker t01"] == 3 and {starts[f"worker {name}"] for name in names(2, 12)} == {1}
    assert project.healers() == 2


def test_a_healer_is_shown_the_failures_and_what_was_tried(hopeless: tuple[HealProject, Answer]) -> None:
    """T12: the second round knows of the first one's patch."""
    first, second = ((hopeless[0].book / f"healer.{n}.md").read_text() for n in (1, 2))
    assert "what to put at the top is not said" in first and "docs/rules.md" in first
    assert "patch-001" in second and "patch-001" not in first


def test_escalated_tasks_wait_in_the_inbox(hopeless: tuple[HealProject, Answer]) -> None:
    """Z06 T22: and are not retried by themselves when the run is taken up again."""
    project = hopeless[0]
    asked = ganger("inbox", "--json", cwd=project.root).json
    assert {entry["task"] for entry in asked["questions"]} == set(names(1, 10))


def test_a_contract_hint_reaches_exactly_the_next_prompt(tmp_path: Path) -> None:
    """T15: not the one after it, and no file of its own."""
    hint = {"target": "contract_hint", "operation": "append", "content": "Look at the top of main.py."}
    project = HealProject(tmp_path / "p", 1, names(1, 1), (decision(hint), RIGHT)).make()
    assert project.run().code == 0
    assert ["Look at the top" in project.prompt("t01", n) for n in (1, 2, 3)] == [False, True, False]
    kept = [path.read_text() for path in (project.folder / "patches").iterdir()]
    assert not any("Look at the top" in text for text in kept) and SENTENCE in project.prompt("t01", 3)


@pytest.mark.quick
def test_a_learned_rule_is_recorded_and_given_to_later_runs_only_on_request(tmp_path: Path) -> None:
    """T16: with its round; labelled as advice; never by itself."""
    taught = decision(append(SENTENCE), learned_rule="Say what stands at the top.")
    project = HealProject(tmp_path / "p", 1, names(1, 1), (taught,)).make()
    assert project.run().code == 0
    rules = json.loads((project.folder / "rules.json").read_text())["rules"]
    assert [(rule["round"], rule["rule"]) for rule in rules] == [(1, "Say what stands at the top.")]
    for run_id, healing, given in (("r2", "", False), ("r3", "learned_rules = true", True)):
        project.run_id, project.healing = run_id, healing
        assert project.configure().run().code == 0
        text = project.prompt("t01", 1)
        assert ("Say what stands at the top." in text) == ("advice, not instructions" in text) == given


def test_a_healer_that_gives_no_readable_answer_is_asked_once_more_and_then_done_without(tmp_path: Path) -> None:
    """T08 T13 T28 invalid-heal-json: no answer; each round has one format retry, and the run still ends."""
    project = HealProject(tmp_path / "p", 2, names(1, 1), ("sorry",), QUICK.format("batch")).make()
    answer = project.run()
    rounds = project.state()["healing_rounds"]
    assert answer.code == 1 and project.healers() == 2 * len(rounds)
    assert project.state()["tasks"]["t01"]["status"] == "FAILED" and project.starts()["worker t01"] == 2
    assert project.state()["tasks"]["t02"]["status"] == "DONE"


# --- a lead that dies while the healer works ------------------------------------------------------------------------


def start(project: HealProject) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "ganger", "run", "--json"],
        cwd=project.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def kill_while_healing(project: HealProject) -> None:
    (project.book / "hold").touch()
    lead = start(project)
    until(project.healers)
    os.kill(lead.pid, signal.SIGKILL)
    lead.wait()


def test_a_healer_that_outlives_its_lead_is_adopted(tmp_path: Path) -> None:
    """G01 T12: started once, and its patches count."""
    project = HealProject(tmp_path / "p", 6, names(1, 6), policy=QUICK.format("batch")).make()
    kill_while_healing(project)
    second = start(project)
    until(lambda: ganger("events", "--json", cwd=project.root).out.count('"lead_started"') == 2)
    (project.book / "hold").unlink()
    assert second.wait(60) == 0 and project.healers() == 1


def test_a_healer_that_ended_while_nobody_led_is_harvested(tmp_path: Path) -> None:
    """G01: its answer is read from its log."""
    project = HealProject(tmp_path / "p", 6, names(1, 6), policy=QUICK.format("batch")).make()
    kill_while_healing(project)
    (project.book / "hold").unlink()
    until(lambda: "END_HEAL_DECISION" in (project.folder / "logs" / "healer.1.log").read_text())
    assert project.run().code == 0 and project.healers() == 1 and project.workers() <= 6 + 6


# --- budgets and quota ------------------------------------------------------------------------------------------------

USAGE = '{"usd": 0.5, "input_tokens": 900, "output_tokens": 100}'
BUDGETS: dict[str, tuple[str, str, int]] = {
    "attempts": ("attempts = 2", USAGE, 2),
    "usd": ("usd = 1.7", USAGE, 3),
    "tokens": ("tokens = 2500\nattempt_tokens = 1000", USAGE, 2),
    "unknown cost": ("usd = 1.2\nattempt_usd = 0.5", "", 2),
}


@pytest.mark.brief(1)
@pytest.mark.parametrize("case", BUDGETS)
def test_a_run_stops_before_it_overspends_and_goes_on_with_more(tmp_path: Path, case: str) -> None:
    """G04 Z07: exit 4 with a question of kind budget; a larger budget finishes the same run."""
    budget, usage, fits = BUDGETS[case]
    project = HealProject(tmp_path / "p", 5, policy=QUICK.format("off"), budget=budget).make()
    if usage:
        (project.book / "usage").write_text(usage)
    assert project.run().code == 4 and project.workers() == fits
    asked = ganger("inbox", "--json", cwd=project.root).json["questions"]
    assert [entry["kind"] for entry in asked] == ["budget"]
    more = ("--budget", "9") if "usd" in budget else ("--set", "budget.attempts=99", "--set", "budget.tokens=99999")
    assert project.run(*more).code == 0 and project.workers() == 5


def test_a_quota_rests_the_account_and_comes_back_by_itself(tmp_path: Path) -> None:
    """W07 G04: no counter pays, the other account goes on, nobody has to do anything."""
    tester: dict[str, Any] = {"metadata": {"role": "tester"}}
    policy = QUICK.format("off") + "\nquota_wait_sec = 2"
    project = HealProject(tmp_path / "p", 8, policy=policy, more=dict.fromkeys(names(5, 8), tester)).make()
    blocked = {"contract_version": "2.0", "task_id": "t01", "status": "BLOCKED", "summary": "429"}
    (project.book / "result/t01.1").write_text(json.dumps({**blocked, "failure_class": "quota"}))
    answer = project.run("--concurrency", "1")
    kinds = [(line["type"], line.get("task")) for line in answer.lines]
    after = kinds[kinds.index(("account_paused", None)) : kinds.index(("task_requeued", "t01"))]
    assert {task for kind, task in after if kind == "attempt_started"} == set(names(5, 8))
    assert answer.code == 0 and project.state()["tasks"]["t01"]["worker_attempts"] == 1

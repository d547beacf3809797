"""`ganger plan --prompts` as a user calls it: sizes, bounds, budget, and what agents counted in earlier runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ganger.core.prompts.tokens import TokenSample
from ganger.engine.output.usage import usage_of_runs
from tests.cli.cli_project import ganger, kept, make_project, task

LINES = "\n".join(f"Rule {number}: keep to it." for number in range(200))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tasks = (task("one", context_refs=["style.md"]), task("two", prompt_ref="long.md"))
    made = make_project(tmp_path, *tasks)
    (made / "style.md").write_text(LINES)
    (made / "long.md").write_text(LINES * 3)
    return made


def test_every_prompt_is_weighed_by_part_and_both_bounds_are_shown(root: Path) -> None:
    """D15: before anybody is asked anything."""
    found = ganger("plan", "--prompts", "--json", cwd=root).json
    one, two = found["tasks"]
    assert found["schema"] == "ganger.prompts/1" and found["ok"] and [one["id"], two["id"]] == ["one", "two"]
    assert list(one["sections"]) == ["contract", "spawn", "task", "checks", "context"]
    assert sum(one["sections"].values()) == one["total"] == one["sent"]
    assert 0 < found["spawn"]["tokens"] <= found["spawn"]["most"] == 110
    assert 0 < found["ci"]["tokens"] <= found["ci"]["most"] == 160
    assert not (root / ".ganger").exists()


def test_people_read_the_same_figures(root: Path) -> None:
    """D15: one line per task, then the bounds."""
    answer = ganger("plan", "--prompts", cwd=root)
    assert answer.code == 0 and "  one: " in answer.out and "Ganger's own text at the start of a task: " in answer.out
    assert " of at most 110\n" in answer.out and " of at most 160\n" in answer.out


def test_a_budget_says_what_would_be_cut_and_what_can_not_be(root: Path) -> None:
    """D15: a context can be cut, a task can not; then the answer is 1."""
    answer = ganger("plan", "--prompts", "--json", cwd=root, env={"GANGER_PROMPTS_BUDGET_TOKENS": "900"})
    one, two = answer.json["tasks"]
    assert answer.code == 1 and not answer.json["ok"]
    assert (one["over"], one["cut"], two["over"], two["cut"]) == (False, ["context"], True, ["checks"])
    assert one["sent"] <= 900 < two["needed"]
    told = ganger("plan", "--prompts", cwd=root, env={"GANGER_PROMPTS_BUDGET_TOKENS": "900"})
    assert "over: " in told.out and "shortened: context" in told.out


def test_the_prompt_that_is_sent_is_the_one_that_was_weighed(root: Path) -> None:
    """D15: under the same budget, with the mark of what is gone."""
    (root / "ganger.toml").write_text((root / "ganger.toml").read_text() + "\n[prompts]\nbudget_tokens = 500\n")
    assert ganger("run", "--only", "one", cwd=root).code in (0, 2)
    (prompt,) = (root / ".ganger").glob("*/prompts/one.1.md")
    text = prompt.read_text()
    assert "cut here: the prompt has a budget" in text and "Rule 1:" in text and "Rule 199:" not in text
    assert text.rstrip().endswith("verification decides.")


def test_what_agents_counted_is_shown_and_changes_no_verdict(root: Path) -> None:
    """D15: damaged notes are passed over."""
    rows = [{"agent": "x/x", "estimated": 100, "counted": 90}, {"agent": "x/x", "estimated": 400, "counted": 360}]
    for run, text in {"old": json.dumps({"prompts": rows}), "bad": "{", "odd": '{"prompts": [{"agent": 1}]}'}.items():
        kept(root, run).mkdir(parents=True)
        (kept(root, run) / "usage.json").write_text(text)
    answer = ganger("plan", "--prompts", "--json", cwd=root, env={"GANGER_PROMPTS_BUDGET_TOKENS": "900"})
    assert answer.json["calibration"] == [{"agent": "x/x", "attempts": 2, "factor": 0.9, "slope": 0.9}]
    assert answer.code == 1
    assert "0.9 for each estimated token" in ganger("plan", "--prompts", cwd=root).out


def test_a_run_keeps_what_its_agents_counted(root: Path) -> None:
    """D15: where an attempt was enough and its tokens are known."""
    answer = {"result": "DONE", "usage": {"input_tokens": 1234, "output_tokens": 5}}
    (root / "script.json").write_text(json.dumps({"tasks": {}, "default": answer}))
    ganger("run", cwd=root)
    found = usage_of_runs(kept(root).parent)
    assert [sample.counted for sample in found] == [1234, 1234] and all(isinstance(s, TokenSample) for s in found)
    assert all(sample.estimated > 200 for sample in found)

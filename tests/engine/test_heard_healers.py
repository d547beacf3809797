"""Healers are heard as workers are: limits are waited for, every call is paid, and the project is not theirs."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.model.records import HealRound
from ganger.core.vocabulary import TaskStatus
from ganger.engine.healing import heal_round
from ganger.views.run.costs import spending
from tests.engine.run_projects import Project, leading, until
from tests.engine.speaking_agent import SpeakingAgent, Speech, speaking
from tests.patience import stretched

pytestmark = pytest.mark.whole

Step = dict[str, Any]
FAILED = {"result": {"status": "FAILED", "summary": "what to do is not said", "failure_class": "prompt_gap"}}
HEALER = """
[agents.doctor]
{agent}
[roles.healer]
agent = "doctor"
{more}
"""


def decided(**changes: object) -> Step:
    body = {
        "contract_version": "2.0",
        "scope": "task",
        "decision": "RETRY",
        "failure_class": "prompt_gap",
        "root_cause": "it was not said",
        "patches": [{"target": "task_prompt", "operation": "append", "task_id": "a", "content": "Say it."}],
        **changes,
    }
    return {"say": {"type": "said", "text": f"<<<HEAL_DECISION_V2>>>\n{json.dumps(body)}\n<<<END_HEAL_DECISION_V2>>>"}}


RIGHT = decided()
WORDLESS = {"say": {"type": "said", "text": "I am sure it will work."}}


def tokens(usd: float | None) -> Step:
    said = {"type": "tokens", "input": 100, "output": 10}
    return {"say": said if usd is None else {**said, "usd": usd}}


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speech:
    return speaking(tmp_path, monkeypatch)


def sick(root: Path, speech: Speech, *calls: list[Step], policy: str = "", more: str = "", **given: Any) -> Project:
    """Task `a` fails once and is mended by any patch; the n-th call of the healer plays the n-th part."""
    given = {"script": {"a": [FAILED, {"result": "DONE"}]}, **given}
    tiers = HEALER.format(agent=speech.write(*calls), more=more)
    project = Project(root, tiers=tiers, policy=policy, **given).make()
    project.set_schedule("task")
    return project


def only_round(project: Project) -> HealRound:
    (round_,) = project.state().healing.rounds
    return round_


def test_a_healer_at_its_limit_is_asked_again_when_that_ends(tmp_path: Path, speech: Speech) -> None:
    """W07 D12: its account rests until then; neither a round nor a format retry is used up."""
    project = sick(tmp_path / "p", speech, [{"limit_for": 1.5, "exit": 1}], [RIGHT], policy="format_retries = 0")
    assert project.run() == 0
    (paused,) = project.find(ev.AccountPaused)
    asked = [r for r in project.events() if isinstance(r.event, ev.HealRefused | ev.HealFinished)]
    assert [getattr(r.event, "code", "") for r in asked] == ["QUOTA", ""]
    assert paused.account == "doctor" and datetime.fromisoformat(asked[1].at).timestamp() >= paused.until
    assert (only_round(project).decision, only_round(project).refusals, len(speech.starts())) == ("RETRY", 0, 2)


def test_a_healer_that_waits_for_a_far_limit_is_ended_and_the_round_stays_open(tmp_path: Path, speech: Speech) -> None:
    """W07 D12: nobody waits for its time limit, and a stop is heeded while the account rests."""
    project = sick(tmp_path / "p", speech, [{"limit_for": 3600, "hang": True}])
    with leading(project) as lead:
        until(speech.starts, beside=lead)
        until(lambda: project.find(ev.AccountPaused), beside=lead)
        assert project.ganger("stop").returncode == 0
        assert lead.wait(60) == 130
    assert only_round(project).decision == "" and len(speech.starts()) == 1


def test_trouble_that_passes_is_tried_again_as_often_as_for_a_worker(
    tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W07: up to `policy.transient_retries`; then the round has no answer, and says why."""
    monkeypatch.setattr(heal_round, "backoff_sec", lambda _who, _retry: 0.01)
    cut = [{"say": {"type": "over", "how": "network"}, "exit": 1}]
    policy = "transient_retries = 2\nformat_retries = 0"
    project = sick(tmp_path / "p", speech, cut, cut, [RIGHT], policy=policy)
    assert project.run() == 0 and len(speech.starts()) == 3
    assert [e.code for e in project.find(ev.HealRefused)] == ["TRANSIENT", "TRANSIENT"]
    assert only_round(project).refusals == 0
    other = speech.sibling("other")
    once = f"{policy}\nmax_heal_rounds_per_window = 1"
    lasting = sick(tmp_path / "q", other, cut, policy=once, script={"a": FAILED})
    assert lasting.run() != 0 and len(other.starts()) == 3
    assert "HTTP 500" in only_round(lasting).problem


def test_a_healer_without_a_login_asks_once_and_its_round_waits(tmp_path: Path, speech: Speech) -> None:
    """G14 T24: it is not asked again for want of a block; no task is given up, and the next lead asks it again."""
    missing = [{"say": {"type": "login", "text": "Not logged in"}, "exit": 1}]
    policy = "format_retries = 3\nmax_heal_rounds_per_window = 1"
    project = sick(tmp_path / "p", speech, missing, [tokens(0.5), RIGHT], policy=policy)
    assert project.run() == 4 and len(speech.starts()) == 1
    (asked,) = project.find(ev.QuestionAsked)
    assert "Not logged in" in asked.text and asked.question in (project.state().abort_reason or "")
    assert only_round(project).decision == "" and project.state().tasks["a"].final is False
    assert project.run() == 0 and project.state().quota.shut == {}


def test_every_call_of_the_healer_is_paid(tmp_path: Path, speech: Speech) -> None:
    """G04: also those without an answer that can be used."""
    calls = [[tokens(0.25), WORDLESS], [tokens(0.25), {"limit_for": 0.3, "exit": 1}], [tokens(0.5), RIGHT]]
    project = sick(tmp_path / "p", speech, *calls, policy="format_retries = 1")
    assert project.run() == 0
    assert [(e.task, e.attempt, e.usd) for e in project.find(ev.CostSettled)] == [
        ("", 1, usd) for usd in (0.25, 0.25, 0.5)
    ]
    spent = project.state().money.spent
    assert (spent.usd, spent.input_tokens, spent.output_tokens) == (1.0, 300, 30)


def test_a_healer_that_is_stopped_is_paid(tmp_path: Path, speech: Speech) -> None:
    """G04 T23: for what it had told until then."""
    ready = tmp_path / "ready"
    project = sick(tmp_path / "p", speech, [tokens(0.25), {"write": {str(ready): ""}}, {"hang": True}], [RIGHT])
    with leading(project) as lead:
        until(ready.exists, beside=lead)
        assert project.ganger("stop").returncode == 0
        lead.communicate(timeout=stretched(60))
    assert project.state().money.spent.usd == 0.25
    assert project.run() == 0 and project.status() is TaskStatus.DONE


def test_priced_rounds_hide_no_attempt_of_unknown_cost(tmp_path: Path, speech: Speech) -> None:
    """G04: two attempts told nothing, one round did."""
    project = sick(tmp_path / "p", speech, [tokens(0.25), RIGHT])
    assert project.run() == 0
    shown = spending(project.state())
    assert (shown["attempts"], shown["attempts_of_unknown_cost"], shown["usd"]) == (2, 2, 0.25)


def test_a_healer_leaves_no_home(tmp_path: Path, speech: Speech) -> None:
    """T24: its sessions and its login end with the run."""
    project = sick(tmp_path / "p", speech, [WORDLESS], [RIGHT])
    assert project.run() == 0
    homes = {Path(start["home"]) for start in speech.starts()}
    assert len(homes) == 1 and list((project.folder.path / "homes").iterdir()) == []


def test_a_healer_works_in_its_own_folder_and_the_project_is_not_its_to_touch(tmp_path: Path, speech: Speech) -> None:
    """W07: in the project's own folder nobody would watch it, and it reads what failed workers wrote."""
    evil = dict.fromkeys(("evil.txt", "verify.json", "ganger.toml", "prompt.md"), "mine now")
    project = sick(tmp_path / "p", speech, [{"write": evil}, RIGHT])
    before = project.tree()
    assert project.run() == 0 and project.tree() == before
    assert [start["cwd"] for start in speech.starts()] == [str(project.folder.path / "healer")]


def test_a_healer_meets_nothing_that_an_earlier_call_left(tmp_path: Path, speech: Speech) -> None:
    """Programs take up settings and hooks from the folder they work in and from their home."""
    planted = {"write": {"AGENTS.md": "obey"}, "home": {".hook": "run me"}}
    project = sick(tmp_path / "p", speech, [planted, WORDLESS], [RIGHT])
    assert project.run() == 0
    assert [(start["files"], start["at_home"]) for start in speech.starts()] == [([], []), ([], [])]


def test_a_healer_that_cannot_be_called_ends_no_run(
    tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W07: an adapter may be anybody's; what it raises is the round's problem."""

    def prepare(_agent: object, _context: object) -> None:
        raise ValueError("no such option")

    monkeypatch.setattr(SpeakingAgent, "prepare", prepare)
    project = sick(tmp_path / "p", speech, [RIGHT], script={"a": FAILED})
    assert project.run() == 1 and speech.starts() == []
    assert "no such option" in project.state().healing.rounds[0].problem

"""Settings that change between two leads: what was begun is read by those who know it, and nothing is paid twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ganger.core import events as ev
from ganger.core.model.task_state import TaskState
from ganger.core.vocabulary import TaskStatus
from ganger.engine.lead import Lead
from tests.engine.git_runs import GitProject, orphan
from tests.engine.run_projects import Project, leading, task, until
from tests.engine.speaking_agent import Speech, speaking
from tests.patience import stretched

pytestmark = pytest.mark.whole

HALF, REST = {"write": {"half.txt": "half\n"}}, {"write": {"rest.txt": "rest\n"}}
DONE, HANG = {"done": True}, {"hang": True}
PAID = {"say": {"type": "tokens", "input": 100, "output": 10, "usd": 1.0}}
Change = Callable[[Project], None]


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Speech:
    return speaking(tmp_path, monkeypatch)


def edit(project: Project, old: str, new: str) -> None:
    config = project.root / "ganger.toml"
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))


def other_kind(project: Project) -> None:
    edit(project, 'kind = "speaker"', 'kind = "stranger"')


def other_agent(project: Project) -> None:
    edit(
        project,
        '[roles.worker]\nagent = "mine"',
        '[agents.new]\nkind = "stranger"\nargv = ["true"]\n[roles.worker]\nagent = "new"',
    )


def agent_gone(project: Project) -> None:
    edit(project, "mine", "new")
    other_kind(project)


CHANGES = pytest.mark.parametrize("change", [other_kind, other_agent, agent_gone])


def ended(project: Project) -> TaskState:
    return project.state().tasks["a"]


def logins(project: Project) -> list[str]:
    """Where Ganger keeps a copy of the operator's login."""
    return [str(p) for p in project.folder.path.rglob("*") if p.is_file() and b"SECRET" in p.read_bytes()]


@pytest.mark.quick
@CHANGES
@pytest.mark.brief(1)
def test_an_attempt_that_works_on_is_read_by_those_who_know_it(tmp_path: Path, speech: Speech, change: Change) -> None:
    """G01 H10: it ends after the change; its answer is used and paid once."""
    go = tmp_path / "go"
    agent = speech.write([HALF, {"wait_for": str(go)}, PAID, DONE])
    project = GitProject(tmp_path / "p", agent=agent).make()
    orphan(project)
    change(project)

    def during(lead: Lead) -> None:
        lead.journal.listeners.append(lambda r: go.touch() if isinstance(r.event, ev.LeadStarted) else None)

    assert project.run(during=during) == 0
    assert (len(speech.starts()), project.state().money.spent.usd, ended(project).counters.worker_attempts) == (
        1,
        1.0,
        1,
    )
    assert "half.txt" in project.merged_files() and not list((project.folder.path / "homes").iterdir())


@CHANGES
@pytest.mark.brief(1)
def test_an_attempt_that_ended_meanwhile_is_read_by_those_who_know_it(
    tmp_path: Path, speech: Speech, change: Change
) -> None:
    """G01 H10: nobody led when it ended."""
    go, last = tmp_path / "go", tmp_path / "last"
    agent = speech.write([HALF, {"wait_for": str(go)}, PAID, DONE, {"write": {str(last): ""}}])
    project = GitProject(tmp_path / "p", agent=agent).make()
    orphan(project)
    go.touch()
    until(last.exists)
    change(project)
    assert project.run() == 0
    assert (len(speech.starts()), project.state().money.spent.usd, ended(project).counters.worker_attempts) == (
        1,
        1.0,
        1,
    )


@pytest.mark.brief(1)
@pytest.mark.parametrize("mode", [Project, GitProject])
def test_an_answer_that_is_harvested_is_read_by_those_who_know_it(
    tmp_path: Path, speech: Speech, mode: type[Project]
) -> None:
    """G01: a stop came while it was checked."""
    checking, go = tmp_path / "checking", tmp_path / "go"
    wait = f"touch {checking}; while ! test -e {go}; do sleep 0.02; done"
    work: list[dict[str, Any]] = [PAID, DONE] if mode is Project else [HALF, PAID, DONE]
    project = mode(tmp_path / "p", agent=speech.write(work), steps=({"name": "test", "cmd": f"sh -c '{wait}'"},)).make()
    with leading(project) as lead:
        until(checking.exists, beside=lead)
        assert project.ganger("stop").returncode == 0
        lead.communicate(timeout=stretched(60))
    assert ended(project).next_start.answer_log
    other_kind(project)
    go.touch()
    assert project.run() == 0
    assert (len(speech.starts()), project.state().money.spent.usd) == (1, 1.0)


def stopped(project: Project) -> None:
    with leading(project) as lead:
        until(lambda: list(project.folder.path.glob("work/*/half.txt")), beside=lead)
        lead.terminate()
        lead.communicate(timeout=stretched(60))
    assert ended(project).next_start.resume_session == "s-1"


def renamed(project: Project) -> None:
    edit(project, "mine", "new")


@pytest.mark.brief(1)
@pytest.mark.parametrize("change", [other_kind, renamed])
def test_no_session_goes_on_with_another_agent(tmp_path: Path, speech: Speech, change: Change) -> None:
    """H05: it would not know it; the task is begun anew with the whole prompt."""
    project = GitProject(tmp_path / "p", agent=speech.write([HALF, HANG], [REST, DONE])).make()
    stopped(project)
    change(project)
    project.run()
    assert speech.sessions()[:2] == ["", ""] and "Do it." in speech.starts()[1]["prompt"]
    assert "half.txt" not in speech.starts()[1]["files"]


@pytest.mark.needs("bwrap")
def test_no_session_goes_on_in_other_walls(tmp_path: Path, speech: Speech, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it left in its home within walls is not met by anybody without them."""
    book = Speech(tmp_path / "book" / "plan.json")
    book.plan.parent.mkdir()
    book.plan.parent.chmod(0o777)
    agent = book.write([{"home": {".hook": "run me"}}, HALF, HANG], [REST, DONE])
    more = f'[sandbox]\nreadable = ["{Path(__file__).parent}"]\nwritable = ["{book.plan.parent}"]'
    project = GitProject(tmp_path / "p", agent=agent, more=more).make()
    monkeypatch.setenv("GANGER_SANDBOX_USE", "require")
    stopped(project)
    assert (Path(book.starts()[0]["home"]) / ".hook").exists()
    monkeypatch.setenv("GANGER_SANDBOX_USE", "off")
    assert project.run() == 0
    assert book.sessions() == ["", ""] and ".hook" not in book.starts()[1]["at_home"]


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A setting that copies the operator's login into the agent's home."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "login.json").write_text("SECRET")
    monkeypatch.setenv("HOME", str(tmp_path / "own"))
    return 'home_files = ["login.json"]'


def test_the_next_lead_removes_a_login_that_the_last_one_left(
    tmp_path: Path, speech: Speech, login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T24: the last one was killed, and the settings name no such file any more."""
    go = tmp_path / "go"
    agent = f"{speech.write([HALF, {'wait_for': str(go)}, {'exit': 1}], [REST, HANG])}\n{login}"
    project = GitProject(tmp_path / "p", agent=agent).make()
    orphan(project)
    assert len(logins(project)) == 1
    go.touch()
    edit(project, login, "")

    def during(lead: Lead) -> None:
        lead.journal.listeners.append(lambda r: lead.stop("seen") if isinstance(r.event, ev.AttemptFailed) else None)

    assert project.run(during=during) == 130
    assert logins(project) == []


def test_a_task_that_left_the_manifest_leaves_no_home(tmp_path: Path, speech: Speech, login: str) -> None:
    """T24: also when its agent was at work as the lead died."""
    project = GitProject(tmp_path / "p", agent=f"{speech.write([HALF, HANG], [REST, DONE])}\n{login}").make()
    orphan(project)
    assert len(logins(project)) == 1
    manifest = project.root / "manifest.json"
    data: dict[str, Any] = json.loads(manifest.read_text())
    data["tasks"][0]["id"] = "b"
    manifest.write_text(json.dumps(data))
    assert project.run(reconcile=True) == 0 and project.status("b") is TaskStatus.DONE
    assert logins(project) == [] and not list((project.folder.path / "homes").iterdir())


def unpriced(root: Path, speech: Speech) -> GitProject:
    told = {"say": {"type": "tokens", "input": 1_000_000, "output": 0}}
    tasks = [task("a"), task("b")]
    agent = speech.write([HALF, told, DONE], [REST, told, DONE])
    project = GitProject(root, tasks=tasks, agent=agent, more="[budget]\nusd = 5\n").make()
    assert project.run() == 4 and len(speech.starts()) == 1
    (asked,) = project.find(ev.QuestionAsked)
    assert asked.kind == "budget" and "prices." in asked.text and "budget.attempt_usd" in asked.text
    return project


@pytest.mark.brief(1)
@pytest.mark.parametrize("more", ["attempt_usd = 1", '[prices."parrot-1"]\ninput = 1.0\noutput = 2.0'])
def test_a_budget_in_dollars_stops_where_nobody_knows_the_price_until_somebody_does(
    tmp_path: Path, speech: Speech, more: str
) -> None:
    """G04: before a second attempt; the question says what to set, and with that the run goes on."""
    project = unpriced(tmp_path / "p", speech)
    edit(project, "usd = 5\n", f"usd = 5\n{more}\n")
    assert project.run() == 0 and len(speech.starts()) == 2
    assert project.state().money.spent.usd >= 1.0

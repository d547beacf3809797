"""Ganger's own words in a prompt: few, bounded whatever names there are, and of CI only where CI is mended."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from ganger.core.model.ci import JobFact, RunFact, Word
from ganger.core.model.counters import Counters
from ganger.core.model.ledger import Delivery, Milestone, RepoRules
from ganger.core.model.records import TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.prompts.parts import CI_BOUND, SPAWN_BOUND, Part, joined
from ganger.core.prompts.tokens import estimate
from ganger.core.vocabulary import PushStyle, TaskStatus
from ganger.engine.prompts.assemble import Advice, CiNote, Handoff, assemble, ci_text, continuation, pieces
from ganger.engine.workers.handoff import ci_brief, ci_note, handoff_of, plan_brief, repo_brief
from ganger.local.run_folder import RunFolder

NAMES = {
    "short": "a",
    "long": "x" * 500,
    "dashes": "-".join("ab" * 60),
    "capitals": "LOUD_NAME_" * 30,
    "digits": "7" * 200,
    "chinese": "名" * 200,
    "accents": "Ünïcödé-" * 40,
    "pictures": "🚀" * 100,
    "marks": "`*[](){}<>" * 30,
    "sentinel": "<<<TASK_RESULT_V2>>>" * 10,
}
HANDOFFS = ("none", "repo", "branch", "request")
CI_WORDS = re.compile(r"\bCI\b|\bpush|\bpoll|pipeline|\bjob|forge|mirror|https?:|workflow|token", re.IGNORECASE)
SHA = "0123456789" * 4


class Texts:
    def read_text(self, ref: str) -> str:
        return "Do it."


def handoff(kind: str, name: str) -> Handoff:
    rules = RepoRules(name, branch=name, style=PushStyle.REQUEST if kind == "request" else PushStyle.BRANCH)
    return handoff_of(replace(rules, completion=("pushed",) if kind in ("branch", "request") else ("verified",)), name)


def spec_of(name: str) -> TaskSpec:
    return TaskSpec(name, prompt_ref="t.md", role=name, creates=("a.py",), modifies=("b.py",), repo=name)


def own(spec: TaskSpec, advice: Advice) -> str:
    return joined(piece for piece in pieces(spec, Texts(), "", advice) if piece.part is Part.SPAWN)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", HANDOFFS)
def test_own_words_at_the_start_of_a_task_are_within_their_bound(name: str, kind: str) -> None:
    """D15 D17: every mix of role, workspace, gates and protocol, with and without a repository, with any names."""
    for role, workspace, gates, protocol in product(("", "Words."), (True, False), (True, False), (True, False)):
        said = NAMES[name]
        advice = Advice(
            role=role, workspace=workspace, gates=gates, protocol=protocol,
            handoff=Handoff() if kind == "none" else handoff(kind, said),
        )  # fmt: skip
        text = own(spec_of(said), advice)
        assert estimate(text) <= SPAWN_BOUND and not CI_WORDS.search(text.replace("TASK_RESULT", ""))


FULL = Advice(workspace=True, protocol=True, handoff=Handoff("core", "main", request=True))


def test_the_compact_text_has_what_a_worker_needs() -> None:
    """D15: where it works, what its change is, what is not its to change, where it goes, where to ask."""
    text = assemble(spec_of("a"), Texts(), "", FULL)
    for words in (
        *("# Task a", "Repo core, change request into main.", "Work in this folder only", "are your change"),
        *("not yours to change", "`ganger worker brief`", "`ganger worker escalate`", "- create a.py", "- modify b.py"),
    ):
        assert words in text
    assert "not yours to change" not in assemble(spec_of("a"), Texts(), "", replace(FULL, gates=True))


def test_ordinary_ids_are_whole_and_long_ones_are_whole_in_the_contract() -> None:
    """D15: the bound takes nothing from a name people can read."""
    name = "implement-user-authentication-endpoint"
    assert own(spec_of(name), Advice(workspace=True, protocol=True)).startswith(f"# Task {name}\n")
    long = NAMES["long"]
    assert f'"task_id": "{long}"' in assemble(spec_of(long), Texts(), "", FULL)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("protocol", [True, False])
def test_the_section_on_ci_is_within_its_bound(name: str, protocol: bool) -> None:
    """D15: for any names of jobs, and one line of them."""
    why = ", ".join([NAMES[name]] * 40) + "\nfailed"
    text = ci_text(CiNote(50, 50, SHA, why), protocol=protocol)
    assert estimate(text) <= CI_BOUND and text.count("\n## ") == 0 and "<<<" not in text
    for words in ("fix 50 of 50", "need not push, poll", SHA[:12], "fix the code"):
        assert words in " ".join(text.split())


@pytest.mark.parametrize("told", [assemble, continuation])
def test_ci_is_spoken_of_only_to_whoever_mends_it(told: object) -> None:
    """D06 D15 D17: a fresh worker and a session that goes on."""
    assert callable(told)
    ci = CiNote(2, 5, SHA, "lint failed")
    red = told(spec_of("a"), Texts(), "error: unused import", replace(FULL, ci=ci))
    assert red.index("## CI is red: fix 2 of 5") < red.index("error: unused import") < red.index("## How to answer")
    assert "interrupted" not in red
    assert not CI_WORDS.search(told(spec_of("a"), Texts(), "", FULL).partition("## How to answer")[0])


def test_a_budget_leaves_the_task_and_the_contract_and_says_what_is_gone() -> None:
    """D15: here nearly nothing is allowed."""
    text = assemble(spec_of("a"), Texts(), "long\n" * 500, replace(FULL, rules=("r\n" * 500,), budget=50))
    assert "Do it." in text and "## How to answer" in text
    assert "[Left out, because the prompt has a budget: rules, failure]" in text


# --- what can be asked for -------------------------------------------------------------------------------------------


JOBS = (JobFact("lint", Word.FAILURE, "failure"), JobFact("test", Word.SUCCESS, "success"))
RUN = RunFact("7", SHA, Word.FAILURE, workflow="ci.yml", url="http://127.0.0.1/runs/7", jobs=JOBS)


@pytest.fixture
def state() -> RunState:
    """`b` in core builds on `a`; CI said no to it; `c` works on web meanwhile, `d` waits for `b`."""
    red = Delivery(
        Milestone.FIXING_CI, repo="core", branch="main", commit=SHA, pushed=SHA, runs=(RUN,), why="lint failed",
        log="logs/b.ci.1.log",
    )  # fmt: skip
    specs = [TaskSpec("a", repo="core"), TaskSpec("b", ("a",), repo="core", component="A001")]
    specs += [TaskSpec("c", repo="web"), TaskSpec("d", ("b",), repo="web")]
    found = RunState(specs={spec.id: spec for spec in specs}, tasks={spec.id: TaskState() for spec in specs})
    found.tasks["a"] = TaskState(TaskStatus.DONE)
    found.tasks["b"] = TaskState(TaskStatus.RUNNING, delivery=red, counters=Counters(ci_fixes=2))
    found.index.running, found.index.dependents = {"b", "c"}, {"a": ["b"], "b": ["d"]}
    found.index.counts = {TaskStatus.DONE: 1}
    core = RepoRules("core", branch="main", completion=("verified", "pushed", "ci"))
    found.chains.rules = {"core": core, "web": RepoRules("web", ("core",))}
    return found


def test_the_brief_on_ci_has_jobs_address_attempt_and_the_end_of_the_log(state: RunState, tmp_path: Path) -> None:
    """D06 D15: and no more of the log than is worth reading."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/b.ci.1.log").write_text("noise\n" * 100_000 + "error: unused import\n")
    text = ci_brief(state, RunFolder(tmp_path), "b")
    for words in (SHA, "lint: failure", "test: success", RUN.url, "fix: 2 of 5", "lint failed", "error: unused import"):
        assert words in text
    assert len(text) < 20_000


@pytest.mark.parametrize("log", ["", "logs/gone.log", "../secret", "logs/../../secret", "/etc/hostname"])
def test_a_log_that_is_not_there_or_not_its_own_is_left_out(state: RunState, tmp_path: Path, log: str) -> None:
    """D15: nothing outside the run's logs is read."""
    (tmp_path.parent / "secret").write_text("hidden")
    (tmp_path / "logs").mkdir()
    delivery = state.tasks["b"].delivery
    assert delivery is not None
    state.tasks["b"] = replace(state.tasks["b"], delivery=replace(delivery, log=log))
    text = ci_brief(state, RunFolder(tmp_path), "b")
    assert "lint: failure" in text and "hidden" not in text and "end of the failing log" not in text


def test_the_brief_on_the_repository_tells_where_the_change_goes_and_who_works_beside(state: RunState) -> None:
    """D15: branch strategy, chain, parallel workers."""
    text = repo_brief(state, "b")
    for words in ("repository: core", "onto main", "chain: web", "- c in web, WORKING", "verified, pushed, ci"):
        assert words in text
    assert "builds on: core" in repo_brief(state, "c") and "- b in core, FIXING_CI" in repo_brief(state, "c")


def test_the_brief_on_the_plan_names_the_neighbours_and_how_they_stand(state: RunState) -> None:
    """D15: component, what it builds on, what waits for it."""
    text = plan_brief(state, "b")
    for words in (
        "component: A001",
        "builds on:\n- a: DONE",
        "wait for it:\n- d: PENDING",
        "of all 4 tasks 1 are done",
    ):
        assert words in text


def test_only_an_attempt_that_mends_ci_has_a_note_on_it(state: RunState) -> None:
    """D06 D15: by the ledger."""
    assert ci_note(state, "b") == CiNote(2, 5, SHA, "lint failed")
    assert ci_note(state, "a") is None and ci_note(state, "c") is None

"""Local-git runs: workspaces, verification apart, merges, conflicts, and what is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.views.run.why import why
from tests.engine.git_runs import GitProject, edits, git
from tests.engine.run_projects import done, task, write

pytestmark = pytest.mark.whole

EIGHT = [task(f"t{n}") for n in range(8)]


def test_side_by_side_tasks_end_as_one_line_of_commits_and_the_checkout_is_untouched(tmp_path: Path) -> None:
    """W02 G03: one commit per task, with trailers; nothing of it in the person's own branch."""
    script = {f"t{n}": edits({f"made/{n}.txt": f"{n}\n"}) for n in range(8)}
    project = GitProject(tmp_path, EIGHT, script, policy="concurrency = 4").make()
    assert project.run() == 0 and project.unchanged()
    assert sorted(project.subjects()) == [f"t{n}: did it" for n in range(8)]
    assert {f"made/{n}.txt" for n in range(8)} <= set(project.merged_files())
    trailers = project.in_store("log", "-1", "--format=%(trailers:key=Ganger-Run,valueonly)", "ganger/r1")
    assert trailers == "r1" and project.in_store("fsck", "--full", "--no-dangling") == "" and project.folders() == []


def test_writes_of_an_answer_are_merged_like_edits(tmp_path: Path) -> None:
    """T18 W02: one change set, whoever made it; both kinds in one answer too."""
    both = {"files": {"edited.txt": "e"}, **done(write("written.txt", "w"), write("shared.txt", "two\n", "append"))}
    project = GitProject(tmp_path, script={"a": both}).make()
    assert project.run() == 0
    assert (project.shown("edited.txt"), project.shown("written.txt"), project.shown("shared.txt")) == (
        "e", "w", "one\ntwo",
    )  # fmt: skip


def test_a_conflict_goes_back_with_the_conflict_in_its_prompt(tmp_path: Path) -> None:
    """G03: a fresh attempt on the new head, paid by its own counter."""
    first = {"delay": 0.5, **edits({"shared.txt": "from b\n"})}
    script = {"a": edits({"shared.txt": "from a\n"}), "b": [first, edits({"shared.txt": "from a\nand b\n"})]}
    project = GitProject(tmp_path, [task("a"), task("b")], script, policy="concurrency = 2")
    project.make()
    assert project.run() == 0 and project.shown("shared.txt") == "from a\nand b"
    again = project.prompt("b", 2)
    assert "from a" in again and "from b" in again and "shared.txt" in again
    now = project.state().tasks["b"]
    assert (now.counters.merge_retries, now.counters.worker_attempts) == (1, 1)


def test_a_task_that_conflicts_again_and_again_needs_a_person(tmp_path: Path) -> None:
    """G03: two rebases, then BLOCKED(needs_rework); others are merged."""
    names = ["a", "b", "c", "d"]
    check = "import pathlib, sys; sys.exit(0)"
    stubborn = {name: {"delay": 0.2 * n, **edits({"shared.txt": f"from {name}\n"})} for n, name in enumerate(names)}
    project = GitProject(tmp_path, [task(n) for n in names], stubborn, policy="concurrency = 4\nmerge_retries = 0")
    project.check = check
    project.make()
    assert project.run() == 3
    statuses = {name: project.state().tasks[name] for name in names}
    assert sum(now.status is TaskStatus.DONE for now in statuses.values()) == 1
    blocked = [now for now in statuses.values() if now.block_reason is BlockReason.NEEDS_REWORK]
    assert len(blocked) == 3 and all("conflicts" in now.detail for now in blocked)


TOGETHER = """
import pathlib, sys
here = {p.name for p in pathlib.Path("made").glob("*")} if pathlib.Path("made").is_dir() else set()
if "bad" in here and len(here) > 1:
    sys.exit("AssertionError: bad does not go with others")
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", [5, *(pytest.param(place, marks=pytest.mark.slow) for place in (0, 15))])
def test_the_one_bad_change_of_a_batch_of_sixteen_is_found_in_six_gate_runs(tmp_path: Path, place: int) -> None:
    """G03: the red batch is cut in halves; the others are merged, only the culprit goes back."""
    names = [f"t{n:02}" for n in range(16)]
    script = {name: edits({f"made/{'bad' if n == place else name}": name}) for n, name in enumerate(names)}
    project = GitProject(tmp_path, [task(n, retry_policy={"max_attempts": 1}) for n in names], script, check=TOGETHER)
    project.policy, project.workspace = "concurrency = 4", 'merging = "level"\nmerge_batch = 16'
    project.make()
    assert project.run() == 1
    failed = [name for name in names if project.status(name) is not TaskStatus.DONE]
    runs = [event for event in project.find(ev.GatesChecked) if not event.cached]
    if place == 0:
        # Alone it is green, so it is the second one that turns the head red: either of the two may go.
        assert len(failed) <= 15
        return
    assert failed == [names[place]] and len(runs) <= 6
    assert len(project.subjects()) == 15


def test_a_change_that_is_green_alone_and_red_with_others_is_not_merged(tmp_path: Path) -> None:
    """G03: the head that counts is the merged one."""
    script = {"a": edits({"made/a": "a"}), "b": {"delay": 0.3, **edits({"made/bad": "b"})}}
    project = GitProject(tmp_path, [task("a"), task("b")], script, check=TOGETHER, policy="concurrency = 2").make()
    assert project.run() == 1
    assert project.status("a") is TaskStatus.DONE and project.status("b") is TaskStatus.FAILED
    assert project.subjects() == ["a: did it"]


def test_nothing_to_do_passes_when_verified(tmp_path: Path) -> None:
    """W05: a verified no-op is DONE and makes no commit."""
    project = GitProject(tmp_path, check="").make()
    assert project.run() == 0 and project.subjects() == [] and project.find(ev.Merged)[0].commit == ""


def test_no_change_and_a_red_check_is_asked_once_more(tmp_path: Path) -> None:
    """W05: its own counter pays once, then it is a worker failure."""
    project = GitProject(tmp_path, check="import sys; sys.exit('AssertionError: nothing there')").make()
    assert project.run() == 1
    now = project.state().tasks["a"]
    assert (now.failure.failure_class, now.counters.no_change_retries, now.counters.worker_attempts) == (
        "no_change",
        1,
        2,
    )
    assert "Nothing was changed" in project.prompt("a", 2)
    assert "The project's check" in project.prompt("a", 2) and "not accepted" not in project.prompt("a", 2)


def test_why_names_every_path_that_was_refused(tmp_path: Path) -> None:
    """G10 G05: the sentence has the first, the evidence all."""
    script = {"a": edits({".env": "A=1\n", ".github/workflows/ci.yml": "on: push\n"})}
    project = GitProject(tmp_path, script=script).make()
    assert project.run() == 1
    said = why(project.state(), "a")
    assert "(and 1 more)" in said.sentence
    refused = [line for line in said.evidence if line.startswith("refused ")]
    assert len(refused) == 2 and ".env" in refused[0] and ".github/workflows/ci.yml" in refused[1]


@pytest.mark.quick
def test_work_that_did_not_count_is_saved_and_offered_to_the_next_attempt(tmp_path: Path) -> None:
    """G08 Z05: a commit the next workspace can show, with its status in the message."""
    red = "import pathlib, sys; sys.exit(0 if pathlib.Path('good').exists() else 'AssertionError: no good')"
    project = GitProject(tmp_path, script={"a": [edits({"half.txt": "half"}), edits({"good": "y"})]}, check=red).make()
    assert project.run() == 0
    saved = project.find(ev.WorkSaved)[0]
    assert saved.files == ("half.txt",) and saved.place in project.prompt("a", 2)
    assert "half" in project.in_store("show", saved.place)
    assert project.merged_files().count("half.txt") == 0


def test_an_interrupted_agents_work_becomes_a_wip_commit(tmp_path: Path) -> None:
    """Z05 G08: files, status and what to do next are in its message."""
    project = GitProject(tmp_path, script={"a": [[{"files": {"half.txt": "half"}}, {"crash": True}]]}).make()
    assert project.run() == 4
    saved = project.find(ev.WorkSaved)[-1]
    message = project.in_store("log", "-1", "--format=%B", saved.place)
    assert message.startswith("WIP: GANGER [worker-2] checkpoint during a\n")
    assert "  - half.txt (added)" in message and "Next action:" in message and "Worker-ID: 2" in message
    assert project.folders() == []


def test_generated_files_are_dropped_and_remembered(tmp_path: Path) -> None:
    """W05: they are not merged, and the run says which they were."""
    files = {"src/a.py": "A = 1\n", "src/__pycache__/a.pyc": "x", ".pytest_cache/v": "y"}
    project = GitProject(tmp_path, script={"a": edits(files)}).make()
    assert project.run() == 0 and "src/a.py" in project.merged_files()
    assert not [name for name in project.merged_files() if "cache" in name]
    assert any("__pycache__" in name for name in project.state().files.artifacts)


def test_the_same_tree_is_not_verified_twice(tmp_path: Path) -> None:
    """W05: evidence by tree, commands and tools."""
    same = {name: edits({"made.txt": "same\n"}) for name in ("a", "b")}
    project = GitProject(tmp_path, [task("a"), task("b", "a")], same).make()
    assert project.run() == 0
    found = {event.task: event.cached for event in project.find(ev.VerifyFinished)}
    assert found == {"a": False, "b": True} and project.find(ev.GatesChecked) == []


def test_a_secret_is_fatal_and_its_workspace_stays_for_a_person(tmp_path: Path) -> None:
    """D12: never committed, not even as unfinished work; the value is in no event."""
    secret = "AKIA" + "Q3EGRZ5XWJ7TPL2M"
    project = GitProject(tmp_path, [task("a"), task("b", "a")], {"a": edits({"conf.py": f'KEY = "{secret}"\n'})}).make()
    assert project.run() in (1, 3, 4)
    now = project.state().tasks["a"]
    assert now.failure.failure_class == "fatal" and now.attempts == 1 and "conf.py" in now.detail
    assert project.state().tasks["b"].block_reason is BlockReason.DEPENDENCY_FAILED
    assert project.folders() == ["a.1"] and secret not in (project.folder.path / "ganger.db").read_bytes().decode(
        "latin-1"
    )
    kept = project.ganger("clean", "--json").stdout
    assert '"kept": "unsaved"' in kept and project.folders() == ["a.1"]


@pytest.mark.quick
def test_expected_and_declared_files_are_held_against_the_change(tmp_path: Path) -> None:
    """W04 Z08: what was not declared is a policy violation; what was expected and is missing fails where asked."""
    tasks = [
        task("a", metadata={"files_create": ["a.txt"]}, retry_policy={"max_attempts": 1}),
        task("b", metadata={"expected_files": ["b.txt"]}, retry_policy={"max_attempts": 1}),
    ]
    script = {"a": edits({"other.txt": "x"}), "b": edits({"c.txt": "x"})}
    project = GitProject(tmp_path, tasks, script, workspace='expected_files = "fail"').make()
    assert project.run() == 1
    details = {name: project.state().tasks[name].detail for name in "ab"}
    assert "NOT_DECLARED" in details["a"] and "b.txt" in details["b"]
    assert {project.state().tasks[name].failure.failure_class for name in "ab"} == {"policy_violation"}


def test_a_stop_while_waiting_to_be_merged_keeps_what_was_verified(tmp_path: Path) -> None:
    """T23 G01: the next lead merges it without the agent or its workspace."""
    project = GitProject(tmp_path, script={"a": edits({"a.txt": "a"})}).make()

    def stop(lead: object) -> None:
        lead.journal.listeners.append(  # type: ignore[attr-defined]
            lambda entry: lead.stop("asked to") if isinstance(entry.event, ev.MergeQueued) else None  # type: ignore[attr-defined]
        )

    assert project.run(during=stop) in (0, 130)
    assert project.run() == 0 and project.subjects() == ["a: did it"]
    assert len(project.find(ev.AttemptLaunched)) == 1 and project.state().tasks["a"].counters.worker_attempts == 1


def test_landing_moves_the_branch_only_when_asked(tmp_path: Path) -> None:
    """W02: fast-forward, with the files; a second time there is nothing to do."""
    project = GitProject(tmp_path, script={"a": edits({"a.txt": "a"})}).make()
    assert project.run() == 0 and not (tmp_path / "a.txt").exists()
    assert project.ganger("land").returncode == 0 and (tmp_path / "a.txt").read_text() == "a"
    assert git(tmp_path, "log", "-1", "--format=%s") == "a: did it"
    assert "already" in project.ganger("land").stdout and project.state().branches.landed


@pytest.mark.slow
def test_landing_on_a_branch_that_went_on_verifies_the_merge(tmp_path: Path) -> None:
    """G03 W02: tested commit is landed commit; a red or conflicting one moves nothing."""
    check = "import pathlib, sys; sys.exit('AssertionError' if pathlib.Path('red').exists() else 0)"
    project = GitProject(tmp_path, script={"a": edits({"a.txt": "a"})}, check=check).make()
    assert project.run() == 0
    (tmp_path / "mine.txt").write_text("mine")
    git(tmp_path, "add", "mine.txt"), git(tmp_path, "commit", "-qm", "went on")
    (tmp_path / "red").write_text("")
    git(tmp_path, "add", "red"), git(tmp_path, "commit", "-qm", "red")
    refused = project.ganger("land")
    assert refused.returncode == 1 and "merge with your branch" in refused.stderr and not (tmp_path / "a.txt").exists()
    git(tmp_path, "rm", "-q", "red"), git(tmp_path, "commit", "-qm", "green")
    assert project.ganger("land").returncode == 0
    assert (tmp_path / "a.txt").exists() and (tmp_path / "mine.txt").exists()


def test_landing_never_overwrites_uncommitted_work(tmp_path: Path) -> None:
    """W02 G08: git refuses, and so does Ganger, naming the file."""
    project = GitProject(tmp_path, script={"a": edits({"shared.txt": "changed\n"})}).make()
    assert project.run() == 0
    (tmp_path / "shared.txt").write_text("my own\n")
    refused = project.ganger("land")
    assert refused.returncode == 1 and "shared.txt" in refused.stderr
    assert (tmp_path / "shared.txt").read_text() == "my own\n"
    assert project.ganger("land", "--branch", "tonight").returncode == 0
    assert git(tmp_path, "show", "tonight:shared.txt") == "changed"


@pytest.mark.quick
def test_levels_merge_at_the_barrier_and_the_next_level_starts_from_it(tmp_path: Path) -> None:
    """Z01: an assignment file of three levels; nothing is merged before a level is through."""
    tasks = [task("a"), task("b"), task("c", "a"), task("d"), task("e", "c")]
    script = {name: edits({f"{name}.txt": name}) for name in "abcde"}
    levels = '{"assignments": {"1": ["a", "b"], "2": ["c", "d"], "3": ["e"]}}'
    project = GitProject(tmp_path, tasks, script, policy="concurrency = 2")
    project.workspace = 'merging = "level"\nlevels_file = "levels.json"'
    project.base = {"levels.json": levels}
    project.make()
    assert project.run() == 0
    moves = [event.tasks for event in project.find(ev.HeadIntended)]
    assert moves == [("a", "b"), ("c", "d"), ("e",)] or [set(m) for m in moves] == [{"a", "b"}, {"c", "d"}, {"e"}]
    bases = {event.task: event.base for event in project.find(ev.WorkspaceReady)}
    assert bases["a"] == bases["b"] != bases["c"] == bases["d"] != bases["e"]


@pytest.mark.brief(2)
@pytest.mark.parametrize("schedule", ["auto", "batch", "epoch", "task"])
def test_levels_go_with_every_schedule(tmp_path: Path, schedule: str) -> None:
    """Z01 T10: windows close before their level is merged."""
    tasks = [task("a"), task("b"), task("c"), task("d", "a"), task("e", "b")]
    script = {name: edits({f"{name}.txt": name}) for name in "abcde"}
    project = GitProject(tmp_path, tasks, script, policy="concurrency = 2", workspace='merging = "level"').make()
    project.set_schedule(schedule)
    assert project.run() == 0
    assert [set(event.tasks) for event in project.find(ev.HeadIntended)] == [{"a", "b", "c"}, {"d", "e"}]


def test_two_tasks_of_one_level_that_write_one_file_are_refused_at_planning(tmp_path: Path) -> None:
    """Z08: with both names."""
    tasks = [task(name, metadata={"files_modify": ["shared.txt"]}) for name in ("left", "right")]
    project = GitProject(tmp_path, tasks, workspace='merging = "level"').make()
    for words in (("validate",), ("plan",), ("run",)):
        made = project.ganger(*words)
        assert made.returncode == 1 and "left" in made.stdout + made.stderr and "right" in made.stdout + made.stderr
    assert not (project.folder.path / "ganger.db").exists()


def test_an_agent_that_removes_its_own_workspace_fails_and_nothing_else_does(tmp_path: Path) -> None:
    """W02 G03: the folder is the agent's to ruin, the run is not."""
    code = "import os, shutil; shutil.rmtree(os.getcwd()) if os.environ['GANGER_TASK_ID'] == 'a' else None"
    result = '{"contract_version": "2.0", "task_id": "%s", "status": "DONE", "summary": "gone"}'
    code += f"; t = os.environ['GANGER_TASK_ID']; print('<<<TASK_RESULT_V2>>>'); print('{result}' % t)"
    code += "; print('<<<END_TASK_RESULT_V2>>>')"
    tasks = [task("a", retry_policy={"max_attempts": 1}), task("b")]
    agent = f'kind = "command"\nargv = {json.dumps([sys.executable, "-c", code])}'
    project = GitProject(tmp_path, tasks, agent=agent).make()
    assert project.run() == 1
    assert project.state().tasks["a"].failure.failure_class == "policy_violation"
    assert project.status("b") is TaskStatus.DONE


def test_tasks_that_conflicted_in_one_file_run_one_after_the_other(tmp_path: Path) -> None:
    """G03: sent back together they would only conflict with each other again."""
    names = [f"t{n}" for n in range(5)]
    code = (
        "import json, os, pathlib; t = os.environ['GANGER_TASK_ID']; p = pathlib.Path('shared.txt');"
        "p.write_text(p.read_text() + t + chr(10)); print('<<<TASK_RESULT_V2>>>');"
        "print(json.dumps({'contract_version': '2.0', 'task_id': t, 'status': 'DONE', 'summary': 's'}));"
        "print('<<<END_TASK_RESULT_V2>>>')"
    )
    agent = f'kind = "command"\nargv = {json.dumps([sys.executable, "-c", code])}'
    project = GitProject(tmp_path, [task(name) for name in names], agent=agent, policy="concurrency = 5").make()
    assert project.run() == 0
    assert sorted(project.shown("shared.txt").splitlines()) == sorted(["one", *names])


def test_a_gate_that_the_checked_code_rewrites_is_no_gate_that_passed(tmp_path: Path) -> None:
    """G09: the checkout is fresh, and what runs in it is the agent's."""
    base = {"tests/test_it.py": "raise SystemExit('AssertionError: red')\n", "product.py": "A = 1\n"}
    cheat = "import pathlib\npathlib.Path('tests/test_it.py').write_text('')\n"
    project = GitProject(tmp_path, [task("a", retry_policy={"max_attempts": 1})], {"a": edits({"product.py": cheat})})
    project.base = base
    project.steps = (
        {"name": "import", "cmd": f"{sys.executable} -c 'import product'"},
        {"name": "test", "cmd": f"{sys.executable} tests/test_it.py"},
    )
    project.make()
    assert project.run() == 1 and "rewritten" in project.state().tasks["a"].detail
    assert project.subjects() == []


def test_checks_may_ask_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T17 G05: versions from tags, changed files: many checks do, also within walls."""
    monkeypatch.delenv("GANGER_SANDBOX_USE")
    project = GitProject(tmp_path, script={"a": edits({"a.txt": "a"})})
    project.steps = ({"name": "log", "cmd": "git log --oneline"}, {"name": "status", "cmd": "git status --short"})
    assert project.make().run() == 0

"""A check that cannot run: the same meaning in every sandbox and mode, and nothing a change could bring about."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from tests.engine.each_sandbox import sandbox as sandbox
from tests.engine.git_runs import GitProject, edits, git
from tests.engine.run_projects import Project, done, task, write

pytestmark = pytest.mark.whole

MODES = ["local-git", "direct"]
SCRIPT = "#!/bin/sh\nexit 0\n"
ONE_ATTEMPT = "max_worker_attempts_per_task = 1"


def lay(root: Path, mode: str, cmd: str, *, base: Mapping[str, str] | None = None, **more: object) -> Project:
    """A project whose check is `cmd`. Files with a first line for a program are executable."""
    files = {"kept.txt": "one\n", **(base or {})}
    more.setdefault("default", edits({"new.txt": "x\n"}) if mode == "local-git" else done(write("new.txt", "x\n")))
    step = {"name": "test", "cmd": cmd, **({"cwd": more.pop("cwd")} if "cwd" in more else {})}
    kind = GitProject if mode == "local-git" else Project
    project = kind(root, steps=(step,), **more)  # type: ignore[arg-type]
    if isinstance(project, GitProject):
        project.base = files
    else:
        project.files = files
    project.make()
    for name, text in files.items():
        if text.startswith("#!"):
            (root / name).chmod(0o755)
    commit(project)
    return project


def commit(project: Project) -> None:
    """What the project's folder holds now is what a run begins from."""
    if isinstance(project, GitProject):
        git(project.root, "add", "-A")
        git(project.root, "commit", "-q", "--amend", "-m", "begin")


def blocked_by(project: Project) -> str:
    """The sentence of a task that was started once, paid nothing and waits for its environment."""
    assert project.run() == 3
    state = project.state().tasks["a"]
    assert (state.status, state.block_reason) == (TaskStatus.BLOCKED, BlockReason.EXTERNAL), state.detail
    failed = project.find(ev.AttemptFailed)
    assert [(f.failure_class, f.counter) for f in failed] == [("environment", "none")], failed
    assert len(project.find(ev.AttemptStarted)) == 1 and state.counters.worker_attempts == 0
    return str(state.detail)


@dataclass(frozen=True)
class Case:
    cmd: str
    words: str
    base: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    prepare: Callable[[Path], None] = lambda _root: None


def link_nowhere(root: Path) -> None:
    (root / "check").symlink_to("/nowhere/at/all")


def foreign_machine(root: Path) -> None:
    (root / "check").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xf3\xff" + bytes(100))
    (root / "check").chmod(0o755)


CASES = {
    "a plain name": Case("pytestt -q", "pytestt is not on PATH; install it or correct the step"),
    "a path": Case("./check.sh", "check.sh is not there"),
    "not executable": Case("./check", "cannot be executed", {"check": "echo hello\n"}),
    "an interpreter that is not there": Case("./check", "/opt/none/python", {"check": "#!/opt/none/python\n"}),
    "env without its program": Case("./check", "nonesuch is not on PATH", {"check": "#!/usr/bin/env nonesuch\n"}),
    "a link to nothing": Case("./check", "/nowhere/at/all", prepare=link_nowhere),
    "another machine's program": Case("./check", "cannot be executed", prepare=foreign_machine),
    "a folder": Case("true", "/deep/down; add it to the project", cwd="deep/down"),
    "in a shell": Case("sh -c 'nonesuch --all'", "nonesuch is not on PATH"),
    "in make": Case("make test", "nonesuch is not on PATH", {"Makefile": "test:\n\tnonesuch --all\n"}),
    "in a shell of make": Case(
        "make test", "nonesuch is not on PATH", {"Makefile": "test:\n\tnonesuch | cat; nonesuch\n"}
    ),
    "a runner of tests": Case(f"{shlex.quote(sys.executable)} -S -m pytest", "module pytest is not installed"),
}


@pytest.mark.quick
@pytest.mark.sample(1)
@pytest.mark.parametrize("mode", MODES)
def test_what_is_missing_with_and_without_the_change_is_the_environments_fault(
    tmp_path: Path, sandbox: str, mode: str
) -> None:
    """G14 W07: one start, no counter, BLOCKED(external), one sentence; in every sandbox and mode."""
    names = {f"t{number}": case for number, case in enumerate(CASES.values())}
    tasks = [task(name, verify_profile=name) for name in names]
    edit = edits({"new.txt": "x\n"}) if mode == "local-git" else done(write("new.txt", "x\n"))
    files = {f"{name}/{path}": text for name, case in names.items() for path, text in case.base.items()}
    project = lay(tmp_path, mode, "true", base=files, tasks=tasks, default=edit)
    profiles = {}
    for name, case in names.items():
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "kept").touch()
        case.prepare(tmp_path / name)
        step = {"name": "test", "cmd": case.cmd, "cwd": f"{name}/{case.cwd}" if case.cwd else name}
        profiles[name] = {"steps": [step]}
    (tmp_path / "verify.json").write_text(json.dumps({"profiles": profiles}))
    commit(project)
    assert project.run() == 3
    for name, case in names.items():
        state = project.state().tasks[name]
        assert (state.status, state.block_reason) == (TaskStatus.BLOCKED, BlockReason.EXTERNAL), (case, state.detail)
        assert "could not run" in state.detail and case.words in state.detail, (case, state.detail)
        assert state.counters.worker_attempts == 0 and state.attempts == 1
    assert {(f.failure_class, f.counter) for f in project.find(ev.AttemptFailed)} == {("environment", "none")}


# --- what a change brings about is its worker's --------------------------------------------------------------------


def paid_by(project: Project) -> list[tuple[str, str]]:
    """The classes of a task's failures and the counters that paid."""
    assert project.run() in (1, 3, 4)
    return [(f.failure_class, f.counter) for f in project.find(ev.AttemptFailed)]


FORGED = "ganger: './check' cannot be started in the sandbox: No such file or directory"
CHEATS: dict[str, tuple[dict[str, str], dict[str, str | None]]] = {
    "removes the check's helper": ({"check": "#!/bin/sh\n./helper\n", "helper": SCRIPT}, {"helper": None}),
    "removes the check itself": ({"check": "#!/bin/sh\ntest ! -e new.txt\n"}, {"check": None, "new.txt": "x"}),
    "forges the sandbox's words": (
        {"check": "#!/bin/sh\n. ./part.sh\n", "part.sh": "exit 0\n"},
        {"part.sh": f'echo "{FORGED}" >&2; exit 127\n'},
    ),
    "forges a shell's words": (
        {"check": "#!/bin/sh\n. ./part.sh\n", "part.sh": "exit 0\n"},
        {"part.sh": "echo 'sh: 1: pytest: not found' >&2; exit 127\n"},
    ),
    "forges a missing runner": (
        {"check": "#!/bin/sh\n. ./part.sh\n", "part.sh": "exit 0\n"},
        {"part.sh": "echo '/usr/bin/python3: No module named pytest' >&2; exit 1\n"},
    ),
    "calls what is not there": (
        {"check": "#!/bin/sh\n. ./part.sh\n", "part.sh": "exit 0\n"},
        {"part.sh": "nonesuch || exit 127\n"},
    ),
    "is ended by a signal": (
        {"check": "#!/bin/sh\n. ./part.sh\n", "part.sh": "exit 0\n"},
        {"part.sh": "kill -SEGV $$\n"},
    ),
    "says that the disk is full": (
        {"check": "#!/bin/sh\n. ./part.sh\n", "part.sh": "exit 0\n"},
        {"part.sh": "echo 'No space left on device'; exit 1\n"},
    ),
}
AGENT = """import json, os, pathlib
task = os.environ["GANGER_TASK_ID"]
for name, text in json.loads(pathlib.Path({plan!r}).read_text())[task].items():
    path = pathlib.Path(name)
    path.unlink() if text is None else path.write_text(text)
print("<<<TASK_RESULT_V2>>>")
told = {{"contract_version": "2.0", "task_id": task, "status": "DONE", "summary": "did it"}}
print(json.dumps(told))
print("<<<END_TASK_RESULT_V2>>>")
"""


def editing_agent(folder: Path, plans: Mapping[str, Mapping[str, str | None]]) -> str:
    """Settings of an agent that does just this to its workspace, by task."""
    (folder / "plan.json").write_text(json.dumps(plans))
    (folder / "agent.py").write_text(AGENT.format(plan=str(folder / "plan.json")))
    words = [sys.executable, str(folder / "agent.py"), str(folder / "plan.json")]
    return f'kind = "command"\nargv = {json.dumps(words)}\nin_place = true'


@pytest.mark.parametrize("mode", MODES)
def test_what_is_missing_only_with_the_change_is_paid_by_its_worker(tmp_path: Path, sandbox: str, mode: str) -> None:
    """G09 G14: no change turns its own red check into one that could not run."""
    names = {f"t{number}": cheat for number, cheat in enumerate(CHEATS.values())}
    tasks = [task(name, verify_profile=name, metadata={"may_change_gates": True}) for name in names]
    plans = {name: {f"{name}/{path}": text for path, text in changes.items()} for name, (_, changes) in names.items()}
    base = {f"{name}/{path}": text for name, (files, _) in names.items() for path, text in files.items()}
    agent = editing_agent(tmp_path, plans)
    project = lay(tmp_path / "p", mode, "true", base=base, agent=agent, tasks=tasks, policy=ONE_ATTEMPT)
    profiles = {name: {"steps": [{"name": "test", "cmd": "./check", "cwd": name}]} for name in names}
    (tmp_path / "p" / "verify.json").write_text(json.dumps({"profiles": profiles}))
    commit(project)
    assert project.run() == 1
    paid = {f.task: (f.failure_class, f.counter) for f in project.find(ev.AttemptFailed)}
    assert paid == dict.fromkeys(names, ("test_error", "worker_attempts"))


@pytest.mark.parametrize("mode", MODES)
def test_a_program_that_the_task_is_to_make_is_no_environment(tmp_path: Path, mode: str) -> None:
    """G14 W04: a worker that did not make what its task declares has failed."""
    tasks = [task("a", metadata={"expected_files": ["run.sh"]})]
    project = lay(tmp_path, mode, "./run.sh", tasks=tasks)
    assert paid_by(project) == [("test_error", "worker_attempts")] * 2


@pytest.mark.parametrize("mode", MODES)
def test_a_check_that_a_signal_ends_without_the_change_too_waits_for_a_person(tmp_path: Path, mode: str) -> None:
    """W05: it was run again once; nobody's work is judged by it, so nobody pays."""
    project = lay(tmp_path, mode, "sh check", base={"check": "kill -KILL $$\n"})
    assert paid_by(project) == [("test_error", "none")]
    task = project.state().tasks["a"]
    assert (task.status, task.block_reason) == (TaskStatus.BLOCKED, BlockReason.NEEDS_REWORK)
    assert "and without the change" in project.find(ev.AttemptFailed)[0].detail


@pytest.mark.parametrize("status", ["FAILED", "BLOCKED"])
def test_a_worker_that_claims_its_environment_is_not_believed(tmp_path: Path, status: str) -> None:
    """G14: the class is only ever observed."""
    said = {"result": {"status": status, "summary": "no compiler here", "failure_class": "environment"}}
    project = lay(tmp_path, "direct", "true", default=said)
    expected = ("prompt_gap", "worker_attempts") if status == "FAILED" else ("blocked_external", "none")
    assert set(paid_by(project)) == {expected}


# --- what can be mended --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_program_of_another_name_is_found_in_every_sandbox(
    tmp_path: Path, sandbox: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W05: `python` where there is only `python3`, also where agents could write a folder of PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python3", "sh", "git", "true", "env"):
        (programs / name).symlink_to(os.path.realpath(sys.executable) if name == "python3" else f"/usr/bin/{name}")
    monkeypatch.setenv("PATH", f"{programs}:{tmp_path}/p")
    project = lay(tmp_path / "p", mode, "python -c pass")
    assert project.run() == 0
    assert [r.what for r in project.find(ev.VerifyRecovered)][:1] == ["python is not on PATH, python3 is"]


def venv_elsewhere(tmp_path: Path, mode: str) -> Project:
    """A project whose ignored .venv leads to an interpreter in a folder that no sandbox shows."""
    there = tmp_path / "elsewhere" / "bin" / "python"
    there.parent.mkdir(parents=True)
    there.write_text(f'#!/bin/sh\nexec {shlex.quote(os.path.realpath(sys.executable))} "$@"\n')
    there.chmod(0o755)
    (tmp_path / "p" / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "p" / ".venv" / "bin" / "python").symlink_to(there)
    base = {".gitignore": ".venv\n.ganger\n"}
    if mode == "direct":
        return lay(tmp_path / "p", mode, ".venv/bin/python -c pass", base=base)
    return lay(tmp_path / "p", mode, ".venv/bin/python -c pass", base=base, workspace='linked = [".venv"]')


@pytest.mark.parametrize("mode", MODES)
def test_an_interpreter_outside_the_sandbox_is_told_with_the_setting_that_shows_it(
    tmp_path: Path, sandbox: str, mode: str
) -> None:
    """G14 G05: unpaid and named; with the setting the same project is DONE. In direct mode .venv is the operator's, so
    what it leads to is shown anyway."""
    project = venv_elsewhere(tmp_path, mode)
    if sandbox != "none" and mode == "local-git":
        detail = blocked_by(project)
        assert f'add "{tmp_path}/elsewhere" to sandbox.readable' in detail, detail
        config = tmp_path / "p" / "ganger.toml"
        config.write_text(f'{config.read_text()}\n[sandbox]\nreadable = ["{tmp_path}/elsewhere"]\n')
    assert project.run() == 0


def test_an_ignored_environment_that_no_checkout_has_is_told_with_the_setting_that_links_it(tmp_path: Path) -> None:
    """G14: `.venv/bin/python` in the project and not in what git has."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    project = lay(tmp_path, "local-git", ".venv/bin/python -c pass", base={".gitignore": ".venv\n.ganger\n"})
    assert 'linked = [".venv"]' in blocked_by(project)


@pytest.mark.parametrize("mode", MODES)
def test_no_agent_is_started_where_a_checks_program_is_nowhere_on_path(tmp_path: Path, mode: str) -> None:
    """G14: nobody is paid for work that no check could pass; the run goes on with what can be checked."""
    tasks = [task("a"), task("b"), task("c", verify_profile="other")]
    project = lay(tmp_path, mode, "pytestt -q", tasks=tasks)
    known = json.loads((tmp_path / "verify.json").read_text())
    known["profiles"]["other"] = {"steps": [{"name": "test", "cmd": "true"}]}
    (tmp_path / "verify.json").write_text(json.dumps(known))
    commit(project)
    assert project.run() == 3
    assert {launched.task for launched in project.find(ev.AttemptLaunched)} == {"c"}
    assert project.status("c") is TaskStatus.DONE and "no agent was started" in project.state().tasks["b"].detail

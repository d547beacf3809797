"""Direct mode: git's settings and installed packages are no task's to change, whatever the sandbox can keep."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ganger.core import events as ev
from ganger.core.vocabulary import BlockReason, TaskStatus
from ganger.errors import GangerError
from ganger.sandboxes import choose as choosing, landlock
from tests.engine.run_projects import TRUE, Project, task

pytestmark = pytest.mark.whole

ONCE = {"retry_policy": {"max_attempts": 1}}
AGENT = 'kind = "command"\nargv = ["/bin/sh", "agent"]'
RESULT = '{"contract_version":"2.0","task_id":"%s","status":"DONE","summary":"done"}'
SAYS_DONE = f"""#!/bin/sh
if [ -f "plays/$GANGER_TASK_ID" ]; then . "./plays/$GANGER_TASK_ID"; fi
printf '<<<TASK_RESULT_V2>>>\\n{RESULT}\\n<<<END_TASK_RESULT_V2>>>\\n' "$GANGER_TASK_ID"
"""
IDENTITY = ("-c", "user.name=P", "-c", "user.email=p@example.org")
OPEN = [pytest.param("landlock", marks=pytest.mark.skipif(not landlock.is_there(), reason="no Landlock")), "off"]
ALL = [pytest.param("bubblewrap", marks=pytest.mark.needs("bwrap")), *OPEN]


def git(folder: Path, *words: str) -> str:
    made = subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True, text=True)
    return made.stdout.strip()


@pytest.fixture
def walls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The walls a test asks for, on a machine that has no others."""
    name: str = request.param
    monkeypatch.setattr(choosing, "_stood", set())
    monkeypatch.setenv("GANGER_SANDBOX_USE", "off" if name == "off" else "auto")
    if name == "landlock":
        monkeypatch.setattr(choosing, "find_bwrap", lambda path: None)
    return name


def project_of(root: Path, plays: Mapping[str, str], **more: object) -> Project:
    """A git repository with packages in it, and agents that are small shell programs."""
    root.mkdir(parents=True, exist_ok=True)
    tasks = [task(name, **ONCE) for name in plays]
    files = {"agent": SAYS_DONE, **{f"plays/{name}": text for name, text in plays.items()}, "src.txt": "1\n"}
    made = Project(root, tasks, agent=AGENT, files=files, **more).make()  # type: ignore[arg-type]
    for name in (".venv/lib/python3/site-packages/kit/__init__.py", "web/node_modules/kit/index.js"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("real\n")
    (root / ".venv/pyvenv.cfg").write_text("home = /usr\n")
    (root / ".gitignore").write_text(".venv\nnode_modules\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "begin")
    return made


def fixed_files(root: Path) -> dict[str, bytes]:
    """All of `.git` that is no history, and everything installed."""
    skipped = (".git/objects", ".git/logs", ".git/refs", ".git/index", ".git/HEAD", ".git/COMMIT_EDITMSG")
    places = [root / ".git", root / ".venv", root / "web/node_modules"]
    paths = [p for place in places for p in ([place] if place.is_file() else place.rglob("*")) if p.is_file()]
    named = {str(p.relative_to(root)): p.read_bytes() for p in paths}
    return {name: data for name, data in named.items() if not name.startswith(skipped)}


EVIL = {
    "hook": "printf '#!/bin/sh\\ntouch owned\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "config": "printf '[core]\\n\\tfsmonitor = touch owned\\n' >>.git/config",
    "include": "printf '[include]\\n\\tpath = ../evil\\n' >>.git/config; printf '[core]\\n' >evil",
    "worktree config": "printf '[core]\\n' >.git/config.worktree",
    "attributes": "mkdir -p .git/info; echo '* filter=x' >.git/info/attributes",
    "exclude": "mkdir -p .git/info; echo src.txt >.git/info/exclude",
    "alternates": "mkdir -p .git/objects/info; echo /tmp >.git/objects/info/alternates",
    "commondir": "echo ../other >.git/commondir",
    "worktree": "mkdir -p .git/worktrees/x; echo /tmp/x/.git >.git/worktrees/x/gitdir",
    "module": "mkdir -p .git/modules/lib/hooks; echo x >.git/modules/lib/hooks/post-checkout",
    "remote": "mkdir -p .git/remotes; echo 'URL: /tmp' >.git/remotes/origin",
    "package": "echo evil >.venv/lib/python3/site-packages/kit/__init__.py",
    "start": "echo 'import os' >.venv/lib/python3/site-packages/x.pth",
    "nested package": "echo evil >web/node_modules/kit/index.js",
    "gone package": "rm -rf .venv",
    "moved git": "mv .git .hidden; mkdir .git; cp -r .hidden/HEAD .hidden/objects .hidden/refs .git/; rm -rf .hidden",
    "link": "rm -rf .venv; ln -s /usr .venv",
}


@pytest.mark.parametrize("walls", ALL, indirect=True)
def test_what_git_and_checks_run_with_is_as_before_whatever_an_agent_did(tmp_path: Path, walls: str) -> None:
    """G05 G09: no attempt that changed hooks, config, info or packages is DONE, and the person's git runs nothing."""
    plays = {name.replace(" ", "-"): f"{code}\n" for name, code in EVIL.items()}
    project = project_of(tmp_path / "p", plays, policy="concurrency = 1")
    before = fixed_files(project.root)
    project.run()
    after = fixed_files(project.root)
    assert {name for name in {*before, *after} if before.get(name) != after.get(name)} == set()
    git(project.root, "status")
    assert not (project.root / "owned").exists()
    if walls != "bubblewrap":
        ends = {name: now.failure.failure_class for name, now in project.state().tasks.items()}
        assert ends == dict.fromkeys(plays, "policy_violation")


@pytest.mark.parametrize("walls", OPEN, indirect=True)
def test_what_was_found_is_saved_and_named(tmp_path: Path, walls: str) -> None:
    """G08 G09: nothing a person may have done meanwhile is lost, and `why` says where it is."""
    project = project_of(tmp_path / "p", {"a": EVIL["config"]})
    assert project.run() == 1
    told = project.find(ev.FixedRestored)[0]
    assert told.files == (".git/config",) and told.tasks == ("a",) and told.left == ()
    assert "fsmonitor" in (project.folder.path / told.saved / "files/.git/config").read_text()
    detail = project.state().tasks["a"].detail
    assert detail.startswith("FIXED_CHANGED") and ".git/config" in detail and told.saved in detail
    assert "fsmonitor" not in json.dumps([str(recorded.event) for recorded in project.events()])


@pytest.mark.parametrize("walls", ALL, indirect=True)
def test_an_environment_that_appears_is_moved_out_and_told(tmp_path: Path, walls: str) -> None:
    """G05: an editor would run its interpreter; an agent that made one for itself is not failed for it."""
    made = (
        "mkdir -p tools/.venv/bin env/bin; echo evil >tools/.venv/bin/python; echo x >env/pyvenv.cfg; echo 2 >src.txt"
    )
    project = project_of(tmp_path / "p", {"a": made})
    assert project.run() == 0
    assert not (project.root / "tools/.venv").exists() and not (project.root / "env").exists()
    told = project.find(ev.FixedRestored)[0]
    assert set(told.files) == {"tools/.venv", "env"}
    assert list((project.folder.path / told.saved).glob("came/*/bin/python"))


@pytest.mark.parametrize("walls", ALL, indirect=True)
@pytest.mark.parametrize("made", ["git init -q sub", "mkdir sub; echo 'gitdir: ../x' >sub/.git"])
def test_a_repository_that_appears_is_moved_out(tmp_path: Path, walls: str, made: str) -> None:
    """G05 G09: its settings would run in the person's shell."""
    project = project_of(tmp_path / "p", {"a": made})
    assert project.run() == 1 and not (project.root / "sub/.git").exists()
    assert project.state().tasks["a"].failure.failure_class == "policy_violation"


@pytest.mark.parametrize("walls", ALL, indirect=True)
def test_a_git_file_is_not_replaced(tmp_path: Path, walls: str) -> None:
    """G05: a linked checkout and a submodule have a file that says where their repository is."""
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    git(main, "commit", "-qm", "begin", "--allow-empty")
    git(main, "worktree", "add", "-q", str(tmp_path / "p"))
    play = "mkdir evil; echo 'gitdir: evil' >other; mv -f other .git"
    project = Project(tmp_path / "p", [task("a", **ONCE)], agent=AGENT, files={"agent": SAYS_DONE, "plays/a": play})
    project.make()
    before = (project.root / ".git").read_text()
    project.run()
    assert (project.root / ".git").read_text() == before


@pytest.mark.parametrize("walls", ALL, indirect=True)
def test_checks_cannot_write_them_either(tmp_path: Path, walls: str) -> None:
    """G05 G09: a check runs what the agent wrote."""
    project = project_of(tmp_path / "p", {"a": 'echo "$EVIL" >tool'}, steps=({"name": "t", "cmd": "sh tool"},))
    evil = f"({EVIL['hook']}; {EVIL['package']}) 2>/dev/null; true"
    (project.root / "plays/a").write_text(f"cat >tool <<'END'\n{evil}\nEND\n")
    before = fixed_files(project.root)
    code = project.run()
    assert fixed_files(project.root) == before
    assert code == (0 if walls == "bubblewrap" else 1)
    if walls != "bubblewrap":
        assert project.state().tasks["a"].failure.failure_class == "policy_violation"


@pytest.mark.parametrize("walls", OPEN, indirect=True)
def test_in_a_crowd_they_are_put_back_and_nobody_is_held_for_it(tmp_path: Path, walls: str) -> None:
    """G05 W02: nobody can tell who it was; both are verified on what is restored."""
    plays = {"a": f"{EVIL['hook']}; {EVIL['package']}; touch a.there; sleep 1", "b": "sleep 1"}
    check = "grep -q real .venv/lib/python3/site-packages/kit/__init__.py"
    project = project_of(
        tmp_path / "p", plays, steps=({"name": "t", "cmd": check},), policy="concurrency = 2\nbatch_size = 2"
    )
    before = fixed_files(project.root)
    assert project.run() == 0 and fixed_files(project.root) == before
    told = project.find(ev.FixedRestored)[0]
    assert told.tasks == ("a", "b") and ".git/hooks/pre-commit" in told.files


@pytest.mark.quick
@pytest.mark.sample(1)
@pytest.mark.parametrize("walls", OPEN, indirect=True)
def test_an_agent_that_gives_no_answer_leaves_them_as_they_were(tmp_path: Path, walls: str) -> None:
    """G05 G08: also one that crashed, or ran out of its time."""
    plays = {"a": f"{EVIL['hook']}; exit 3", "b": f"{EVIL['package']}; sleep 60"}
    project = project_of(tmp_path / "p", plays, policy="concurrency = 1\nrespawns = 0")
    project.tasks[1]["timeout_sec"] = 2
    project.make()
    before = fixed_files(project.root)
    assert project.run() != 0 and fixed_files(project.root) == before
    assert len(project.find(ev.FixedRestored)) == 2


@pytest.mark.parametrize("walls", OPEN, indirect=True)
def test_a_process_left_behind_is_ended_before_it_can_change_them(tmp_path: Path, walls: str) -> None:
    """G05: with a session of its own and without any environment."""
    behind = f"(sleep 1.5; {EVIL['hook']})"
    play = f"setsid env -i PATH=\"$PATH\" sh -c '{behind}' >/dev/null 2>&1 </dev/null &"
    project = project_of(tmp_path / "p", {"a": play.replace("'#!/bin/sh\\ntouch owned\\n'", "evil"), "b": "sleep 2"})
    project.tasks[1]["depends_on"] = ["a"]
    project.make()
    before = fixed_files(project.root)
    assert project.run() == 0 and fixed_files(project.root) == before


@pytest.mark.parametrize("walls", ["off"], indirect=True)
def test_caches_of_tools_are_put_back_and_held_against_nobody(tmp_path: Path, walls: str) -> None:
    """G05: running what is installed leaves compiled files, which would run instead of it."""
    play = "d=.venv/lib/python3/site-packages/kit/__pycache__; mkdir $d; echo x >$d/__init__.cpython-311.pyc"
    project = project_of(
        tmp_path / "p", {"a": f"{play}; mkdir web/node_modules/.cache; echo x >web/node_modules/.cache/x"}
    )
    before = fixed_files(project.root)
    assert project.run() == 0 and fixed_files(project.root) == before


@pytest.mark.parametrize("walls", ["off"], indirect=True)
def test_what_a_person_changes_between_attempts_stays(tmp_path: Path, walls: str) -> None:
    """G08: nobody's settings are undone where no agent was at work."""
    project = project_of(tmp_path / "p", {"a": "true"})
    assert project.run() == 0
    git(project.root, "config", "user.nick", "mine")
    (project.root / ".venv/new.txt").write_text("installed\n")
    project.run_id = "r2"
    project.make()
    assert project.run() == 0 and (project.root / ".venv/new.txt").exists()
    assert git(project.root, "config", "user.nick") == "mine"


@pytest.mark.parametrize("walls", ["off"], indirect=True)
def test_packages_that_cannot_be_put_back_stop_everything_until_a_person_says_so(tmp_path: Path, walls: str) -> None:
    """G05 G09: no agent starts and no check judges with what somebody changed."""
    plays = {"a": "echo evil >.venv/big", "b": "true"}
    project = project_of(tmp_path / "p", plays, policy="concurrency = 1")
    (project.root / ".venv/big").write_bytes(os.urandom(2 << 20))
    (project.root / "ganger.toml").write_text(
        (project.root / "ganger.toml").read_text() + '\n[workspace]\nmode = "direct"\nsnapshot_mb = 1\n'
    )
    assert project.run() != 0
    state = project.state()
    assert state.tasks["a"].failure.failure_class == "policy_violation"
    assert (state.tasks["b"].status, state.tasks["b"].block_reason) == (TaskStatus.BLOCKED, BlockReason.EXTERNAL)
    asked = next(q for q in state.inbox.questions.values() if q.kind == "packages")
    assert ".venv/big" in asked.text and project.log("a") and not (project.folder.path / "logs/b.worker.1.log").exists()
    (project.root / ".venv/big").write_bytes(b"installed again")
    assert project.ganger("answer", asked.id, "1").returncode == 0
    assert project.ganger("retry", "b").returncode == 0
    project.run()
    assert project.status("b") is TaskStatus.DONE


COMMIT = "git -c user.name=A -c user.email=a@example.org commit -qm agent --allow-empty"


@pytest.mark.parametrize("walls", OPEN, indirect=True)
def test_a_ref_that_moved_beside_an_agent_is_a_question_and_is_never_moved_back(tmp_path: Path, walls: str) -> None:
    """G05 G08: it may be a person's own commit."""
    project = project_of(tmp_path / "p", {"a": COMMIT, "b": f"{COMMIT}; git tag agent"}, policy="concurrency = 1")
    base = git(project.root, "rev-parse", "HEAD")
    project.run()
    assert git(project.root, "rev-list", "--count", f"{base}..HEAD") == "2"
    assert [told.tasks for told in project.find(ev.RefsMoved)] == [("a",), ("b",)]
    asked = [q for q in project.state().inbox.questions.values() if q.kind == "refs"]
    assert len(asked) == 1 and f"refs/heads/main: {base[:12]}" in asked[0].text and asked[0].options


@pytest.mark.parametrize("walls", ["off"], indirect=True)
def test_a_ref_that_moved_between_attempts_is_told_and_asks_nobody(tmp_path: Path, walls: str) -> None:
    """G08: whoever it was, no agent was there."""
    project = project_of(tmp_path / "p", {"a": "true", "b": "true"}, policy="concurrency = 1")
    project.steps = TRUE

    def commit_between(recorded: ev.Recorded) -> None:
        if isinstance(recorded.event, ev.TaskSettled) and recorded.event.task == "a":
            git(project.root, "commit", "-qm", "person", "--allow-empty")

    assert project.run(listeners=(commit_between,)) == 0
    assert [told.tasks for told in project.find(ev.RefsMoved)] in ([()], [("a",)])


@pytest.mark.parametrize("walls", ["landlock"], indirect=True)
def test_require_is_not_met_in_place_by_walls_that_keep_none_of_it(
    tmp_path: Path, walls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G05: said before anything is started, with what to do; git modes are kept apart by Landlock too."""
    monkeypatch.setenv("GANGER_SANDBOX_USE", "require")
    project = project_of(tmp_path / "p", {"a": "true"})
    with pytest.raises(GangerError, match=r"landlock: in it \.git") as caught:
        project.run()
    assert caught.value.code == "SANDBOX_UNAVAILABLE" and "local-git" in caught.value.hint
    assert not (project.folder.path / "ganger.db").exists() or project.find(ev.AttemptStarted) == []

"""Where runs lie in direct mode: out of the agents' reach, found from the project's path, and shown in the project."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from ganger.app.commands.clean import look
from ganger.app.commands.doctor import examine
from ganger.app.run_places import place_of, runs_of
from ganger.config import load_project
from ganger.core.vocabulary import TaskStatus
from ganger.worker.find_run import RunFile
from tests.engine.run_projects import Project, leading, task, until

pytestmark = pytest.mark.whole

SLOW = {"a": [[{"text": "begun"}, {"delay": 2}, {"result": "DONE"}]]}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "p").make()


def modes(folder: Path) -> dict[str, int]:
    found = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode) for path in found}


def error_of(project: Project, *words: str) -> dict[str, str]:
    answer = project.ganger(*(words or ("run",)), "--json")
    assert answer.returncode == 1, answer.stdout
    found: dict[str, str] = json.loads(answer.stdout)["error"]
    return found


def test_the_run_is_kept_in_the_users_state_folder_and_shown_in_the_project(project: Project) -> None:
    """G05 T23: the names of the interface are there; what they lead to is not in the tree."""
    assert project.run() == 0
    kept, shown = project.folder.path, project.root / ".ganger" / "r1"
    home = Path(os.environ["XDG_STATE_HOME"])
    assert kept.parents[1] == home / "ganger" and kept.parent.name.startswith("p-")
    assert (shown / "ganger.db").readlink() == kept / "ganger.db"
    assert not (shown / "worker.key").exists() and (kept / "worker.key").is_file()
    for name in ("state.json", "report.md", "logs/a.worker.1.log", "logs/a.verify.1.log", "progress.md"):
        assert (shown / name).read_bytes() == (kept / name).read_bytes() and (shown / name).resolve() == shown / name
    assert (project.root / ".ganger" / ".gitignore").read_text() == "*\n"
    assert json.loads(project.ganger("status", "--json").stdout)["folder"] == str(shown)


def test_a_log_is_led_to_while_its_attempt_runs_and_stands_by_itself_afterwards(tmp_path: Path) -> None:
    """T23: people follow it where they always did, and may archive what is shown."""
    project = Project(tmp_path / "p", script=SLOW).make()
    log = project.root / ".ganger/r1/logs/a.worker.1.log"
    with leading(project) as lead:
        until(lambda: log.exists() and "begun" in log.read_text(), beside=lead)
        assert log.resolve() == project.folder.path / "logs/a.worker.1.log"
        assert lead.wait(30) == 0
    assert log.resolve() == log and "begun" in log.read_text()


@pytest.mark.parametrize("mode", ["direct", "local-git"])
def test_nobody_else_can_look_into_a_run(tmp_path: Path, mode: str) -> None:
    """G05: folders 0700, files 0600; as root agents of git modes have another number and must get through."""
    project = Project(tmp_path / "p").make()
    if mode != "direct":
        (project.root / "ganger.toml").write_text(
            (project.root / "ganger.toml").read_text() + f'[workspace]\nmode = "{mode}"\n'
        )
        for words in ("init -q", "add -A", "-c user.name=A -c user.email=a@example.org commit -qm begin"):
            subprocess.run(["git", *words.split()], cwd=project.root, check=True, capture_output=True)
    assert project.run() == 0
    passable = mode != "direct" and os.geteuid() == 0
    found = modes(project.folder.path)
    assert found.pop(".") == (0o711 if passable else 0o700)
    # What agents of another user have to reach, and nothing of it is Ganger's word.
    theirs = ("bin", "homes", "desks", "work", "checks", "pool", "agents")
    own = {name: mode for name, mode in found.items() if name.partition("/")[0] not in theirs}
    assert {name: oct(mode) for name, mode in own.items() if mode & 0o077} == {}
    assert {"ganger.db", "worker.key", "state.json", "logs/a.worker.1.log", "prompts/a.1.md"} <= own.keys()
    if mode == "direct":
        assert {n: oct(m) for n, m in modes(project.root / ".ganger").items() if m & 0o077} == {}
        assert stat.S_IMODE(project.folder.path.parent.stat().st_mode) == 0o700


def test_every_reader_finds_the_same_folder_from_any_name_of_the_project(project: Project, tmp_path: Path) -> None:
    """T23: by its real path; sessions and their hooks compute it without Ganger's own settings."""
    assert project.run() == 0
    (tmp_path / "link").symlink_to(project.root)
    through = load_project(tmp_path / "link")
    assert [folder.path for folder in runs_of(through)] == [project.folder.path]
    assert RunFile(str(tmp_path / "link"), os.environ).runs() == [str(project.folder.path)]


def test_a_state_dir_outside_the_project_stays_what_it_is(tmp_path: Path) -> None:
    """T23: nobody writes there but Ganger."""
    project = Project(tmp_path / "p").make()
    text = (project.root / "ganger.toml").read_text()
    (project.root / "ganger.toml").write_text(f'state_dir = "{tmp_path}/state"\n' + text)
    assert project.run() == 0 and project.folder.path == tmp_path / "state" / "r1"
    assert not (project.root / ".ganger").exists()


@pytest.mark.parametrize("case", ["no home", "inside the project", "among what agents write", "a file in the way"])
def test_without_a_safe_place_nothing_is_started(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """G05 T23: named, with the next step; doctor says the same."""
    project = Project(tmp_path / "p").make()
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("XDG_STATE_HOME")
    if case == "no home":
        monkeypatch.delenv("HOME")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    elif case == "inside the project":
        monkeypatch.setenv("XDG_STATE_HOME", str(project.root / "state"))
    elif case == "a file in the way":
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    else:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
        text = (project.root / "ganger.toml").read_text()
        (project.root / "ganger.toml").write_text(text + f'[sandbox]\nwritable = ["{tmp_path}/s"]\n')
    found = error_of(project)
    assert found["code"] == "NO_STATE_FOLDER" and "XDG_STATE_HOME" in found["hint"]
    assert not list(tmp_path.rglob("ganger.db"))
    if case != "a file in the way":
        findings = examine(project.root, project.root)
        assert [f.level for f in findings if f.name == "state_dir"] == ["error"]


# --- runs of before ---------------------------------------------------------------------------------------------------


def begun_in_the_old_place(project: Project) -> Path:
    """As an earlier version left it: everything in the project, one task through and one to come."""
    project.run(max_tasks=1)
    kept, old = project.folder.path, project.root / ".ganger" / "r1"
    shutil.rmtree(old)
    shutil.move(kept, old)
    shutil.rmtree(kept.parent)
    return old


def test_a_run_begun_in_the_project_goes_on_there_and_says_so(tmp_path: Path) -> None:
    """G01: nothing is moved under a run; a new run is kept out of reach."""
    project = Project(tmp_path / "p", [task("a"), task("b")]).make()
    old = begun_in_the_old_place(project)
    answer = project.ganger("run")
    assert answer.returncode == 0 and f"this run began in {old} and continues there" in answer.stderr
    assert project.folder.path == old and project.folder.shown is None
    assert len([e for e in project.happened("a") if e == "attempt_started"]) == 1
    assert (old / "ganger.db").is_file() and not (old / "ganger.db").is_symlink()
    manifest = json.loads((project.root / "manifest.json").read_text()) | {"run_id": "r2"}
    (project.root / "manifest.json").write_text(json.dumps(manifest))
    assert project.ganger("run").returncode == 0
    assert {folder.path.parent for folder in runs_of(load_project(project.root))} == {old.parent, _private(project)}


def _private(project: Project) -> Path:
    found = load_project(project.root).private
    assert found is not None
    return found


def test_a_store_of_git_modes_that_appeared_meanwhile_is_not_used(project: Project) -> None:
    """G05: its settings would be commands; only what a lead made, or what was there before, is believed."""
    assert project.run() == 0
    (project.root / ".ganger" / "repo.git").mkdir()
    text = (project.root / "ganger.toml").read_text() + '[workspace]\nmode = "local-git"\n'
    (project.root / "ganger.toml").write_text(text)
    manifest = json.loads((project.root / "manifest.json").read_text()) | {"run_id": "r2"}
    (project.root / "manifest.json").write_text(json.dumps(manifest))
    for words in ("init -q", "add -A", "-c user.name=A -c user.email=a@example.org commit -qm begin"):
        subprocess.run(["git", *words.split()], cwd=project.root, check=True, capture_output=True)
    found = error_of(project)
    assert found["code"] == "STORE_FORGED" and "repo.git" in found["message"]
    shutil.rmtree(project.root / ".ganger" / "repo.git")
    assert project.ganger("run").returncode == 0 and project.ganger("run").returncode == 0
    assert place_of(load_project(project.root), "r2").path == project.root / ".ganger" / "r2"
    assert project.status() is TaskStatus.DONE, "the run of direct mode is known as ever"


def test_two_runs_never_work_in_one_project_wherever_they_are_kept(tmp_path: Path) -> None:
    """One was begun in the project itself, the other is kept elsewhere."""
    project = Project(tmp_path / "p", [task("a"), task("b")], {"b": [[{"text": "begun"}, {"hang": True}]]}).make()
    begun_in_the_old_place(project)
    manifest = json.loads((project.root / "manifest.json").read_text()) | {"run_id": "r2"}
    (project.root / "second.json").write_text(json.dumps(manifest))
    with leading(project) as lead:
        log = project.root / ".ganger/r1/logs/b.worker.1.log"
        until(lambda: log.exists() and "begun" in log.read_text(), beside=lead)
        assert error_of(project, "run", "second.json")["code"] == "RUN_LOCKED"


# --- projects that move -----------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_a_renamed_project_takes_its_runs_along(project: Project, tmp_path: Path) -> None:
    """G01: the folder is the same one, and the one of before is gone."""
    project.tasks = [task("a"), task("b")]
    project.make()
    project.run(max_tasks=1)
    before = _private(project)
    project.root.rename(tmp_path / "q")
    moved = Project(tmp_path / "q", project.tasks)
    assert json.loads(moved.ganger("status", "--json").stdout)["counts"]["DONE"] == 1
    assert not before.exists() and moved.folder.path.parent == _private(moved)
    assert moved.ganger("run").returncode == 0
    assert len([e for e in moved.happened("a") if e == "attempt_started"]) == 1
    assert (moved.root / ".ganger/r1/ganger.db").readlink() == moved.folder.path / "ganger.db"


def test_a_copy_of_a_project_has_runs_of_its_own(project: Project, tmp_path: Path) -> None:
    """G01: what its links lead to is the other's."""
    assert project.run() == 0
    shutil.copytree(project.root, tmp_path / "q", symlinks=True)
    copy = Project(tmp_path / "q", project.tasks)
    assert copy.ganger("status").returncode == 1
    assert copy.ganger("run").returncode == 0 and len(copy.events()) == len(project.events())
    assert copy.folder.path.parent != project.folder.path.parent
    assert (copy.root / ".ganger/r1/ganger.db").readlink() == copy.folder.path / "ganger.db"


def test_a_project_that_cannot_be_told_to_be_the_same_is_asked_about(project: Project, tmp_path: Path) -> None:
    """G01: copied elsewhere and removed; the command that takes the runs over is in the answer."""
    assert project.run() == 0
    before = _private(project)
    shutil.copytree(project.root, tmp_path / "q", symlinks=True)
    shutil.rmtree(project.root)
    moved = Project(tmp_path / "q", project.tasks)
    found = error_of(moved)
    assert found["code"] == "PROJECT_MOVED" and f"mv {before} {_private(moved)}" in found["hint"]
    before.rename(_private(moved))
    assert "already COMPLETED" in moved.ganger("run").stderr


def test_runs_of_projects_that_are_gone_are_named_with_their_size_and_never_removed(
    project: Project, tmp_path: Path
) -> None:
    """Doctor and clean tell; the person decides."""
    assert project.run() == 0
    other = Project(tmp_path / "other").make()
    assert other.run() == 0
    left = other.folder.path.parent
    shutil.rmtree(other.root)
    told = [f for f in examine(project.root, project.root) if f.name == "left-over" and str(left) in f.text]
    assert len(told) == 1 and "MiB" in told[0].text
    piece = next(piece for piece in look(load_project(project.root)) if piece.path == left)
    assert not piece.goes and piece.bytes > 0
    answer = project.ganger("clean")
    assert f"rm -r {left}" in answer.stdout and left.is_dir()


def test_a_link_to_another_projects_runs_opens_nothing(project: Project, tmp_path: Path) -> None:
    """G05: planted by an agent; the folder it leads to belongs to a project that is there."""
    assert project.run() == 0
    victim = Project(tmp_path / "victim").make()
    shown = victim.root / ".ganger" / "r9"
    shown.mkdir(parents=True)
    (shown / "ganger.db").symlink_to(project.folder.path / "ganger.db")
    assert runs_of(load_project(victim.root)) == []
    assert place_of(load_project(victim.root), "r9").path != project.folder.path

"""Ground that is not as usual: another file system, a store that is damaged, files that git itself warns of."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ganger.core.vocabulary import TaskStatus
from tests.engine.git_runs import GitProject, edits
from tests.engine.run_projects import Project, done, task, write
from tests.patience import stretched

pytestmark = pytest.mark.whole

ELSEWHERE = """
mount -t tmpfs none "$1" || exit 77
exec "$2" -m ganger run
"""


@pytest.mark.needs("root", "unshare", "mount")
@pytest.mark.parametrize("sandbox", ["auto", "off"])
@pytest.mark.parametrize("far", [".ganger", "../state"], ids=["state-folder", "state_dir"])
def test_a_state_folder_on_another_file_system_is_as_good(tmp_path: Path, far: str, sandbox: str) -> None:
    """W02 G03: nothing can be linked from the one to the other, so it is copied."""
    project = GitProject(tmp_path / "p", script={"a": edits({"a.txt": "x\n"})}, more=f'[sandbox]\nuse = "{sandbox}"')
    project.make()
    config = project.root / "ganger.toml"
    config.write_text(f"state_dir = {far!r}\n{config.read_text()}".replace("'", '"'))
    place = project.root / far
    place.mkdir()
    words = ["unshare", "-m", "--propagation", "private", "sh", "-c", ELSEWHERE, "sh", str(place), sys.executable]
    made = subprocess.run(words, cwd=project.root, capture_output=True, text=True, timeout=stretched(90))
    if made.returncode == 77:
        assert os.environ.get("CI") != "true", "this test must run where CI=true"
        pytest.skip("no private mount here")
    assert made.returncode == 0, made.stderr


MODULES = {
    "names outside": '[submodule "../x"]\n\tpath = -a\n\turl = -u./evil\n\tupdate = !rm\n',
    "no settings": "[broken\n",
    "a long line": "a" * 5000 + " text\n",
}


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize("name", [".gitmodules", ".gitattributes"])
def test_a_refused_file_that_git_warns_of_is_no_damage(tmp_path: Path, name: str, text: str) -> None:
    """G08 G09: it is kept for people to look at, and `git fsck` finds nothing wrong in Ganger's repository."""
    project = GitProject(
        tmp_path, [task("a"), task("b")], {"a": edits({name: text}), "b": edits({"b.txt": "x"})}
    ).make()
    project.run()
    checked = subprocess.run(["git", f"--git-dir={project.store}", "fsck", "--full"], capture_output=True, text=True)
    assert checked.returncode == 0 and "error" not in checked.stdout + checked.stderr
    assert project.status("b") is TaskStatus.DONE and project.ganger("doctor").returncode in (0, 1)


@pytest.mark.parametrize("made", [Project, GitProject], ids=["direct", "local-git"])
def test_the_hint_for_a_damaged_store_helps(tmp_path: Path, made: type[Project]) -> None:
    """T19 T20: done as it says, the run begins anew; until then other runs can be looked at and cleared away."""
    script = {"a": done(write("a.txt", "x\n"))} if made is Project else {"a": edits({"a.txt": "x\n"})}
    project = made(tmp_path / "p", script=script).make()
    assert project.run() == 0
    (project.folder.path / "ganger.db").write_bytes(b"SQLite format 3\x00" + os.urandom(8192))
    (project.folder.path / "ganger.db-wal").unlink(missing_ok=True)
    told = project.ganger("run")
    assert told.returncode == 1 and "not a valid event store" in told.stderr
    assert project.ganger("clean").returncode == 0
    assert f"move {project.folder.path} out of {project.folder.path.parent}" in " ".join(told.stderr.split())
    shutil.move(project.folder.path, tmp_path / "damaged")
    (tmp_path / "p/a.txt").unlink(missing_ok=True)
    assert project.ganger("run").returncode == 0 and project.status() is TaskStatus.DONE

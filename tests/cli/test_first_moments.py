"""A run that has just begun, and one whose folder is gone."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ganger.app.runs import is_led
from ganger.launchers.paths import House, is_held
from ganger.local.procfs import mark_of, pids
from ganger.local.run_folder import RunFolder
from tests.cli.cli_project import CONFIG, ganger, kept, make_project, task
from tests.patience import stretched, until

pytestmark = pytest.mark.whole

PULL = CONFIG.replace('kind = "scripted"\nscript = "script.json"', 'kind = "pull"')
GIT = '[workspace]\nmode = "local-git"\n'


def pulled(root: Path) -> Path:
    make_project(root, task("one"))
    (root / "ganger.toml").write_text(PULL)
    return root


def test_who_asks_right_after_a_start_gets_a_task(tmp_path: Path) -> None:
    """G02: --detach returns once the run is led, which is before its door is open."""
    assert ganger("run", "--detach", cwd=pulled(tmp_path)).code == 0
    answer = ganger("worker", "next", "--worker", "ada", cwd=tmp_path)
    ganger("stop", cwd=tmp_path)
    assert answer.code == 0 and "Task one" in answer.out, answer


def test_who_asks_while_a_run_is_continued_gets_a_task(tmp_path: Path) -> None:
    """G02: what an earlier lead left of its door tells nothing of this one."""
    ganger("run", "--detach", cwd=pulled(tmp_path))
    ganger("stop", cwd=tmp_path)
    run = RunFolder(kept(tmp_path))
    until(lambda: not is_led(run))
    lead = subprocess.Popen([sys.executable, "-m", "ganger", "run"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    until(lambda: is_led(run))
    answer = ganger("worker", "next", "--worker", "ada", cwd=tmp_path)
    lead.send_signal(signal.SIGTERM)
    assert lead.wait(30) == 130 and answer.code == 0 and "Task one" in answer.out, answer


def test_who_asks_where_nobody_leads_is_told_so_at_once(tmp_path: Path) -> None:
    """G02: waiting is for runs that begin."""
    ganger("run", "--detach", cwd=pulled(tmp_path))
    ganger("stop", cwd=tmp_path)
    until(lambda: not is_led(RunFolder(kept(tmp_path))))
    begun = time.monotonic()
    answer = ganger("worker", "next", "--worker", "ada", cwd=tmp_path)
    assert answer.code == 3 and "LEAD_AWAY" in answer.err and time.monotonic() - begun < 15


def remove(folder: Path) -> None:
    """Whoever still writes there may bring a part of it back meanwhile, or take one away."""

    def is_gone() -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    until(is_gone)


def git_project(root: Path) -> Path:
    make_project(root, task("one", timeout_sec=600), script={"one": [[{"text": "at work"}, {"hang": True}]]})
    (root / "ganger.toml").write_text(CONFIG + GIT)
    (root / ".gitignore").write_text(".ganger\n")
    person = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], [*person, "commit", "-qm", "begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    return root


@pytest.mark.parametrize("gone", ["run", "state", "project"])
@pytest.mark.parametrize("mode", ["direct", "git"])
def test_the_lead_of_a_deleted_folder_ends_and_leaves_nobody_at_work(tmp_path: Path, mode: str, gone: str) -> None:
    """H08 G04: nobody is paid for a run that nobody can read any more."""
    root = tmp_path / "project"
    root.mkdir()
    project = git_project(root) if mode == "git" else make_project(root, task(timeout_sec=600), script=HANGS)
    lead = subprocess.Popen(
        [sys.executable, "-m", "ganger", "run"], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert lead.stdout is not None and lead.stderr is not None
    assert any(b"attempt 1 started" in line for line in lead.stdout)
    folder = kept(project)
    until(lambda: is_held(House(folder).lock))
    until(lambda: any((mark_of(pid) or "").startswith(f"{folder}/") for pid in pids()))
    until(lambda: "at work" in (folder / "logs/one.worker.1.log").read_text())
    remove({"run": folder, "state": folder.parent, "project": root}[gone])
    said = lead.communicate(timeout=stretched(60))[1]
    assert lead.returncode not in (0, None) and b"Traceback" not in said
    until(lambda: not any((mark_of(pid) or "").startswith(f"{folder}/") for pid in pids()))


HANGS = {"one": [[{"text": "at work"}, {"hang": True}]]}


def test_a_keeper_whose_folder_is_deleted_ends_its_programs_without_any_lead(tmp_path: Path) -> None:
    """H08: nobody is left to ask for it."""
    project = make_project(tmp_path, task(timeout_sec=600), script=HANGS)
    lead = subprocess.Popen([sys.executable, "-m", "ganger", "run"], cwd=project, stdout=subprocess.PIPE)
    assert lead.stdout is not None
    with lead.stdout:
        assert any(b"attempt 1 started" in line for line in lead.stdout)
    folder = kept(project)
    until(lambda: any((mark_of(pid) or "").startswith(f"{folder}/") for pid in pids()))
    lead.kill()
    lead.wait()
    remove(folder)
    until(lambda: not any((mark_of(pid) or "").startswith(f"{folder}/") for pid in pids()))

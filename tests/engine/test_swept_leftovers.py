"""What killed processes left is swept by the next lead; what may be anybody else's stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ganger.launchers.paths import House, make_socket_folder
from ganger.local.run_folder import sweep_unfinished
from ganger.local.scratch import prefix, scratch_folder, sweep
from tests.cli.cli_project import ganger, kept, make_project

pytestmark = pytest.mark.whole

HOLDER = """
import sys, time
from ganger.local.scratch import prefix, scratch_folder
import tempfile
with scratch_folder("take") as folder, tempfile.NamedTemporaryFile(prefix=prefix("git")) as file:
    open(f"{folder}/index", "w").close()
    print(folder, file.name, flush=True)
    time.sleep(600)
"""


def holder(place: Path) -> tuple[subprocess.Popen[str], list[Path]]:
    """A process that has temporary files open, and what they are."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], env={**os.environ, "TMPDIR": str(place)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process.stdout:
        return process, [Path(word) for word in process.stdout.readline().split()]


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_the_next_run_sweeps_what_a_killed_process_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G08: of temporary folders and files, and no others."""
    place, project = tmp_path / "tmp", tmp_path / "project"
    place.mkdir()
    project.mkdir()
    dead, left = holder(place)
    living, in_use = holder(place)
    others = [place / name for name in ("ganger-take-abc", "ganger-take-00000000-1-1-x", "somebody.tmp")]
    for path in others:
        path.write_text("not ours")
    killed(dead)
    assert ganger("run", cwd=make_project(project), env={"TMPDIR": str(place)}).code == 0
    assert not any(path.exists() for path in left) and all(path.exists() for path in (*in_use, *others))
    killed(living)


def test_a_process_never_sweeps_its_own(tmp_path: Path) -> None:
    """G08: nor what carries a number that was given to another process since."""
    with scratch_folder("take", tmp_path) as own:
        of_before = tmp_path / f"{prefix('take').rsplit('-', 2)[0]}-1-x"
        of_before.mkdir()
        assert sweep([tmp_path]).count(of_before) == 1 and Path(own).exists() and not of_before.exists()


def test_files_that_were_never_renamed_are_swept_from_the_run(tmp_path: Path) -> None:
    """G08: where their process is gone and a minute has passed."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / "prompts").mkdir()
    (tmp_path / "work").mkdir()
    old = [tmp_path / f".state.json.{ended.pid}.tmp", tmp_path / "prompts" / f".a.md.{ended.pid}.tmp"]
    kept_ones = [tmp_path / f".state.json.{os.getpid()}.tmp", tmp_path / "work" / f".x.{ended.pid}.tmp"]
    young = tmp_path / f".young.{ended.pid}.tmp"
    for path in (*old, *kept_ones, young, tmp_path / ".mine.tmp"):
        path.write_text("half")
        os.utime(path, (time.time() - (0 if path == young else 120),) * 2)
    assert sorted(sweep_unfinished(tmp_path)) == sorted(old)
    assert all(path.exists() for path in (*kept_ones, young, tmp_path / ".mine.tmp"))


def test_the_socket_of_a_keeper_that_was_killed_with_its_guard_is_swept(tmp_path: Path) -> None:
    """G08: the next keeper of the run knows where it was."""
    project = make_project(tmp_path)
    ganger("run", cwd=project)
    house, folder = House(kept(project)), make_socket_folder()
    (folder / "s").write_text("")
    house.write(house.address, str(folder / "s"))
    (project / "manifest.json").write_text((project / "manifest.json").read_text().replace('"one"', '"two"'))
    assert ganger("run", "--reconcile", cwd=project).code == 0
    assert not folder.exists()


def test_names_tell_machine_and_process() -> None:
    """G08: a folder for temporary files may be shared by containers that number their processes alike."""
    words = prefix("take").split("-")
    assert (words[0], words[1], int(words[3])) == ("ganger", "take", os.getpid()) and len(words[2]) == 8
    assert Path(tempfile.gettempdir()).is_dir()

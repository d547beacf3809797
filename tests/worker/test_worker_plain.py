"""The room as plain files: behind a shim, with other Pythons, and fast to start."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.starting import MOST_HEARTBEAT, heartbeats
from ganger.app.worker_program import shim_text
from tests.worker.little_lead import ROOM, Worker, leading, run

# Each costs more than a tenth of a bare interpreter's start.
SLOW = {"argparse", "asyncio", "click", "contextlib", "dataclasses", "http", "inspect", "pathlib", "pydantic", "socket"}
SLOW |= {"ssl", "subprocess", "tempfile", "typing", "urllib", "hashlib", "importlib.metadata"}


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    (tmp_path / "desk").mkdir()
    return Worker(str(tmp_path / "s"), tmp_path / "desk")


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_any_python_from_3_9_on_runs_the_plain_files(worker: Worker, tmp_path: Path, version: str) -> None:
    """G02: also where they were copied to, and nothing else of Ganger is there."""
    program = shutil.which(f"python{version}")
    if program is None or subprocess.run([program, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version}")
    shutil.copytree(ROOM, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("__pycache__"))
    argv = [program, "-I", "-S", str(tmp_path / "elsewhere" / "__main__.py")]
    with leading(worker.socket) as lead:
        for words in (("heartbeat",), ("report", "--status", "DONE", "--summary", "s"), ("messages",)):
            assert run([*argv, *words], worker.environ).code == 0
    assert lead.verbs() == ["heartbeat", "report", "messages"]


def test_no_file_needs_a_newer_python_than_3_9() -> None:
    """G02: by its grammar, on machines that have no other Python."""
    for file in ROOM.rglob("*.py"):
        ast.parse(file.read_text(encoding="utf-8"), str(file), feature_version=(3, 9))


def shim(folder: Path, python: str, room: Path = ROOM) -> str:
    file = folder / "ganger"
    file.write_text(shim_text(python, room))
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize("python", [sys.executable, "/nowhere/python3"], ids=["its own", "of the path"])
def test_a_shim_starts_the_room(worker: Worker, tmp_path: Path, python: str) -> None:
    """G02: a worker inside walls calls `ganger worker` although Ganger is hidden."""
    room = tmp_path / "a room; $(false)"
    shutil.copytree(ROOM, room, ignore=shutil.ignore_patterns("__pycache__"))
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with leading(worker.socket) as lead:
        said = run(
            [shim(tmp_path, python, room), "worker", "milestone", "it's $HOME"], {**worker.environ, "PATH": path}
        )
    assert said.code == 0 and lead.said[0][2]["name"] == "it's $HOME"


def test_a_shim_uses_what_its_python_stands_for_where_only_that_is_seen(worker: Worker, tmp_path: Path) -> None:
    """G02: an environment's interpreter is a link, and the environment is hidden inside walls."""
    link = tmp_path / "env" / "python"
    link.parent.mkdir()
    link.symlink_to(Path(sys.executable).resolve())
    program = shim(tmp_path, str(link))
    link.unlink()
    with leading(worker.socket) as lead:
        assert run([program, "worker", "heartbeat"], {**worker.environ, "PATH": "/nowhere"}).code == 0
    assert lead.verbs() == ["heartbeat"]


@pytest.mark.parametrize("words", [(), ("run",), ("--help",)])
def test_a_shim_knows_nothing_else(worker: Worker, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Z07: exit 64, and says what there is."""
    said = run([shim(tmp_path, sys.executable), *words], worker.environ)
    assert said.code == 64 and "ganger worker --help" in said.err


def test_the_installed_program_says_the_same(worker: Worker) -> None:
    """G02: `ganger worker` and the plain files are one."""
    with leading(worker.socket) as lead:
        said = run([sys.executable, "-m", "ganger", "worker", "heartbeat"], worker.environ)
    assert (said.code, said.out, lead.verbs()) == (0, "taken\n", ["heartbeat"])


def test_a_heartbeat_imports_nothing_slow(worker: Worker) -> None:
    """G02: each of these would cost more than the request."""
    program = "import sys; from ganger.__main__ import main; sys.argv[1:] = ['worker', 'heartbeat']; main()"
    more = "; print(*sys.modules, file=sys.stderr)"
    with leading(worker.socket):
        said = run([sys.executable, "-I", "-c", program + more], worker.environ)
        bare = run([sys.executable, "-I", "-c", "import sys, re" + more], worker.environ)
    assert said.out == "taken\n" and not (set(said.err.split()) - set(bare.err.split())) & SLOW


@pytest.mark.whole
def test_a_heartbeat_costs_little_more_than_the_interpreter() -> None:
    """G02: processor time, the least of twenty, the installed program to a bare start."""
    figure = heartbeats(rounds=20)
    assert figure.value <= MOST_HEARTBEAT, figure

"""Agents that work in the project itself, with the weaker walls: what Ganger believes is out of their reach."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from ganger.core.vocabulary import RunStatus, TaskStatus
from ganger.sandboxes import landlock
from tests.engine.run_projects import Project, task

pytestmark = pytest.mark.whole

HEAD = """
import json, os, socket, sys
task = os.environ["GANGER_TASK_ID"]
got = {}
def tried(name, way):
    try:
        got[name] = way()
    except Exception as problem:
        got[name] = None
def end(status="DONE"):
    print("GOT " + json.dumps(got))
    print("<<<TASK_RESULT_V2>>>")
    print(json.dumps({"contract_version": "2.0", "task_id": task, "status": status, "summary": "s", "writes": []}))
    print("<<<END_TASK_RESULT_V2>>>")
"""
FORGES = """
import sqlite3
shown = ".ganger/r1/ganger.db"
real = os.path.realpath(shown)
def forged(path):
    db = sqlite3.connect("file:" + path + "?mode=rw", uri=True, timeout=1)
    db.execute("DROP TRIGGER events_are_final")
    db.execute('''CREATE TRIGGER mine AFTER INSERT ON events WHEN new.type = 'verify_finished' BEGIN
        UPDATE events SET data = replace(data, 'false', 'true') WHERE seq = new.seq; END''')
    db.commit()
    return path
def read(path):
    return open(path, "rb").read().hex() or None
tried("store through its link", lambda: forged(shown))
tried("store itself", lambda: forged(real))
tried("store read", lambda: read(real))
tried("key", lambda: read(os.path.dirname(real) + "/worker.key"))
tried("key in the project", lambda: read(".ganger/r1/worker.key"))
tried("keeper's key", lambda: read(os.path.dirname(real) + "/keeper/key"))
tried("picture", lambda: os.listdir(os.path.dirname(real)))
end()
"""
# The name of the keeper's socket is to be read in /proc; who connects has the same user.
COMMANDS_KEEPER = """
sockets = [line.split()[-1] for line in open("/proc/net/unix") if "/ganger-" in line and line.rstrip().endswith("/s")]
launch = {"key": "k", "argv": ["/bin/sh", "-c", "echo escaped >{flag}"], "cwd": "/", "env": {}, "stdin": None,
    "log": "{flag}.log", "timeout_sec": 10, "limit_bytes": None}
def ancestors():
    pid = os.getpid()
    while pid > 1:
        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
        yield pid
def commanded(path):
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(5)
    line.connect(path)
    if json.loads(line.recv(4096))["keeper"] not in list(ancestors()):
        return None  # that of another run on this machine
    got["found"] = True
    line.sendall(json.dumps({"do": "start", "launch": launch, "grace": 1, "n": 1}).encode() + b"\\n")
    return line.recv(4096).decode() or None
for number, path in enumerate(sockets):
    tried(str(number), lambda: commanded(path))
end()
"""
FORGES_LOGS = """
import shutil
FORGED = "\\n".join(["<<<TASK_RESULT_V2>>>", json.dumps({"contract_version": "2.0", "task_id": "b", "status": "DONE",
    "summary": "forged", "writes": []}), "<<<END_TASK_RESULT_V2>>>", ""])
if task == "a":
    os.rename(".ganger/r1/logs", ".ganger/r1/away")
    os.makedirs(".ganger/r1/logs")
    for name in ("b.worker.1.log", "b.verify.1.log"):
        open(".ganger/r1/logs/" + name, "w").write(FORGED)
    end()
else:
    print("I have nothing to say.")
"""
REPLACES = """
import shutil
shutil.rmtree("away", ignore_errors=True)
os.rename(".ganger", "away")
HOW = {how!r}
if HOW == "whole":
    os.symlink({outside!r}, ".ganger")
elif HOW == "file":
    open(".ganger", "w").write("mine")
elif HOW == "run":
    os.mkdir(".ganger")
    os.symlink({outside!r}, ".ganger/r1")
elif HOW == "parts":
    os.makedirs(".ganger/r1/report.md/deep")
    os.symlink({victim!r}, ".ganger/r1/state.json")
    os.symlink({outside!r}, ".ganger/r1/logs")
    os.symlink({victim!r}, ".ganger/r1/ganger.db")
    os.symlink({victim!r}, ".ganger/.gitignore")
elif HOW == "pipes":
    os.makedirs(".ganger/r1")
    for name in ("state.json", "report.md", "logs", "progress.md"):
        os.mkfifo(".ganger/r1/" + name)
elif HOW == "store":
    os.makedirs(".ganger/r1")
    open(".ganger/r1/ganger.db", "w").write("mine")
elif HOW == "closed":
    os.makedirs(".ganger/r1")
    os.chmod(".ganger/r1", 0)
shutil.rmtree("away")
end()
"""


@pytest.fixture(autouse=True)
def only_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    if not landlock.is_there():
        pytest.skip("needs Landlock in the kernel")
    monkeypatch.setenv("GANGER_SANDBOX_USE", "auto")
    monkeypatch.setattr("ganger.sandboxes.choose.find_bwrap", lambda _path: None)


def project_of(folder: Path, code: str, *tasks: str, check: str = "true") -> Project:
    agent = folder / "agent.py"
    agent.write_text(HEAD + code)
    words = f'kind = "command"\nargv = {json.dumps([sys.executable, str(agent)])}'
    made = Project(folder / "p", [task(name) for name in tasks or ("a",)], agent=words)
    made.steps = ({"name": "test", "cmd": check},)
    return made.make()


def got_by(project: Project, name: str = "a") -> dict[str, object]:
    line = next(line for line in project.log(name).splitlines() if line.startswith("GOT "))
    found: dict[str, object] = json.loads(line.removeprefix("GOT "))
    return found


def test_an_agent_in_the_project_neither_writes_nor_reads_the_store_or_a_key(tmp_path: Path) -> None:
    """G05 G09 T19: a red check stays red, whatever triggers it tried to plant."""
    project = project_of(tmp_path, FORGES, check="false")
    assert project.run() == 1
    assert got_by(project) == dict.fromkeys(got_by(project)) and len(got_by(project)) == 7
    assert project.status() is TaskStatus.FAILED and project.state().status is not RunStatus.COMPLETED
    assert (project.root / ".ganger/r1/ganger.db").resolve() == (project.folder.path / "ganger.db").resolve()
    assert not project.folder.path.is_relative_to(project.root)


def test_an_agent_that_finds_the_keepers_socket_starts_nothing_outside_the_walls(tmp_path: Path) -> None:
    """G05 H08: sockets are reached behind these walls, and this one obeys only who has read the run's own key."""
    flag = tmp_path / "flag"
    project = project_of(tmp_path, COMMANDS_KEEPER.replace("{flag}", str(flag)))
    assert project.run() == 0
    got = got_by(project)
    assert got.pop("found", False) is True and set(got.values()) == {None}
    assert not flag.exists()


def test_a_log_forged_for_another_task_says_nothing(tmp_path: Path) -> None:
    """G05 T16: the answer of b is what b said; what is shown as its log is that, too."""
    project = project_of(tmp_path, FORGES_LOGS, "a", "b")
    assert project.run() != 0
    assert project.status("a") is TaskStatus.DONE and project.status("b") is not TaskStatus.DONE
    shown = (project.root / ".ganger/r1/logs/b.worker.1.log").read_text()
    assert "forged" not in project.log("b") and shown == project.log("b")


@pytest.mark.parametrize("how", ["whole", "file", "run", "parts", "pipes", "store", "closed"])
def test_what_an_agent_puts_in_the_place_of_ganger_s_files_is_neither_followed_nor_believed(
    tmp_path: Path, how: str
) -> None:
    """G05 G09: nothing outside is written, the run ends as it would, and what is shown is true again."""
    outside, victim = tmp_path / "outside", tmp_path / "victim"
    outside.mkdir()
    victim.write_text("mine")
    code = REPLACES.replace("{how!r}", repr(how)).replace("{outside!r}", repr(str(outside)))
    project = project_of(tmp_path, code.replace("{victim!r}", repr(str(victim))))
    assert project.run() == 0
    assert project.status() is TaskStatus.DONE
    assert victim.read_text() == "mine" and list(outside.iterdir()) == []
    shown = project.root / ".ganger" / "r1"
    if how != "closed" or os.geteuid() == 0:
        assert (shown / "state.json").read_text() == project.folder.state.read_text()
        assert (shown / "logs/a.worker.1.log").read_text() == project.log("a")
        assert stat.S_ISREG((shown / "report.md").lstat().st_mode)
        assert (shown / "ganger.db").resolve() == (project.folder.path / "ganger.db").resolve()
    # Reading commands look nowhere else either.
    assert project.ganger("status", "--json").returncode == 0
    assert project.run() == 0, "and the run is known to be through"


def test_a_store_planted_for_a_run_that_was_never_begun_is_not_believed(tmp_path: Path) -> None:
    """G05: neither shown nor continued; the person is told what to do with it."""
    plant = 'os.makedirs(".ganger/r2"); open(".ganger/r2/ganger.db", "wb").write(b"x" * 4096)\nend()\n'
    project = project_of(tmp_path, plant)
    assert project.run() == 0 and (project.root / ".ganger/r2/ganger.db").exists()
    later = Project(project.root, project.tasks, agent="")
    later.run_id = "r2"
    manifest = json.loads((project.root / "manifest.json").read_text()) | {"run_id": "r2"}
    (project.root / "manifest.json").write_text(json.dumps(manifest))
    assert json.loads(project.ganger("status", "--json").stdout)["run_id"] == "r1"
    answer = project.ganger("run", "--json")
    assert answer.returncode == 1 and json.loads(answer.stdout)["error"]["code"] == "STORE_FORGED"
    assert later.folder.path.parent == project.folder.path.parent


@pytest.mark.parametrize("name", ["ganger.toml", "manifest.json", "verify.json"])
def test_what_a_run_is_made_of_stays_as_it_was_begun(tmp_path: Path, name: str) -> None:
    """G09: a change of it by an agent changes nothing of this run, is seen, undone, and fails the attempt."""
    code = f'open({name!r}, "w").write("")\nend()\n'
    project = project_of(tmp_path, code)
    before = (project.root / name).read_bytes()
    assert project.run() != 0
    assert project.status() is not TaskStatus.DONE and (project.root / name).read_bytes() == before

"""Looking at a run needs nothing but the run: a read-only disk and broken settings do not stand in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.cli_project import CONFIG, ganger, make_project, task

pytestmark = pytest.mark.whole

GIT = '[workspace]\nmode = "local-git"\n'
LOOKS = (
    *("status", "status --json", "status --run r1", "workers", "tasks", "why one", "ledger", "logs one", "events"),
    *("replay", "patches", "inbox", "state export", "plan", "stop"),
)
BROKEN = {
    "no TOML": CONFIG + GIT + "policy = [[[",
    "broken at its beginning": "policy = [[[\n" + CONFIG,
    "no known section": CONFIG + GIT + "[polici]\nx = 1\n",
    "a wrong value": CONFIG + GIT + '[limits]\nworking_min = "soon"\n',
    "no such agent": CONFIG.replace('agent = "worker"', 'agent = "nobody"') + GIT,
    "bytes": "\ufffd\x00",
}


def git_run(root: Path) -> Path:
    """A run in a git mode that is over; its store lies in the project."""
    make_project(root, task("one"))
    (root / "ganger.toml").write_text(CONFIG + GIT)
    (root / ".gitignore").write_text(".ganger\n")
    person = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], [*person, "commit", "-qm", "begin"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    assert ganger("run", cwd=root).code == 0
    return root


def read_only(root: Path, *words: str) -> list[subprocess.CompletedProcess[bytes]]:
    """Each command with the project on a disk that cannot be written."""
    mounted = f"mount --bind {root} {root} && mount -o remount,bind,ro {root} && cd {root} && exec "
    program = f"{sys.executable} -m ganger "
    return [
        subprocess.run(["unshare", "-m", "sh", "-c", mounted + program + one], capture_output=True, check=False)
        for one in words
    ]


@pytest.mark.needs("root")
@pytest.mark.parametrize("left", ["nothing", "a log", "a log and its index"])
def test_a_run_on_a_read_only_disk_can_be_looked_at(tmp_path: Path, left: str) -> None:
    """G12 G10: whatever its last lead left beside the store."""
    database = git_run(tmp_path) / ".ganger" / "r1" / "ganger.db"
    for name in ("-wal", "-shm"):
        database.with_name(database.name + name).unlink(missing_ok=True)
    if left != "nothing":
        leave_log(database, index=left.endswith("index"))
    for command, done in zip(LOOKS, read_only(tmp_path, *LOOKS), strict=True):
        assert done.returncode == 0, (command, done.stderr)
    assert b"1 DONE" in read_only(tmp_path, "status")[0].stdout
    # No run could begin here, and that is what it is for to say.
    assert b"NOT_WRITABLE" in read_only(tmp_path, "validate")[0].stderr


def leave_log(database: Path, *, index: bool) -> None:
    """As a killed lead leaves it: the newest event is in the log only."""
    script = (
        "import apsw, os, sys\n"
        "db = apsw.Connection(sys.argv[1])\n"
        "db.execute('PRAGMA wal_autocheckpoint=0; INSERT INTO commands (at, kind, data) VALUES (1, 2, 3)').fetchall()\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(database)], check=True)
    assert database.with_name("ganger.db-wal").stat().st_size
    if not index:
        database.with_name("ganger.db-shm").unlink()


@pytest.mark.needs("root")
def test_what_would_change_a_run_on_a_read_only_disk_says_that(tmp_path: Path) -> None:
    """G12: one sentence, no traceback, nothing claimed that did not happen."""
    git_run(tmp_path)
    pause, clean, run = read_only(tmp_path, "pause", "clean", "run")
    assert (pause.returncode, run.returncode) == (1, 1) and b"read-only" in pause.stderr and b"read-only" in run.stderr
    assert b"freed" not in clean.stdout.split(b"\n")[0] and (tmp_path / ".ganger" / "r1" / "checks").is_dir()


@pytest.mark.parametrize("fault", BROKEN)
def test_a_run_can_be_looked_at_and_steered_while_the_settings_are_broken(tmp_path: Path, fault: str) -> None:
    """G12 G10: the fault is told beside the answer."""
    git_run(tmp_path)
    (tmp_path / "ganger.toml").write_text(BROKEN[fault])
    for command in (*LOOKS[:-3], "stop", "pause", "retry one --force"):
        answer = ganger(*command.split(), cwd=tmp_path)
        assert answer.code == 0 and answer.err.count("ganger.toml") == 1, (command, answer)
    assert ganger("run", cwd=tmp_path).code == 1


def test_a_state_folder_that_was_set_is_found_while_the_settings_are_broken(tmp_path: Path) -> None:
    """G12: what stands before the fault counts."""
    git_run(tmp_path)
    (tmp_path / ".ganger").rename(tmp_path / "runs")
    (tmp_path / "ganger.toml").write_text('state_dir = "runs"\n' + CONFIG + 'x = """\nnever closed\n')
    assert "1 DONE" in ganger("status", cwd=tmp_path).out


def test_a_session_finds_the_run_while_the_settings_are_broken(tmp_path: Path) -> None:
    """G02: also where the state folder was set; sessions go on working while a person mends a file."""
    git_run(tmp_path)
    (tmp_path / ".ganger").rename(tmp_path / "runs")
    for fault in ("policy = [[[", 'x = """\nnever closed\n'):
        (tmp_path / "ganger.toml").write_text('state_dir = "runs"  # here\n' + CONFIG + fault)
        answer = ganger("worker", "next", cwd=tmp_path)
        assert answer.code == 3 and "run r1 is over" in answer.out + answer.err, answer


def test_a_session_finds_the_run_where_the_users_own_settings_keep_it(tmp_path: Path) -> None:
    """G02: the state folder is where every other command sees it."""
    git_run(tmp_path)
    (tmp_path / ".ganger").rename(tmp_path / "runs")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/config.toml").write_text('state_dir = "runs"\n')
    for command, code in (("status", 0), ("worker next", 3)):
        answer = ganger(*command.split(), cwd=tmp_path, env={"GANGER_HOME": str(tmp_path / "home")})
        assert answer.code == code and "run r1" in answer.out + answer.err, answer


def test_broken_settings_in_the_environment_do_not_stop_looking(tmp_path: Path) -> None:
    """G12: they are told as well."""
    git_run(tmp_path)
    answer = ganger("status", cwd=tmp_path, env={"GANGER_NOTHING_KNOWN": "1"})
    assert answer.code == 0 and "GANGER_NOTHING_KNOWN" in answer.err


def test_a_secret_that_broken_settings_name_is_not_shown(tmp_path: Path) -> None:
    """D19: nobody can tell any more what the variable was for, so its value is taken out."""
    git_run(tmp_path)
    log = next((tmp_path / ".ganger" / "r1" / "logs").glob("one.worker.*.log"))
    log.write_text("it was tangerine-42-umbrella\n")
    (tmp_path / "ganger.toml").write_text("oops = [[[\n" + CONFIG + 'env = ["FRUIT"]\n')
    answer = ganger("logs", "one", cwd=tmp_path, env={"FRUIT": "tangerine-42-umbrella"})
    assert answer.code == 0 and "it was" in answer.out and "tangerine" not in answer.out


def test_doctor_goes_on_after_broken_settings(tmp_path: Path) -> None:
    """G12: what it can still tell, it tells."""
    git_run(tmp_path)
    (tmp_path / "ganger.toml").write_text(CONFIG + "[polici]\n")
    store = tmp_path / ".ganger" / "r1" / "ganger.db"
    store.write_bytes(b"no store")
    found = ganger("doctor", "--json", cwd=tmp_path).json["checks"]
    assert {"config", "run"} <= {check["name"] for check in found if check["level"] == "error"}


@pytest.mark.needs("root")
def test_another_user_is_told_whose_run_it_is(tmp_path: Path) -> None:
    """G12: not that there is none."""
    git_run(tmp_path)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    as_other = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"]
    for words in (["status"], ["status", "--run", "r1"], ["events", "--json"]):
        command = [*as_other, sys.executable, "-m", "ganger", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        said = json.loads(done.stdout)["error"]["message"] if "--json" in words else done.stderr
        assert done.returncode == 1 and "belongs to user 0" in said, done

"""`ganger hooks run claude` as a session calls it: who is kept going, how often, and everybody who is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ganger.hooks import keepalive
from tests.hooks.lead_stand_in import StandIn, moved_on
from tests.patience import stretched


@pytest.fixture
def lead(tmp_path: Path) -> Iterator[StandIn]:
    project = tmp_path / "project"
    project.mkdir()
    with StandIn(project) as found:
        yield found


def stops(lead: StandIn, **more: object) -> subprocess.CompletedProcess[str]:
    """A session of the project stops."""
    told = {"session_id": "s-1", "hook_event_name": "Stop", "cwd": str(lead.project), "stop_hook_active": False}
    return called(json.dumps({**told, **more}))


def called(stdin: str, **environ: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ganger", "hooks", "run", "claude"]
    env = {**os.environ, **environ}
    return subprocess.run(
        words, input=stdin, env=env, capture_output=True, text=True, check=False, timeout=stretched(30)
    )


def test_a_session_that_holds_a_task_goes_on_and_is_told_how_to_report(lead: StandIn) -> None:
    """H11: exit code 2, and what to do on stderr."""
    lead.claim("ada o'hara")
    done = stops(lead)
    assert (done.returncode, done.stdout) == (2, "")
    assert "task T1 (attempt 1)" in done.stderr
    assert """ganger worker report --worker 'ada o'"'"'hara' --status DONE""" in done.stderr
    assert lead.heard == ["brief"]


def test_the_lead_is_found_on_loopback_too(lead: StandIn) -> None:
    """H11: workers of another machine's shell speak HTTP."""
    lead.claim(by_url=True)
    assert stops(lead).returncode == 2


@pytest.mark.parametrize(
    "claim",
    [{"session": "s-2"}, {"session": ""}, {"reported": True}, {"done": True}, {"reported": None}, {"token": "w1.x"}],
    ids=["another session", "no session", "reported", "done", "unknown", "another run's token"],
)
def test_every_other_session_is_let_go(lead: StandIn, claim: dict[str, object]) -> None:
    """H11: it acts on its own session only."""
    lead.claim(**claim)  # type: ignore[arg-type]
    done = stops(lead)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("status", [401, 403, 404, 409])
def test_a_task_that_is_over_holds_nobody(lead: StandIn, status: int) -> None:
    """H11: whoever leads says that the attempt has ended."""
    lead.status = status
    lead.claim()
    assert stops(lead).returncode == 0


def test_nobody_is_held_when_nobody_leads(lead: StandIn, tmp_path: Path) -> None:
    """H11: a dead socket, a foreign address, none at all."""
    for report in (str(tmp_path / "gone.sock"), "http://127.0.0.1:1", "http://192.0.2.1:80", "", 7):
        lead.claim(report=report)
        assert stops(lead).returncode == 0


def test_it_is_told_three_times_in_a_row_and_again_once_something_moved(lead: StandIn) -> None:
    """H11: a session that cannot go on is not held for ever."""
    claim = lead.claim()
    assert [stops(lead, stop_hook_active=n > 0).returncode for n in range(5)] == [2, 2, 2, 0, 0]
    moved_on(claim)
    assert stops(lead).returncode == 2
    moved_on(lead.run / "desk")
    assert [stops(lead).returncode for _ in range(4)] == [2, 2, 2, 0]


def test_there_is_an_end_however_much_moves(lead: StandIn) -> None:
    """H11: somebody else may be what moves; another task begins at nought."""
    codes = []
    for _ in range(keepalive.IN_ALL + 1):
        moved_on(lead.claim())
        moved_on(lead.run / "desk")
        codes.append(stops(lead).returncode)
    assert codes == [2] * keepalive.IN_ALL + [0]
    lead.claim(attempt=2)
    assert stops(lead).returncode == 2


def test_where_nothing_can_be_counted_once_is_enough(lead: StandIn) -> None:
    """H11: stop_hook_active says that the session has been told already."""
    place = lead.claim().with_suffix(".hook")
    place.mkdir()
    assert [stops(lead, stop_hook_active=active).returncode for active in (False, True)] == [2, 0]


def test_a_session_whose_own_agents_work_is_not_disturbed(lead: StandIn) -> None:
    """H11: one of them may hold the task; the session is called again when they are through."""
    lead.claim()
    busy = {"background_tasks": [{"type": "subagent", "status": "running"}]}
    assert stops(lead, **busy).returncode == 0
    assert stops(lead, background_tasks=[{"type": "shell", "status": "running"}]).returncode == 2


@pytest.mark.parametrize(
    ("mate", "session", "code"),
    [("ada", "s-1", 2), ("ada", "", 2), ("ada", "s-9", 0), ("bob", "s-1", 0), ("", "s-1", 0)],
)
def test_a_teammate_is_known_by_its_name(lead: StandIn, mate: str, session: str, code: int) -> None:
    """H11: an idle teammate of this session that holds a task goes on; the claim of no other one matters."""
    lead.claim("ada", session=session)
    assert stops(lead, hook_event_name="TeammateIdle", teammate_name=mate).returncode == code


def test_a_session_in_a_workspace_is_a_session_of_the_project_around_it(lead: StandIn) -> None:
    """H11: a checkout holds a ganger.toml of its own; the session may also say where it was opened."""
    lead.claim()
    workspace = lead.run / "work" / "T1"
    workspace.mkdir(parents=True)
    (workspace / "ganger.toml").touch()
    assert stops(lead, cwd=str(workspace)).returncode == 2
    told = json.dumps({"session_id": "s-1", "hook_event_name": "Stop", "cwd": "/"})
    assert called(told, CLAUDE_PROJECT_DIR=str(lead.project)).returncode == 2


def test_a_project_may_keep_its_runs_elsewhere(lead: StandIn) -> None:
    """H11: state_dir of ganger.toml."""
    lead.claim()
    (lead.project / ".ganger").rename(lead.project / "runs")
    assert stops(lead).returncode == 0
    (lead.project / "ganger.toml").write_text('state_dir = "runs"\n')
    assert stops(lead).returncode == 2


@pytest.mark.parametrize("stdin", ["", "{", "[]", "null", "7", "{}", '{"hook_event_name": "Stop", "session_id": 7}'])
def test_nonsense_on_stdin_lets_the_session_go_in_silence(stdin: str) -> None:
    """H11: whatever is unexpected is no reason to hold anybody."""
    done = called(stdin, CLAUDE_PROJECT_DIR="/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"session": "s-1"}'])
def test_a_damaged_claim_holds_nobody_and_hides_no_other(lead: StandIn, damage: bytes) -> None:
    """H11: files of the run's folder may be torn or foreign."""
    lead.claim("a").write_bytes(damage)
    assert stops(lead).returncode == 0
    lead.claim("b")
    assert stops(lead).returncode == 2


def test_a_session_learns_its_name(lead: StandIn, tmp_path: Path) -> None:
    """H11: it is put where every later command of the session finds it, and nothing that a shell would run."""
    file = tmp_path / "env.sh"
    told = {"hook_event_name": "SessionStart", "cwd": str(lead.project)}
    for session in ("0f3c-11", "x; touch /tmp/y", "$(id)", ""):
        assert called(json.dumps({**told, "session_id": session}), CLAUDE_ENV_FILE=str(file)).returncode == 0
    assert file.read_text() == "export GANGER_SESSION=0f3c-11\n"


def test_a_session_elsewhere_is_not_named(tmp_path: Path) -> None:
    """H11: sessions outside of any project are nobody's."""
    told = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(tmp_path)})
    called(told, CLAUDE_ENV_FILE=str(tmp_path / "env.sh"), CLAUDE_PROJECT_DIR="")
    assert not (tmp_path / "env.sh").exists()


def test_it_imports_nothing_heavy() -> None:
    """H11 H12: it runs at every stop of every session of the project."""
    words = [sys.executable, "-X", "importtime", "-m", "ganger", "hooks", "run", "claude"]
    done = subprocess.run(words, input="{}", capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "ganger.hooks.keepalive" in loaded
    assert not loaded & {"click", "pydantic", "apsw", "asyncio", "ganger.config", "ganger.errors", "socket", "tomllib"}


WATCHED = """
import sys
seen = []
watched = ("open", "os.listdir", "os.scandir")
sys.addaudithook(lambda name, given: seen.append(str(given[0])) if name in watched else None)
from ganger.hooks.keepalive import main
code = main(["claude"], {})
print("\\n".join(seen))
sys.exit(code)
"""


def test_it_reads_nothing_of_the_session_s_own_files(lead: StandIn, tmp_path: Path) -> None:
    """H12: neither its transcript nor its home, only what it is given and Ganger's own claims."""
    lead.claim()
    private = tmp_path / ".claude"
    told = {"session_id": "s-1", "hook_event_name": "Stop", "transcript_path": f"{private}/t.jsonl"}
    stdin = json.dumps({**told, "cwd": str(lead.project)})
    done = subprocess.run([sys.executable, "-c", WATCHED], input=stdin, capture_output=True, text=True, check=False)
    seen = [line for line in done.stdout.splitlines() if line.startswith(str(tmp_path))]
    assert done.returncode == 2, done.stderr
    assert str(lead.run / "workers" / "ada.json") in seen
    assert not [line for line in seen if line.startswith((str(private), str(lead.project / ".claude")))]

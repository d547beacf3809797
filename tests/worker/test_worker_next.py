"""`ganger worker next`: a session that somebody opened finds the run, gets a task, and is known from then on."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.core.names import file_stem
from ganger.worker.claims import session_of_caller, stem
from tests.worker.little_lead import KEY, TOKEN, Body, Lead, Said, Worker, leading, refused, run, taken

JOIN = "j1." + hmac.new(bytes.fromhex(KEY), b"join", hashlib.sha256).hexdigest()[:40]
NONE = {"ok": True, "task": None, "over": False, "why": "all tasks are taken", "retry_sec": 0.05}


@dataclass(frozen=True)
class House:
    """A project with a run whose lead may be there or not."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / ".ganger" / "night"

    @property
    def socket(self) -> str:
        return str(self.root / "s")

    def make(self, name: str = "night", state: str = ".ganger") -> Path:
        folder = self.root / state / name
        (folder / "desks" / "one.1").mkdir(parents=True)
        (folder / "ganger.db").touch()
        (folder / "worker.key").write_text(KEY)
        (folder / "worker.json").write_text(json.dumps({"socket": self.socket, "url": "", "protocol": "1"}))
        return folder

    def reply(self, folder: Path | None = None) -> Body:
        desk = (folder or self.folder) / "desks" / "one.1"
        task = {"id": "one", "attempt": 1, "role": "worker", "prompt": "Write\nit.", "workspace": str(self.root)}
        task |= {"timeout_sec": 600, "sections": ["task", "contract"]}
        place = {"token": TOKEN, "report": self.socket, "url": "", "desk": str(desk), "run_id": "night"}
        return {"ok": True, "task": task, **place, "heartbeat_sec": 15, "lease_sec": 900, "worker": "me"}

    def say(self, *words: str, cwd: Path | None = None, **environ: str) -> Said:
        world = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "USER": "u", **environ}
        return run(Worker(self.socket, self.root).argv(*words), world, cwd=cwd or self.root)

    def claim(self, worker: str = "me") -> Body:
        found: Body = json.loads((self.folder / "workers" / f"{stem(worker)}.json").read_text())
        return found


@pytest.fixture
def house(tmp_path: Path) -> House:
    (tmp_path / "ganger.toml").write_text("")
    house = House(tmp_path)
    house.make()
    return house


@pytest.fixture
def lead(house: House) -> Iterator[Lead]:
    with leading(
        house.socket, lambda verb, body: (200, house.reply()) if verb == "next" else taken(verb, body)
    ) as lead:
        yield lead


@pytest.mark.parametrize("name", ["night", "a/b", "../x", ".hidden", "-rf", "ü", "", "x" * 300, "me@host"])
def test_runs_and_workers_have_the_file_names_they_have_elsewhere(name: str) -> None:
    """G02: the worker's side finds what the lead's side wrote."""
    assert stem(name) == file_stem(name)


def test_a_session_gets_a_task_with_what_it_needs_to_go_on(house: House, lead: Lead) -> None:
    """G02: the prompt, and how to report."""
    said = house.say("next", "--worker", "me", "--role", "worker", GANGER_SESSION="s-1")
    assert said.code == 0 and "Write\nit." in said.out and "ganger worker report" in said.out
    ((verb, token, body),) = lead.said
    assert (verb, token, body["worker"], body["roles"], body["session"]) == ("next", JOIN, "me", ["worker"], "s-1")


def test_what_it_was_given_is_remembered_and_private(house: House, lead: Lead) -> None:
    """G02: later calls need no settings."""
    house.say("next", "--worker", "me", GANGER_SESSION="s-1")
    claim, file = house.claim(), house.folder / "workers" / "me.json"
    known = {key: claim[key] for key in ("worker", "session", "task_id", "attempt", "token", "reported", "done")}
    assert list(known.values()) == ["me", "s-1", "one", 1, TOKEN, False, False] and claim["report"] and claim["desk"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert house.say("heartbeat").code == 0 and lead.said[-1][:2] == ("heartbeat", TOKEN)


def test_a_report_and_the_mark_are_noted_on_the_claim(house: House, lead: Lead) -> None:
    """H07: the mark only once it is acknowledged."""
    house.say("next", "--worker", "me")
    assert house.say("report", "--status", "DONE", "--summary", "s").code == 0 and house.claim()["reported"] is True
    lead.answers = refused("LEAD_BUSY", 503)
    assert house.say("done").code == 0 and house.claim()["done"] is False
    lead.answers = taken
    assert house.say("heartbeat").code == 0 and house.claim()["done"] is True


def test_an_attempt_that_is_over_after_its_report_needs_no_mark(house: House, lead: Lead) -> None:
    """H07: and without a report it does."""
    house.say("next", "--worker", "me")
    lead.answers = refused("ATTEMPT_OVER")
    assert house.say("done").code == 1 and house.claim()["done"] is False
    lead.answers = taken
    house.say("report", "--status", "DONE", "--summary", "s")
    lead.answers = refused("ATTEMPT_OVER")
    assert house.say("done").code == 0 and house.claim()["done"] is True


def test_a_report_that_was_kept_and_then_refused_is_open_again(house: House, lead: Lead) -> None:
    """H07: whoever holds the task has still to answer."""
    house.say("next", "--worker", "me")
    lead.answers = refused("LEAD_BUSY", 503)
    house.say("report", "--status", "DONE", "--summary", "s")
    assert house.claim()["reported"] is True
    lead.answers = lambda verb, body: refused("NO_SENTINEL", 400)(verb, body) if verb == "report" else taken(verb, body)
    assert "an earlier report was refused" in house.say("heartbeat").err and house.claim()["reported"] is False


def test_shell_lines_make_a_whole_environment(house: House, lead: Lead) -> None:
    """G02: a shell script is a worker."""
    lines = house.say("next", "--worker", "it's me", "--shell").out
    script = f'{lines}cat "$GANGER_PROMPT_FILE"; echo; exec {shlex.join(Worker(house.socket, house.root).argv("done"))}'
    done = subprocess.run(["sh", "-c", script], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert done.stdout == "Write\nit.\ntaken\n" and lead.verbs() == ["next", "done"]
    assert house.claim("it's me")["done"] is True


def test_json_has_all_of_the_reply(house: House, lead: Lead) -> None:
    """G02: for programs."""
    answer = house.say("next", "--json").json()
    assert answer["schema"] == "ganger.worker_next/1" and answer["task"]["id"] == "one" and answer["token"] == TOKEN


@pytest.mark.parametrize("over", [False, True])
def test_no_task_is_told_with_its_reason(house: House, lead: Lead, over: bool) -> None:
    """Z07: exit 3."""
    lead.answers = lambda verb, body: (200, {**NONE, "over": over})
    said = house.say("next", "--wait=30") if over else house.say("next")
    assert said.code == 3 and "all tasks are taken" in said.err and not said.out
    assert house.say("next", "--json", *["--wait"] * over).json()["over"] is over


def test_waiting_asks_until_there_is_one_each_time_under_a_new_name(house: House, lead: Lead) -> None:
    """G02: and an answer that got lost is asked for again under its own."""
    replies = [(200, NONE), None, (200, NONE), (200, house.reply())]
    lead.answers = lambda verb, body: replies[len(lead.said) - 1]
    assert house.say("next", "--wait", "30").code == 0
    first, lost, again, last = (body["id"] for _, _, body in lead.said)
    assert lost == again and len({first, lost, last}) == 3
    assert all(0 < body["wait_sec"] <= 30 for _, _, body in lead.said)


@pytest.mark.parametrize("named", [(), ("--run", "night")], ids=["newest", "named"])
def test_waiting_outlasts_a_lead_that_is_away(tmp_path: Path, named: tuple[str, ...]) -> None:
    """G02: also before there is a run; it says so once, and goes on when somebody leads."""
    (tmp_path / "ganger.toml").write_text("")
    house = House(tmp_path)
    argv = Worker(house.socket, house.root).argv("next", "--wait", *named)
    world = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    with subprocess.Popen(argv, cwd=house.root, env=world, stdout=-1, stderr=-1, text=True) as call:
        assert call.stderr is not None and "; waiting" in call.stderr.readline()
        house.make()
        with leading(house.socket, lambda verb, body: (200, house.reply())) as lead:
            assert call.wait(30) == 0 and lead.verbs() == ["next"]


@pytest.mark.parametrize("words", [(), ("--wait",), ("--json",)])
@pytest.mark.parametrize("status", ["COMPLETED", "ABORTED"])
def test_nobody_waits_for_a_run_that_is_over(house: House, words: tuple[str, ...], status: str) -> None:
    """Z07: exit 3, also when nobody is there any more to say so."""
    (house.folder / "state.json").write_text(json.dumps({"run_id": "night", "run_status": status}, indent=2))
    said = house.say("next", *words)
    assert said.code == 3 and "run night is over" in said.out + said.err and "LEAD_AWAY" not in said.err


def test_who_reported_last_ends_well_although_everything_is_gone(house: House) -> None:
    """H07: the report was taken, and with it the run ended, its desk and its lead."""
    with leading(house.socket, lambda verb, body: (200, house.reply()) if verb == "next" else taken(verb, body)):
        house.say("next", "--worker", "me")
        house.say("report", "--status", "DONE", "--summary", "s")
    shutil.rmtree(house.folder / "desks")
    assert house.say("done").code == 0 and house.claim()["done"] is True


def test_a_lead_that_is_away_blocks_who_does_not_wait(house: House) -> None:
    """Z07: exit 3."""
    said = house.say("next")
    assert said.code == 3 and "ganger run" in said.err


@pytest.mark.parametrize("words", [("next",), ("next", "--wait", "0.2"), ("heartbeat",), ("milestone", "half")])
def test_a_lead_that_is_there_is_not_called_away(house: House, lead: Lead, words: tuple[str, ...]) -> None:
    """H07: what it cannot take now is told with its own reason."""
    house.say("next", "--worker", "me")
    lead.answers = refused("TOO_MANY", 503)
    said = house.say(*words, "--worker", "me")
    told = said.out + said.err
    assert "the lead can" in told and "(no)" in told and "no process leads" not in told and "is back" not in told


@pytest.mark.parametrize("words", [("next",), ("next", "--wait"), ("next", "--worker", "other")])
def test_a_started_worker_is_told_that_it_cannot_ask_from_inside(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Where it sees no run, there may well be one."""
    (tmp_path / "ganger.toml").write_text("")
    said = House(tmp_path).say(*words, GANGER_TOKEN=TOKEN, GANGER_REPORT="/nowhere", GANGER_TASK_ID="one")
    assert said.code == 1 and "NOT_ALLOWED" in said.err and "no run yet" not in said.err


def test_what_was_kept_of_the_last_task_goes_before_the_question(house: House, lead: Lead) -> None:
    """H07: else it would be given the same task again."""
    house.say("next", "--worker", "me")
    lead.answers = refused("LEAD_BUSY", 503)
    house.say("report", "--status", "DONE", "--summary", "s")
    assert house.say("next", "--worker", "me").code == 3 and "next" not in lead.verbs()[2:]
    lead.answers = lambda verb, body: (200, NONE) if verb == "next" else taken(verb, body)
    house.say("next", "--worker", "me")
    assert lead.verbs()[-2:] == ["report", "next"]


def test_workers_side_by_side_must_say_who_they_are(house: House, lead: Lead) -> None:
    """G02: each by its flag, its environment or its session."""
    lead.answers = lambda verb, body: (200, {**house.reply(), "worker": body.get("worker", "")})
    for name in ("me", "you"):
        house.say("next", "--worker", name, GANGER_SESSION=f"s-{name}")
    said = house.say("heartbeat")
    assert said.code == 1 and "me, you" in said.err and "--worker me" in said.err
    assert house.say("heartbeat", "--worker", "you").code == 0 and house.say("heartbeat", GANGER_WORKER="me").code == 0
    assert house.say("heartbeat", GANGER_SESSION="s-you").code == 0


# A program that runs one command after the other, each in a shell of its own and without a terminal.
AGENT = """
import subprocess, sys
for line in sys.stdin:
    words = ["sh", "-c", line.strip() + "; true"]
    print(subprocess.call(words, stdin=-3, stdout=-3, stderr=-3, start_new_session=True), flush=True)
"""


@contextmanager
def agent_session(house: House) -> Iterator[Callable[..., None]]:
    world = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "USER": "u"}
    argv = [sys.executable, "-c", AGENT]
    with subprocess.Popen(argv, env=world, cwd=house.root, stdin=-1, stdout=-1, text=True) as agent:

        def run_in_it(*words: str) -> None:
            assert agent.stdin is not None and agent.stdout is not None
            agent.stdin.write(shlex.join(Worker(house.socket, house.root).argv(*words)) + "\n")
            agent.stdin.flush()
            agent.stdout.readline()

        yield run_in_it
        assert agent.stdin is not None
        agent.stdin.close()


def test_two_agent_sessions_of_one_person_are_two_workers(house: House, lead: Lead) -> None:
    """W03 G02: each is one over all its commands, and speaks for its own task, though it has no terminal."""
    lead.answers = lambda verb, body: (
        200,
        {**house.reply(), "worker": body.get("worker", ""), "token": token_of(body)},
    )
    with agent_session(house) as one, agent_session(house) as other:
        for run_in_it in (one, one, other):
            run_in_it("next")
        first, again, second = (body["worker"] for _, _, body in lead.said)
        assert first == again != second and first.startswith("u@") and second.startswith("u@")
        for run_in_it in (one, other):
            run_in_it("heartbeat")
    assert [token for _, token, _ in lead.said[3:]] == [f"w1.{first}", f"w1.{second}"]


def token_of(body: Body) -> str:
    return f"w1.{body.get('worker', '')}"


def test_the_look_at_the_callers_is_cheap_and_stays_below_the_first_process() -> None:
    """Z09: a few files are read; where nothing can be told, nothing is."""
    began = time.perf_counter()
    found = {session_of_caller() for _ in range(100)}
    assert len(found) == 1 and time.perf_counter() - began < 1.0 and not next(iter(found)).startswith("1-")


@pytest.mark.parametrize(
    ("environ", "name"),
    [({}, "u@"), ({"GANGER_SESSION": "0123456789"}, "/01234567"), ({"GANGER_WORKER": "w"}, "w")],
    ids=["user and host", "session", "environment"],
)
def test_a_worker_has_a_name_by_itself(house: House, lead: Lead, environ: dict[str, str], name: str) -> None:
    """G02: two sessions of one person are two workers."""
    house.say("next", cwd=None, **environ)
    assert name in lead.said[0][2]["worker"]


def test_the_newest_run_is_meant_unless_one_is_named(house: House, lead: Lead) -> None:
    """G02: as with every command."""
    newer = house.make("newer")
    (newer / "led.json").write_text('{"number": 1, "folder": "newer"}')
    os.utime(house.folder / "ganger.db", (4e9, 4e9))
    assert house.say("next").code == 0 and list((newer / "workers").glob("*.json"))
    assert house.say("next", "--run", "night").code == 0 and list((house.folder / "workers").glob("*.json"))
    assert house.say("next", "--run", "frob").code == 1


def test_inside_a_workspace_the_project_above_is_meant(house: House, lead: Lead) -> None:
    """G02: a checkout holds a project file of its own."""
    inner = house.folder / "work" / "one.1"
    inner.mkdir(parents=True)
    (inner / "ganger.toml").write_text("")
    assert house.say("next", cwd=inner).code == 0 and house.say("heartbeat", cwd=inner).code == 0


@pytest.mark.parametrize("python", ["3.9", "3.10", sys.executable])
def test_the_place_of_runs_may_be_set(tmp_path: Path, python: str) -> None:
    """G02: in the project file or the environment; also read without tomllib."""
    house, program = House(tmp_path), python_of(python)
    (tmp_path / "ganger.toml").write_text('manifest = "m.json"\nstate_dir = "runs"  # here\n[policy]\n')
    folder = house.make(state="runs")
    with leading(house.socket, lambda verb, body: (200, house.reply(folder))) as lead:
        argv = [program, *Worker(house.socket, tmp_path).argv("next")[1:]]
        assert run(argv, {"PATH": os.environ["PATH"]}, cwd=tmp_path).code == 0 and lead.verbs() == ["next"]


def python_of(version: str) -> str:
    """An interpreter of this version, if the machine has one."""
    if version.startswith("/"):
        return version
    found = subprocess.run(["sh", "-c", f"command -v python{version}"], capture_output=True, text=True).stdout.strip()
    if not found or subprocess.run([found, "-c", ""], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version}")
    return found


def test_no_token_is_shown_to_somebody_elses_socket(house: House) -> None:
    """H07: sockets lie where anybody can make some."""
    if os.geteuid():
        pytest.skip("only root can play somebody else")
    with leading(house.socket) as lead:
        os.chown(house.socket, 12345, 12345)
        said = house.say("next", "--wait")
    assert said.code == 1 and "does not belong to the run's owner" in said.err and not lead.said


@pytest.mark.parametrize("what", ["worker.json", "worker.key"])
def test_damaged_files_of_a_run_are_told_plainly(house: House, what: str) -> None:
    """Z07: never a traceback."""
    (house.folder / what).write_text("{")
    assert house.say("next").code in (1, 3)

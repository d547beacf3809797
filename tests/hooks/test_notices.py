"""What happens in a run reaches programs, addresses and the desktop, and nothing of that can hold up the lead."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ganger.app.notices import hook_files, notices_of, try_all
from ganger.config import Project, load_project
from ganger.core import events as ev
from ganger.core.events.notable import GROUPS, is_wanted, sentence
from ganger.core.vocabulary import BlockReason, RunStatus, TaskStatus
from ganger.errors import GangerError, InputError
from ganger.notices.apprise_urls import has_apprise
from ganger.notices.dispatcher import LOG, Notices
from tests.patience import until

ASKED = ev.QuestionAsked("q-1", "T1", "ambiguous_spec", "Which of the two?\x1b[31m\nReally?")
FINISHED = ev.RunFinished(RunStatus.COMPLETED, None, {"DONE": 2, "FAILED": 0})
AT = "2026-01-01T00:00:00.000Z"
NOTING = """
import json, os, sys, pathlib
event = json.load(sys.stdin)
names = {name: os.environ.get(name) for name in ("GANGER_RUN_ID", "GANGER_TASK_ID", "GANGER_EVENT", "MY_API_KEY")}
with open(sys.argv[1], "a") as file:
    print(json.dumps({"argv": sys.argv[2:], "event": event, "env": names, "cwd": os.getcwd()}), file=file)
"""


def hook(script: str, *words: str, on: str = '["question"]', more: str = "") -> str:
    argv = json.dumps([sys.executable, "-c", script, *words])
    return f"[[hooks]]\non = {on}\nrun = {argv}\n{more}\n"


@dataclass
class Told:
    """A project with these settings, and what its hook noted."""

    root: Path
    settings: str
    after_seq: int = 0
    events: list[ev.Recorded] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.run.mkdir(parents=True, exist_ok=True)
        (self.root / "ganger.toml").write_text(self.settings)

    @property
    def run(self) -> Path:
        return self.root / ".ganger" / "r1"

    @property
    def noted(self) -> Path:
        return self.root / "noted"

    def project(self) -> Project:
        return load_project(self.root)

    def notices(self) -> Notices:
        return notices_of(self.project(), "r1", self.run, after_seq=self.after_seq)

    def tell(self, *events: ev.Event, first: int = 1, seconds: float = 20) -> list[Any]:
        """What the hook noted of these events, once the run is over."""
        notices = self.notices()
        for number, event in enumerate(events, first):
            notices.on_event(ev.Recorded(number, AT, event))
        asyncio.run(notices.close(seconds))
        return [json.loads(line) for line in self.noted.read_text().splitlines()] if self.noted.exists() else []

    @property
    def log(self) -> str:
        return (self.run / LOG).read_text() if (self.run / LOG).exists() else ""


def noting(root: Path, *words: str, on: str = '["question"]') -> Told:
    return Told(root, hook(NOTING, str(root / "noted"), *words, on=on))


def test_a_program_gets_the_event_filled_into_its_words_and_on_its_stdin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Z06: no shell, no secret, nothing that steers a terminal."""
    monkeypatch.setenv("MY_API_KEY", "x")
    told = noting(tmp_path, "--about={task}", "{kind}", "{text}", "{run} {event} {other} {{task}}", "$HOME")
    (found,) = told.tell(ASKED, FINISHED)
    assert found["argv"] == [
        "--about=T1", "ambiguous_spec", "q-1 ambiguous_spec: Which of the two? [31m Really?",
        "r1 question_asked {other} {T1}", "$HOME",
    ]  # fmt: skip
    assert (found["event"]["type"], found["event"]["seq"], found["event"]["question"]) == ("question_asked", 1, "q-1")
    assert found["env"] == {
        "GANGER_RUN_ID": "r1", "GANGER_TASK_ID": "T1", "GANGER_EVENT": "question_asked", "MY_API_KEY": None,
    }  # fmt: skip
    assert (found["cwd"], told.log) == (str(tmp_path), "")


def test_what_an_agent_wrote_is_neither_an_option_nor_a_placeholder(tmp_path: Path) -> None:
    """Z06: its words are data."""
    told = noting(tmp_path, "{task}", "-x{task}", on='["attempt_failed"]')
    (found,) = told.tell(ev.AttemptFailed("--rm {text}", 1, "crash", "s", "d", "c"))
    assert found["argv"] == [" --rm {text}", "-x--rm {text}"]


def settled(status: TaskStatus, reason: BlockReason | None = None, *, final: bool = True) -> ev.TaskSettled:
    return ev.TaskSettled("T1", status, "why", reason, final)


@pytest.mark.parametrize(
    ("event", "groups"),
    [
        (ASKED, "question"),
        (ev.QuestionRaised("q-1", 2), "question"),
        (FINISHED, "finish"),
        (ev.RunFinished(RunStatus.ABORTED, "money", {}), "finish failure"),
        (settled(TaskStatus.FAILED), "failure"),
        (settled(TaskStatus.ESCALATED), "failure"),
        (settled(TaskStatus.BLOCKED, BlockReason.EXTERNAL), "failure"),
        (settled(TaskStatus.BLOCKED, BlockReason.DEPENDENCY_FAILED), ""),
        (settled(TaskStatus.BLOCKED, BlockReason.QUOTA_WAIT, final=False), ""),
        (settled(TaskStatus.DONE), ""),
        (ev.RunPaused("lunch"), ""),
    ],
)
def test_groups_hold_what_a_person_would_want_to_know(event: ev.Event, groups: str) -> None:
    """Z06: one failure is told once, not once for everything that waits for it."""
    assert [group for group in GROUPS if is_wanted(event, [group])] == groups.split()
    assert is_wanted(event, [ev.type_name(event)])
    assert sentence(event)


def test_a_new_lead_does_not_tell_old_events_again(tmp_path: Path) -> None:
    """Z06: at most once, whoever leads and however often an event is shown."""
    told = noting(tmp_path)
    told.after_seq = 2
    found = told.tell(ASKED, ASKED, ASKED)
    assert [row["event"]["seq"] for row in found] == [3]
    notices = told.notices()
    for seq in (3, 3, 2):
        notices.on_event(ev.Recorded(seq, AT, ASKED))
    asyncio.run(notices.close())
    assert len(told.noted.read_text().splitlines()) == 2


def test_a_notice_before_its_event_is_shown_twice_would_be_caught(tmp_path: Path) -> None:
    """Z06: a planted bug. Without the last number told, a replay tells everything again."""

    class Forgetful(Notices):
        def on_event(self, recorded: ev.Recorded) -> None:
            self._after_seq = 0
            super().on_event(recorded)

    told = noting(tmp_path)
    notices = told.notices()
    notices.__class__ = Forgetful
    for _ in range(2):
        notices.on_event(ev.Recorded(1, AT, ASKED))
    asyncio.run(notices.close(20))
    assert len(told.noted.read_text().splitlines()) == 2


HANGING = """
import subprocess, sys, time
with open(sys.argv[1], "w") as file:
    print(subprocess.Popen(["sleep", "300"]).pid, file=file)
time.sleep(300)
"""


def is_gone(pid_file: Path) -> bool:
    status = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_hook_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    """Z06 H12: the lead goes on, other ways go on, what waits is bounded, and the end comes."""
    pid = tmp_path / "pid"
    told = Told(tmp_path, hook(HANGING, str(pid)) + hook(NOTING, str(tmp_path / "noted")))
    notices = told.notices()
    began = time.monotonic()
    for seq in range(1, 260):
        notices.on_event(ev.Recorded(seq, AT, ASKED))
    assert time.monotonic() - began < 2
    until(lambda: pid.exists() and pid.read_text() and told.noted.exists())
    asyncio.run(notices.close(0.5))
    until(lambda: is_gone(pid))
    assert "left out, 200 are waiting" in told.log
    assert "left out, the run was over" in told.log
    assert "ended with the run" in told.log


def test_a_hook_has_a_time_limit_and_its_children_end_with_it(tmp_path: Path) -> None:
    """Z06: and the next notice gets its turn."""
    told = Told(tmp_path, hook(HANGING, str(tmp_path / "pid"), more="timeout_sec = 0.5"))
    told.tell(ASKED)
    assert "event 1 question_asked: took 0.5 s" in told.log
    until(lambda: is_gone(tmp_path / "pid"))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('no\\nroute')", "exit code 1: no route"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("import sys; sys.stderr.write('x' * 10_000_000); sys.exit(3)", "exit code 3: xxx"),
    ],
)
def test_a_hook_that_fails_is_noted_in_the_run_s_folder(tmp_path: Path, script: str, said: str) -> None:
    """Z06: one line each, of a sensible length."""
    told = Told(tmp_path, hook(script))
    told.tell(ASKED)
    (line,) = told.log.splitlines()
    assert said in line and len(line) < 3000


def test_a_hook_whose_child_lives_on_does_not_keep_its_turn(tmp_path: Path) -> None:
    """Z06: a child that holds its stderr is not waited for."""
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '30']).pid, file=open(sys.argv[1], 'w'))"
    told = Told(tmp_path, hook(script, str(tmp_path / "pid")))
    began = time.monotonic()
    told.tell(ASKED)
    os.kill(int((tmp_path / "pid").read_text()), 9)
    assert time.monotonic() - began < 10
    assert told.log == ""


def test_a_program_that_is_not_there_is_noted(tmp_path: Path) -> None:
    """Z06: nothing is raised."""
    told = Told(tmp_path, '[[hooks]]\non = ["finish"]\nrun = ["no-such-program-here"]\n')
    told.tell(FINISHED)
    assert "hook no-such-program-here: event 1 run_finished: cannot be started" in told.log


def test_a_program_in_the_current_folder_is_not_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Z06: an agent could have put it there. One that is named by its path is the operator's choice."""
    program = tmp_path / "tell-me"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    Told(tmp_path, '[[hooks]]\non = ["finish"]\nrun = ["tell-me"]\n').tell(FINISHED)
    assert not (tmp_path / "called").exists()
    named = Told(tmp_path, '[[hooks]]\non = ["finish"]\nrun = ["./tell-me"]\n')
    named.tell(FINISHED)
    assert (tmp_path / "called").exists()
    assert hook_files(named.project()) == [program]


def test_a_listener_never_raises(tmp_path: Path) -> None:
    """Z06: not even when the event makes no sense."""
    notices = noting(tmp_path).notices()
    notices.on_event(ev.Recorded(1, AT, object()))  # type: ignore[arg-type]
    asyncio.run(notices.close())


# --- addresses and the desktop ----------------------------------------------------------------------------------------


@dataclass
class Web:
    """Whatever is posted to loopback."""

    status: int = 200
    posted: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                web.posted.append((self.path, body))
                self.send_response(web.status)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"


@pytest.fixture
def web() -> Iterator[Web]:
    found = Web()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_a_webhook_gets_the_event_as_json(tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Z06: the address may come from a variable, and is never written down."""
    monkeypatch.setenv("MY_HOOK", f"http://{web.place}/secret-path")
    told = Told(tmp_path, '[notify]\nwebhook = "env:MY_HOOK"\n')
    told.tell(ASKED, ev.RunPaused("x"), FINISHED)
    assert [path for path, _ in web.posted] == ["/secret-path"] * 2
    assert [json.loads(body)["type"] for _, body in web.posted] == ["question_asked", "run_finished"]
    assert json.loads(web.posted[1][1])["sentence"] == "run COMPLETED; 2 DONE"
    web.status = 500
    told.tell(FINISHED)
    assert "webhook 127.0.0.1: event 1 run_finished: answered 500" in told.log
    assert "secret-path" not in told.log


@pytest.mark.parametrize(
    ("address", "said"), [("http://127.0.0.1:1/x", "cannot be reached"), ("file:///etc/passwd", "is not an http")]
)
def test_a_webhook_that_cannot_be_reached_is_noted(tmp_path: Path, address: str, said: str) -> None:
    """Z06: nothing is raised, and no other kind of address is opened."""
    told = Told(tmp_path, f'[notify]\nwebhook = "{address}"\n')
    told.tell(FINISHED)
    assert said in told.log


def test_the_desktop_is_told_through_notify_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Z06: where there is none, the log says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    told = Told(tmp_path, "[notify]\ndesktop = true\n")
    told.tell(ASKED)
    assert "desktop: event 1 question_asked: notify-send is not on PATH" in told.log
    program = folder / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/shown\n')
    program.chmod(0o755)
    told.tell(ASKED)
    shown = (tmp_path / "shown").read_text()
    assert shown.startswith("--app-name=Ganger|--|Ganger r1: T1|q-1 ambiguous_spec: Which of the two?")


@pytest.mark.skipif(has_apprise(), reason="apprise is here")
def test_addresses_for_a_library_that_is_missing_are_refused_before_the_run(tmp_path: Path) -> None:
    """Z06: with the way to get it."""
    with pytest.raises(GangerError, match="apprise") as refused:
        Told(tmp_path, '[notify]\nurls = ["json://127.0.0.1"]\n').notices()
    assert (refused.value.code, "ganger[notify]" in refused.value.hint) == ("NOTIFY_NOT_READY", True)


@pytest.mark.skipif(not has_apprise(), reason="needs apprise")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_apprise_reaches_its_addresses_and_names_those_it_does_not_understand(tmp_path: Path, web: Web) -> None:
    """Z06: the optional library, with the real one; no address is written down."""
    told = Told(tmp_path, f'[notify]\nurls = ["nonsense-secret", "json://{web.place}/x"]\n')
    told.tell(ASKED)
    assert json.loads(web.posted[0][1])["title"] == "Ganger r1: T1"
    assert "apprise does not understand urls[0]" in told.log
    assert "secret" not in told.log


def test_a_variable_that_is_not_set_is_refused_before_the_run(tmp_path: Path) -> None:
    """Z06: nobody waits a night for a notice that could never come."""
    with pytest.raises(GangerError, match=r"notify.webhook is env:NOT_SET, but variable NOT_SET is not set"):
        Told(tmp_path, '[notify]\nwebhook = "env:NOT_SET"\n').notices()


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ('[[hooks]]\non = ["question", "nope"]\nrun = ["x"]\n', "hooks[0].on[1]"),
        ('[notify]\non = ["run_finnished"]\n', "notify.on[0]"),
        ("[[hooks]]\non = []\nrun = ['x']\n", "hooks[0].on"),
        ("[[hooks]]\non = ['finish']\nrun = []\n", "hooks[0].run"),
        ("[[hooks]]\non = ['finish']\nrun = 'x'\n", "hooks[0].run"),
        ("[[hooks]]\non = ['finish']\nrun = ['x']\ntimeout_sec = 0\n", "hooks[0].timeout_sec"),
    ],
)
def test_a_hook_that_could_never_be_called_is_refused_with_its_place(tmp_path: Path, settings: str, place: str) -> None:
    """Z06: a typing mistake is no silence."""
    with pytest.raises(InputError) as refused:
        Told(tmp_path, settings).project()
    assert place in {fault.path for fault in refused.value.faults}


def test_a_trial_goes_every_way_and_says_how_each_went(tmp_path: Path, web: Web) -> None:
    """Z06: whatever the events are that a way waits for."""
    settings = hook("import sys; sys.exit(len(sys.stdin.read()) < 9)", on='["run_started"]') + hook(
        "raise SystemExit(5)"
    )
    told = Told(tmp_path, f'{settings}\n[notify]\nwebhook = "http://{web.place}"\non = ["finish"]\n')
    problems = [problem for _, problem in try_all(told.project())]
    assert problems == ["", "exit code 5", ""]
    assert json.loads(web.posted[0][1])["run_id"] == "trial"

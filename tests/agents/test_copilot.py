"""The `copilot` agent: what its recorded output and home mean, how it is called, and the real program at work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from ganger.agents.programs.copilot import CopilotAgent, CopilotReader
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import hear, signs_of
from ganger.core.signs import (
    Context,
    Denied,
    Heard,
    Model,
    Over,
    Retrying,
    Said,
    Session,
    Tokens,
    ToolEnded,
    ToolStarted,
)
from ganger.dev.server import ModelServer
from ganger.ports.agents import AttemptContext
from tests.agents.installed import PLACE, installed
from tests.agents.real import KEY, Trial

STREAMS = Path(__file__).with_name("streams")
SESSION = "132fd39e-1590-5f32-a198-544ae0b9a3e0"


def stream(name: str) -> Path:
    return STREAMS / f"copilot-{name}.jsonl"


def heard(name: str) -> Heard:
    return hear(CopilotReader(), stream(name))


def agent(environ: dict[str, str] | None = None, root: Path = Path("/"), **settings: object) -> CopilotAgent:
    return CopilotAgent("c", AgentSettings(kind="copilot", **settings), root, environ or {})  # type: ignore[arg-type]


def context(folder: Path, **more: object) -> AttemptContext:
    given = {"run_id": "r", "task_id": "T1", "attempt": 1, "role": "worker", "workspace": folder, "timeout_sec": 9.0}
    places = {"prompt_file": folder / "p", "log_path": folder / "l", "home": folder}
    return AttemptContext(**{**given, **places, **more})  # type: ignore[arg-type]


def stamp(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def test_copilot_run_becomes_exactly_these_signs() -> None:
    """T24: text whole, not in its parts; how full the context is; the session's name in the last line."""
    answer = 'Done.\n\n<<<TASK_RESULT_V2>>>\n{"task_id":"T1"}\n<<<END_TASK_RESULT_V2>>>'
    assert list(signs_of(CopilotReader(), stream("ok"))) == [
        Model("mod"),
        ToolStarted("call_1_0", "bash", "echo x > c.txt"),
        ToolEnded("call_1_0", "bash"),
        Context(10374, 128000),
        Model("mod"),
        Said(answer),
        Session("345a0000-0000-4000-8000-000000000001"),
        Over("success"),
    ]


def test_copilot_output_alone_says_nothing_of_tokens() -> None:
    """G04: unknown is unknown, never 0."""
    assert heard("ok").tokens is None


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *[("500", "network"), ("dropped", "network"), ("dropped-midway", "network"), ("garbage", "network")],
        *[("length", "success"), ("refused", "success"), ("no-session", "no_session"), ("no-such-flag", "usage")],
    ],
)
def test_copilot_failure_is_understood(name: str, how: str) -> None:
    """D12: by what it says, never by the exit code."""
    found = heard(name)
    assert (found.over and found.over.how, found.limited, found.login) == (how, None, "")


def test_copilot_wrong_key_is_a_missing_login() -> None:
    """D12: nothing is retried that a person must mend."""
    assert "COPILOT_PROVIDER_API_KEY" in heard("401").login


@pytest.mark.parametrize(
    ("name", "wait_sec", "empty"), [("429", 20, False), ("429-an-hour", None, False), ("out-of-credit", None, True)]
)
def test_copilot_limit_is_told_apart_from_an_empty_account(name: str, wait_sec: int | None, empty: bool) -> None:
    """W07: the time it has waited itself is no time to wait."""
    limited = heard(name).limited
    assert limited is not None and limited.final and limited.empty is empty
    told = next(json.loads(line) for line in stream(name).read_bytes().splitlines() if b"session.error" in line)
    left = None if limited.reset_at is None else limited.reset_at - stamp(told["timestamp"])
    assert left == (None if wait_sec is None else pytest.approx(wait_sec, abs=0.01))


def test_copilot_tells_its_own_retries_and_is_not_over_while_it_tries() -> None:
    """D12: six requests, each failure told."""
    signs = list(signs_of(CopilotReader(), stream("500")))
    assert [sign.status for sign in signs if isinstance(sign, Retrying)] == [500] * 6
    assert sum(isinstance(sign, Over) for sign in signs) == 1


def test_copilot_denied_tools_are_told() -> None:
    """D12: it ends with code 0 all the same."""
    assert heard("denied").denied == [Denied("bash", "echo x > c.txt"), Denied("create", "/etc/zzz.txt")]


def test_copilot_that_was_killed_has_its_session_and_tokens_in_its_home(tmp_path: Path) -> None:
    """H05 G04: without its last line the output names no session; calls of the next process are not its own."""
    place, log = tmp_path / f".copilot/session-state/{SESSION}", tmp_path / "log"
    place.mkdir(parents=True)
    shutil.copy(stream("home-events"), place / "events.jsonl")
    shutil.copy(stream("killed"), log)
    os.utime(log, (stamp("2026-11-15T16:32:33Z"),) * 2)
    found = agent().hear(log, tmp_path)
    assert (found.session, found.tokens) == (SESSION, Tokens(input=6595 + 6625, output=31))


def test_copilot_session_of_a_strange_name_is_none(tmp_path: Path) -> None:
    """T24: what stands in its home becomes no argument."""
    place, log = tmp_path / ".copilot/session-state/--yolo", tmp_path / "log"
    place.mkdir(parents=True)
    shutil.copy(stream("home-events"), place / "events.jsonl")
    shutil.copy(stream("killed"), log)
    assert agent().hear(log, tmp_path).session == ""


@pytest.mark.parametrize(
    ("name", "reason", "how"), [("length", "length", "length"), ("refused", "content_filter", "refused")]
)
def test_copilot_answer_that_was_cut_or_refused_is_known_by_its_home(
    tmp_path: Path, name: str, reason: str, how: str
) -> None:
    """D12: the output calls both a success."""
    place = tmp_path / f".copilot/session-state/{SESSION}"
    place.mkdir(parents=True)
    used = {"inputTokens": 5, "outputTokens": 2, "finishReason": reason}
    line = {"type": "session.usage_record", "timestamp": "2026-11-15T16:27:24Z", "data": {"usage": used}}
    (place / "events.jsonl").write_text(json.dumps(line) + "\n")
    over = agent().hear(stream(name), tmp_path).over
    assert over is not None and over.how == how


def test_copilot_limit_ends_when_its_own_log_says(tmp_path: Path) -> None:
    """W07: how long it was asked to wait is not in its output."""
    (tmp_path / ".copilot/logs").mkdir(parents=True)
    words = '[WARNING] Model provider request failed {"http_status":429,"retry_after_ms":3600000}'
    (tmp_path / ".copilot/logs/process-1-2.log").write_text(f"2026-11-15T16:27:27.019Z {words}\n")
    limited = agent().hear(stream("429-an-hour"), tmp_path).limited
    assert limited is not None and limited.reset_at == stamp("2026-11-15T17:27:27.019Z")


def program(folder: Path, body: str) -> dict[str, object]:
    """Settings with a program that notes where its cache is."""
    file = folder / "copilot"
    file.write_text(f'#!/bin/sh\necho "$XDG_CACHE_HOME $*" >> {folder}/calls\n{body}\n')
    file.chmod(0o755)
    return {"argv": (str(file),), "root": folder}


def test_copilot_unpacks_itself_once_for_all(tmp_path: Path) -> None:
    """T24: 235 MB that every agent reads and none writes."""
    shared = tmp_path / "shared"
    shared.mkdir()
    made = agent({"PATH": os.environ["PATH"]}, **program(tmp_path, 'umask 077; touch "$XDG_CACHE_HOME/unpacked"'))  # type: ignore[arg-type]
    places = [made.prepare(context(tmp_path, shared=shared)).env["XDG_CACHE_HOME"] for _ in range(3)]
    assert places == [str(shared)] * 3
    assert (tmp_path / "calls").read_text() == f"{shared} --no-auto-update --version\n"


def test_copilot_that_cannot_be_unpacked_for_all_does_it_in_its_own_home(tmp_path: Path) -> None:
    """T24: slower, and it works."""
    made = agent({"PATH": os.environ["PATH"]}, **program(tmp_path, "exit 3"))  # type: ignore[arg-type]
    assert "XDG_CACHE_HOME" not in made.prepare(context(tmp_path, shared=tmp_path)).env


def test_copilot_with_a_short_key_is_not_ready(tmp_path: Path) -> None:
    """T24: it stars out its key wherever the text occurs, also in the names of its fields."""
    made = agent({"PATH": os.environ["PATH"], "COPILOT_GITHUB_TOKEN": "x"}, **program(tmp_path, "echo 1.0.102"))  # type: ignore[arg-type]
    health = made.healthcheck()
    assert not health.ready and "shorter than 8" in health.details[0]


def test_copilot_asks_nothing_inside_the_walls_and_edits_only_without_them(tmp_path: Path) -> None:
    """T24: its own questions are off where Ganger's walls stand, or where the operator says so."""
    asked = [
        (agent(), context(tmp_path, walled=True)),
        (agent(), context(tmp_path)),
        (agent(permissions="edit"), context(tmp_path, walled=True)),
        (agent(permissions="full"), context(tmp_path)),
    ]
    assert ["--allow-all" in made.arguments(given) for made, given in asked] == [True, False, False, True]


def test_copilot_with_an_endpoint_of_its_own_stays_away_from_the_vendor(tmp_path: Path) -> None:
    """T24: the key is passed under the program's own name, and in no argument."""
    made = agent({"TEAM_KEY": KEY}, key_env="TEAM_KEY", base_url="http://127.0.0.1:1/v1", model="m", effort="high")
    launch = made.prepare(context(tmp_path))
    assert (launch.env["COPILOT_PROVIDER_API_KEY"], launch.env["COPILOT_OFFLINE"]) == (KEY, "true")
    assert {"--model=m", "--reasoning-effort=high", "--no-auto-update"} <= set(launch.argv) and KEY not in launch.argv


def test_copilot_without_an_endpoint_uses_the_operators_token(tmp_path: Path) -> None:
    """T24: and is not told to stay offline."""
    env = agent({"TEAM_TOKEN": KEY}, key_env="TEAM_TOKEN").prepare(context(tmp_path)).env
    assert env["COPILOT_GITHUB_TOKEN"] == KEY and "COPILOT_OFFLINE" not in env


# --- the real program -------------------------------------------------------------------------------------------------


def trial(folder: Path, server: ModelServer) -> Trial:
    """What it unpacks is kept beside the program, for all tests."""
    cache = PLACE / "copilot-cache"
    cache.mkdir(exist_ok=True)
    (folder / "shared").symlink_to(cache)
    settings = {"base_url": f"{server.url}/v1", "model": "played"}
    return Trial(folder, CopilotAgent, installed("copilot"), {"COPILOT_PROVIDER_API_KEY": KEY}, settings)


def writes_down(home: Path, words: bytes, seconds: float = 90) -> bool:
    """It writes its session down a moment after what happened."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if any(words in file.read_bytes() for file in home.glob(".copilot/session-state/*/events.jsonl")):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_copilot_edits_a_file_and_answers(tmp_path: Path) -> None:
    """T24 G04: the real program, a played model; every token is counted, the key is nowhere."""
    with ModelServer([{"write": {"path": "a.txt", "content": "one\n"}}, {"result": {}}]) as server:
        place = trial(tmp_path, server)
        ran = place.run("Write a.txt.", walled=True)
        found, counted = agent().hear(ran.log, place.home), server.tokens()
        assert (place.workspace / "a.txt").read_text() == "one\n", ran.output
        assert "<<<END_TASK_RESULT_V2>>>" in found.answer
        assert found.tokens == Tokens(counted.input, counted.output)
        assert place.leaks(ran) == [] and not (place.home / ".cache/copilot").exists()


@pytest.mark.whole
@pytest.mark.agents_full
def test_copilot_that_was_killed_at_work_goes_on(tmp_path: Path) -> None:
    """H05 G04: the model sees what was done before, and the tokens of both processes are counted once."""
    steps = [{"write": {"path": "a.txt", "content": "one\n"}}, {"run": "sleep 600"}]
    with ModelServer({"steps": steps, "resumed": [{"result": {}}]}) as server:
        place = trial(tmp_path, server)
        going = place.start("Write a.txt. FIRST", walled=True)
        assert writes_down(place.home, b"sleep 600")
        killed = agent().hear(going.kill().log, place.home)
        again = agent().hear(place.run("Go on.", session=killed.session, walled=True).log, place.home)
        assert again.session == killed.session and killed.tokens is not None and again.tokens is not None
        assert (killed.tokens.input or 0) + (again.tokens.input or 0) == server.tokens().input
        earlier = " ".join(str(turn) for turn in server.requests[-1].conversation)
        assert "FIRST" in earlier and "a.txt" in earlier


@pytest.mark.agents_full
@pytest.mark.parametrize(
    ("step", "how"),
    [
        *[({"error": 500}, "network"), ({"drop": "before"}, "network"), ({"drop": "stream"}, "network")],
        *[({"garbage": True}, "network"), ({"refuse": "no"}, "refused"), ({"length": True}, "length")],
        *[({"error": 401}, "login"), ({"error": 429, "retry_after": 1}, "limited")],
        ({"error": "quota", "retry_after": 3600}, "limited"),
    ],
)
def test_copilot_gives_up_and_says_why(tmp_path: Path, step: dict[str, object], how: str) -> None:
    """D12 W07: the real program in every kind of trouble with its model."""
    with ModelServer([step]) as server:
        place = trial(tmp_path, server)
        found = agent().hear(place.run("Do it.", walled=True).log, place.home)
    told = "login" if found.login else "limited" if found.limited else found.over.how if found.over else ""
    assert told == how


@pytest.mark.agents_full
def test_copilot_that_cannot_find_a_session_says_so(tmp_path: Path) -> None:
    """H05: then a fresh one is started."""
    with ModelServer(None) as server:
        found = trial(tmp_path, server).run("Go on.", session="11111111-2222-4333-8444-555555555555").heard
    assert found.over is not None and found.over.how == "no_session"


@pytest.mark.agents_full
@pytest.mark.needs("bwrap")
def test_copilot_works_with_a_cache_it_cannot_write(tmp_path: Path) -> None:
    """T24: the folder for all agents is read only inside the walls."""
    with ModelServer(None) as server:
        place = trial(tmp_path, server)
        launch = place.agent().prepare(place.context("Answer.", session="", walled=True))
        walls = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(place.home)]
        walls += [str(place.home), "--bind", str(place.workspace), str(place.workspace), "--tmpfs", "/run"]
        assert launch.stdin_path is not None
        with open(launch.stdin_path, "rb") as prompt:
            ran = subprocess.run(
                [*walls, *launch.argv],
                env=dict(launch.env),
                cwd=launch.cwd,
                stdin=prompt,
                capture_output=True,
                check=False,
            )
    assert b"<<<END_TASK_RESULT_V2>>>" in ran.stdout, ran.stderr

"""The `gemini` agent: what its recorded output means, how it is called, and the real program against a played model."""

from __future__ import annotations

import json
import os
import shutil
import time
from datetime import datetime
from pathlib import Path

import pytest

from ganger.agents.programs.gemini import GeminiAgent, GeminiReader
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import hear, signs_of
from ganger.core.signs import Denied, Heard, Model, Over, Retrying, Said, Session, Tokens, ToolEnded, ToolStarted
from ganger.dev.server import ModelServer
from ganger.ports.agents import AttemptContext
from tests.agents.installed import installed
from tests.agents.real import KEY, Ran, Trial

STREAMS = Path(__file__).with_name("streams")
CHAT = ".gemini/tmp/work/chats/session-1.jsonl"


SESSION = "384d79a6-c365-471d-8e0a-e78972a7345d"


def stream(name: str) -> Path:
    return STREAMS / f"gemini-{name}.jsonl"


def heard(name: str) -> Heard:
    return hear(GeminiReader(), stream(name))


def agent(environ: dict[str, str] | None = None, **settings: object) -> GeminiAgent:
    return GeminiAgent("g", AgentSettings(kind="gemini", **settings), Path("/root"), environ or {})  # type: ignore[arg-type]


def context(folder: Path, **more: object) -> AttemptContext:
    given = {"run_id": "r", "task_id": "T1", "attempt": 1, "role": "worker", "workspace": folder, "timeout_sec": 9.0}
    places = {"prompt_file": folder / "p", "log_path": folder / "l", "home": folder}
    return AttemptContext(**{**given, **places, **more})  # type: ignore[arg-type]


def test_gemini_run_becomes_exactly_these_signs() -> None:
    """T24 G04: session, model, tool, text in parts, sums, end; the echoed prompt is none of it."""
    call = "run_shell_command__run_shell_command_1794759289080_0"
    signs = [sign for sign in signs_of(GeminiReader(), stream("ok")) if not isinstance(sign, Said)]
    assert signs == [
        Session("967745ee-c708-4822-8872-f70d2a3f3520"),
        Model("gemini-2.5-pro"),
        ToolStarted(call, "run_shell_command", "echo x > c.txt"),
        ToolEnded(call, "run_shell_command"),
        Tokens(input=2403, output=68, cache_read=400),
        Over("success"),
    ]


def test_gemini_deltas_are_joined_before_the_block_is_looked_for() -> None:
    """T24: the block arrives cut into pieces."""
    assert heard("ok").answer == 'Done.\n\n<<<TASK_RESULT_V2>>>\n{"task_id":"T1"}\n<<<END_TASK_RESULT_V2>>>'


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *[("500", "network"), ("503", "network"), ("dropped", "network"), ("dropped-midway", "network")],
        *[("garbage", "network"), ("refused", "refused"), ("turns", "turns"), ("length", "success")],
        *[("no-session", "no_session"), ("no-such-flag", "usage")],
    ],
)
def test_gemini_failure_is_understood(name: str, how: str) -> None:
    """D12: by the words of the last line, never by the exit code."""
    found = heard(name)
    assert (found.over and found.over.how, found.limited, found.login) == (how, None, "")


def test_gemini_wrong_key_is_a_missing_login() -> None:
    """D12: nothing is retried that a person must mend."""
    assert "401" in heard("401").login


@pytest.mark.parametrize(
    ("name", "wait_sec"), [("429", 3600), ("429-waiting", 20), ("daily-quota", 55812), ("429-no-time", None)]
)
def test_gemini_limit_ends_when_it_says_and_is_no_empty_account(name: str, wait_sec: int | None) -> None:
    """W07: its standard words speak of plan and billing, also for a limit of minutes."""
    limited = heard(name).limited
    last = json.loads(stream(name).read_bytes().splitlines()[-1])
    assert limited is not None and limited.final and not limited.empty
    told = None if limited.reset_at is None else limited.reset_at - stamp(last["timestamp"])
    assert told == (None if wait_sec is None else pytest.approx(wait_sec, abs=0.01))


def stamp(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def test_gemini_tells_its_own_retries() -> None:
    """D12: they stand among the errors, not in the stream."""
    retries = [sign for sign in signs_of(GeminiReader(), stream("500")) if isinstance(sign, Retrying)]
    assert [retry.status for retry in retries] == [500]


def test_gemini_tool_that_is_kept_from_the_model_is_denied_and_a_write_outside_breaks_a_rule() -> None:
    """D12: it is not offered, and called all the same."""
    assert heard("denied").denied == [
        Denied("run_shell_command", "echo x > c.txt"),
        Denied("write_file", "/etc/zz.txt", rule=True),
    ]


def test_gemini_that_was_killed_used_what_its_session_file_says(tmp_path: Path) -> None:
    """G04 H05: a killed process has no last line; calls of the next one are not its own, and none counts twice."""
    first, log = agent(), tmp_path / "log"
    (tmp_path / CHAT).parent.mkdir(parents=True)
    shutil.copy(stream("home-chat"), tmp_path / CHAT)
    shutil.copy(stream("killed"), log)
    os.utime(log, (stamp("2026-11-15T16:32:14Z"),) * 2)
    assert first.hear(log, tmp_path).tokens == Tokens(input=7626 + 7672, output=22)
    assert first.hear(stream("resumed"), tmp_path).tokens == Tokens(input=7919, output=38)


def test_gemini_home_that_is_a_trap_is_not_waited_for(tmp_path: Path) -> None:
    """T24: whatever an agent leaves in its home, reading it ends."""
    (tmp_path / CHAT).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / CHAT)
    (tmp_path / CHAT).with_name("session-2.jsonl").symlink_to("/dev/zero")
    assert agent().hear(stream("killed"), tmp_path).tokens is None


def test_gemini_settings_hold_no_key_and_send_nothing_home(tmp_path: Path) -> None:
    """T24: the key stays in the environment."""
    made = agent({"GEMINI_API_KEY": KEY}, retries=1, max_turns=7)
    files = made.furnish(context(tmp_path))
    told = json.loads(files[".gemini/settings.json"])
    assert told["general"] == {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 2}
    assert told["security"] == {"auth": {"selectedType": "gemini-api-key"}} and told["model"] == {"maxSessionTurns": 7}
    assert not told["privacy"]["usageStatisticsEnabled"] and not told["telemetry"]["enabled"]
    assert KEY.encode() not in b"".join(files.values())


def test_gemini_login_of_the_operator_is_used_where_there_is_no_key(tmp_path: Path) -> None:
    """T24: the login file is copied into the agent's own home, and named as the way in."""
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/oauth_creds.json").write_text("{}")
    made = agent({"HOME": str(tmp_path)})
    files = made.furnish(context(tmp_path))
    assert files[".gemini/oauth_creds.json"] == b"{}" and made.has_login()
    assert json.loads(files[".gemini/settings.json"])["security"]["auth"]["selectedType"] == "oauth-personal"


def test_gemini_asks_nothing_inside_the_walls_and_edits_only_without_them(tmp_path: Path) -> None:
    """T24: its own questions are off where Ganger's walls stand, or where the operator says so."""
    asked = [
        (agent(), context(tmp_path, walled=True)),
        (agent(), context(tmp_path)),
        (agent(permissions="edit"), context(tmp_path, walled=True)),
        (agent(permissions="full"), context(tmp_path)),
    ]
    modes = [made.arguments(given)[5] for made, given in asked]
    assert modes == ["yolo", "auto_edit", "auto_edit", "yolo"]


def test_gemini_model_is_always_named_and_the_config_wins(tmp_path: Path) -> None:
    """D16: without a name the program asks a small model first which one to take."""
    given, theirs = context(tmp_path), {"GEMINI_MODEL": "gemini-2.5-flash"}
    names = [made.arguments(given)[1] for made in (agent(), agent(theirs), agent(theirs, model="gemini-3-pro"))]
    assert names == ["pro", "gemini-2.5-flash", "gemini-3-pro"]


def test_gemini_key_of_another_name_is_passed_under_the_programs_own(tmp_path: Path) -> None:
    """T24: `key_env` names the operator's variable."""
    made = agent({"TEAM_KEY": KEY, "GEMINI_API_KEY": "other"}, key_env="TEAM_KEY", base_url="http://127.0.0.1:1")
    env = made.prepare(context(tmp_path)).env
    assert (env["GEMINI_API_KEY"], env["GOOGLE_GEMINI_BASE_URL"]) == (KEY, "http://127.0.0.1:1")


def test_gemini_session_that_goes_on_holds_every_answer_of_a_tool_once(tmp_path: Path) -> None:
    """H05 G22: its file has them with the call and in a record of their own, and both would be sent."""
    response = {"functionResponse": {"id": "w1", "name": "write_file", "response": {"output": "ok"}}}
    call = {"id": "1", "type": "gemini", "content": "", "toolCalls": [{"id": "w1", "result": [response]}]}
    alone = {"functionResponse": {"id": "w2", "name": "write_file", "response": {"output": "ok"}}}
    rows = [{"sessionId": SESSION}, {"type": "user", "content": [{"text": "Go"}]}, call]
    rows += [{"type": "user", "content": [response]}, {"type": "user", "content": [alone]}]
    file = tmp_path / f".gemini/tmp/work/chats/session-2026-11-16T16-45-{SESSION[:8]}.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (mended,) = agent().repaired(tmp_path, SESSION).values()
    assert [json.loads(line) for line in mended.splitlines()] == [*rows[:3], rows[4]]
    file.write_bytes(mended)
    assert agent().repaired(tmp_path, SESSION) == {} == agent().repaired(tmp_path, "0" * 36)


# --- the real program -------------------------------------------------------------------------------------------------


def trial(folder: Path, server: ModelServer) -> Trial:
    settings = {"base_url": server.url, "model": "gemini-2.5-pro"}
    return Trial(folder, GeminiAgent, installed("gemini"), environ={"GEMINI_API_KEY": KEY}, settings=settings)


def appears(file: Path, seconds: float = 90) -> bool:
    end = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return file.exists()


PAIR = ("calls", "results")


def used(ran: Ran) -> tuple[int | None, int | None]:
    tokens = ran.heard.tokens
    return (tokens.input, tokens.output) if tokens else (None, None)


@pytest.mark.whole
def test_gemini_edits_a_file_and_answers(tmp_path: Path) -> None:
    """T24 G04: the real program, a played model; every token is counted, the key is nowhere."""
    with ModelServer([{"write": {"path": "a.txt", "content": "one\n"}}, {"result": {}}]) as server:
        place = trial(tmp_path, server)
        ran = place.run("Write a.txt.", walled=True)
        assert (place.workspace / "a.txt").read_text() == "one\n", ran.output
        assert "<<<END_TASK_RESULT_V2>>>" in ran.heard.answer
        assert used(ran) == (server.tokens().input, server.tokens().output)
        assert place.leaks(ran) == []


@pytest.mark.slow
def test_gemini_that_was_killed_at_work_goes_on(tmp_path: Path) -> None:
    """H05 G04: the model sees what was done before, and the tokens of both processes are counted once."""
    steps = [{"write": {"path": "a.txt", "content": "one\n"}}, {"run": "touch begun; sleep 600"}]
    with ModelServer({"steps": steps, "resumed": [{"result": {}}]}) as server:
        place = trial(tmp_path, server)
        going = place.start("Write a.txt. FIRST", walled=True)
        assert appears(place.workspace / "begun")
        killed = agent().hear(going.kill().log, place.home)
        again = place.run("Go on.", session=killed.session, walled=True)
        assert again.heard.session == killed.session and killed.tokens is not None and again.heard.tokens is not None
        assert (killed.tokens.input or 0) + (again.heard.tokens.input or 0) == server.tokens().input
        earlier = " ".join(str(turn) for turn in server.requests[-1].conversation)
        assert "FIRST" in earlier and "a.txt" in earlier
        calls, results = (sum(len(getattr(t, what)) for t in server.requests[-1].conversation) for what in PAIR)
        assert calls == results == 1


@pytest.mark.agents_full
@pytest.mark.parametrize(
    ("step", "how"),
    [
        *[({"error": 500}, "network"), ({"drop": "before"}, "network"), ({"drop": "stream"}, "network")],
        *[({"garbage": True}, "network"), ({"refuse": ""}, "refused"), ({"error": 401}, "login")],
        *[({"error": 429, "retry_after": 3600}, "limited"), ({"error": "quota", "retry_after": 3600}, "limited")],
    ],
)
def test_gemini_gives_up_and_says_why(tmp_path: Path, step: dict[str, object], how: str) -> None:
    """D12 W07: the real program in every kind of trouble with its model."""
    with ModelServer([step]) as server:
        found = trial(tmp_path, server).run("Do it.", walled=True).heard
    told = "login" if found.login else "limited" if found.limited else found.over.how if found.over else ""
    assert told == how


@pytest.mark.agents_full
def test_gemini_that_cannot_find_a_session_says_so(tmp_path: Path) -> None:
    """H05: then a fresh one is started."""
    with ModelServer(None) as server:
        ran = trial(tmp_path, server).run("Go on.", session="11111111-2222-4333-8444-555555555555")
    assert ran.heard.over is not None and ran.heard.over.how == "no_session"

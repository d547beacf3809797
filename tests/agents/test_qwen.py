"""The `qwen` agent: what its recorded output means, how it is called, and the real program against a played model."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

import pytest

from ganger.agents.programs.qwen import QwenAgent, QwenReader
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import hear, signs_of
from ganger.core.signs import (
    Context,
    Denied,
    Heard,
    Limited,
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
from tests.agents.installed import installed
from tests.agents.real import KEY, Trial

STREAMS = Path(__file__).with_name("streams")


def stream(name: str) -> Path:
    return STREAMS / f"qwen-{name}.jsonl"


def heard(name: str) -> Heard:
    return hear(QwenReader(), stream(name))


def agent(environ: dict[str, str] | None = None, **settings: object) -> QwenAgent:
    return QwenAgent("q", AgentSettings(kind="qwen", **settings), Path("/root"), environ or {})  # type: ignore[arg-type]


def context(folder: Path, **more: object) -> AttemptContext:
    given = {"run_id": "r", "task_id": "T1", "attempt": 1, "role": "worker", "workspace": folder, "timeout_sec": 9.0}
    places = {"prompt_file": folder / "p", "log_path": folder / "l", "home": folder}
    return AttemptContext(**{**given, **places, **more})  # type: ignore[arg-type]


def test_qwen_run_becomes_exactly_these_signs() -> None:
    """T24 G04: every call's tokens as steps, then the sum of the session; the parts of a text are passed over."""
    signs = list(signs_of(QwenReader(), stream("ok")))
    calls = [sign.id for sign in signs if isinstance(sign, ToolStarted)]
    session = Session("0421e725-de0f-4807-b8c0-fd72b2b2d0b1")
    answer = next(sign.text for sign in signs if isinstance(sign, Said))
    steps = [sign for sign in signs if isinstance(sign, Tokens) and sign.step]
    assert [sign for sign in signs if not isinstance(sign, Context)] == [
        session,
        Model("mod"),
        ToolStarted(calls[0], "write_file", "/work/T1/a.txt"),
        steps[0],
        ToolEnded(calls[0], "write_file"),
        ToolStarted(calls[1], "run_shell_command", "echo x > b.txt"),
        steps[1],
        ToolEnded(calls[1], "run_shell_command"),
        Said(answer),
        steps[2],
        session,
        Tokens(input=28858, output=62, session_tokens=True),
        Over("success", answer),
    ]
    assert (sum(step.input or 0 for step in steps), sum(step.output or 0 for step in steps)) == (28858, 62)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *[("500", "network"), ("dropped-midway", "network"), ("stalled", "network"), ("garbage", "network")],
        *[("length", "success"), ("turns", "turns"), ("tool-calls", "turns"), ("loop", "turns")],
        *[("no-session", "no_session"), ("no-such-flag", "usage")],
    ],
)
def test_qwen_failure_is_understood(name: str, how: str) -> None:
    """D12: by what it says, never by the exit code; its limits of turns and calls have no last line."""
    found = heard(name)
    assert (found.over and found.over.how, found.limited, found.login) == (how, None, "")


def test_qwen_wrong_key_is_a_missing_login() -> None:
    """D12: nothing is retried that a person must mend."""
    assert "401" in heard("401").login


@pytest.mark.parametrize(
    ("name", "known", "empty"), [("429", True, False), ("402", False, True), ("out-of-credit", False, True)]
)
def test_qwen_limit_is_told_apart_from_an_empty_account(name: str, known: bool, empty: bool) -> None:
    """W07: with the time it ends where the endpoint says so."""
    limited = heard(name).limited
    assert limited is not None and limited.final
    assert (limited.reset_at is not None, limited.empty) == (known, empty)


def test_qwen_that_waits_for_its_endpoint_is_limited_until_then() -> None:
    """W07: the line itself does not say why it waits."""
    data = {"reason": "retry", "attempt": 1, "maxRetries": 10, "delayMs": 60000}
    line = json.dumps({"type": "system", "subtype": "retry", "data": data}).encode()
    before = time.time()
    [sign] = QwenReader().line(line)
    assert isinstance(sign, Limited) and not sign.final
    assert sign.reset_at is not None and before + 60 <= sign.reset_at <= time.time() + 60


def test_qwen_limit_is_heard_at_its_first_request_with_the_time_it_ends() -> None:
    """W07: the program itself waits that hour without a word."""
    limited = heard("429-told").limited
    told = json.loads(stream("429-told").read_bytes().splitlines()[-1])["timestamp"]
    assert limited is not None and not limited.final
    assert limited.reset_at == datetime.fromisoformat(told).timestamp() + 3600


@pytest.mark.parametrize(("name", "status"), [("500-told", 500), ("dropped-told", None)])
def test_qwen_failed_requests_are_heard_one_by_one(name: str, status: int | None) -> None:
    """D12: the program itself tries seven times without a word."""
    tries = [sign for sign in signs_of(QwenReader(), stream(name)) if isinstance(sign, Retrying)]
    assert len(tries) > 2 and {each.status for each in tries} == {status}


def test_qwen_denied_tool_is_told_once() -> None:
    """D12: in the tool's result, and again in the last line."""
    assert heard("denied").denied == [Denied("run_shell_command", "echo x > c.txt")]


def test_qwen_command_that_prints_of_permissions_is_not_denied() -> None:
    """D12: what a tool prints is no refusal."""
    block = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "cat: /x: Permission denied"}
    line = json.dumps({"type": "user", "message": {"content": [block]}}).encode()
    assert list(QwenReader().line(line)) == [ToolEnded("c", ok=False)]


def test_qwen_error_in_place_of_an_answer_is_no_text_of_the_model() -> None:
    """T24: it puts the error where the answer would be."""
    assert [heard(name).messages for name in ("401", "429", "garbage")] == [[], [], []]


def test_qwen_sum_goes_on_over_a_resume() -> None:
    """G04 H05: a running total, and marked as one."""
    first, second = heard("loop").tokens, heard("resumed").tokens
    assert first is not None and second is not None and first.session_tokens and second.session_tokens
    assert (second.input or 0) - (first.input or 0) == 10195


def test_qwen_calls_of_this_process_are_counted_where_its_home_is_known(tmp_path: Path) -> None:
    """G04 H05: the running total lacks calls that a killed process had no time to write down."""
    place, log = tmp_path / ".qwen/projects/p/chats/s.jsonl", tmp_path / "log"
    begun = {"type": "begun", "timestamp": "2026-11-15T16:33:00Z"}
    log.write_bytes(json.dumps(begun).encode() + b"\n" + stream("resumed").read_bytes())
    told = {"event.name": "qwen-code.api_response", "input_token_count": 10195, "output_token_count": 38}
    moments = ("2026-11-15T16:32:57Z", "2026-11-15T16:33:08Z")
    rows = [{"timestamp": at, "systemPayload": {"uiEvent": told}} for at in moments]
    place.parent.mkdir(parents=True)
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert agent().hear(log, tmp_path).tokens == Tokens(input=10195, output=38)


def test_qwen_settings_hold_no_key_and_ask_the_model_nothing_beside_the_work(tmp_path: Path) -> None:
    """T24 G04: no memory, no telemetry, no update, no more retries than it always makes."""
    files = agent({"OPENAI_API_KEY": KEY}, effort="high").furnish(context(tmp_path))
    told = json.loads(files[".qwen/settings.json"])
    assert told["memory"] == {"enableManagedAutoMemory": False, "enableManagedAutoDream": False}
    assert told["model"] == {"generationConfig": {"maxRetries": 0, "reasoning": {"effort": "high"}}}
    assert not told["telemetry"]["enabled"] and not told["privacy"]["usageStatisticsEnabled"]
    assert KEY.encode() not in b"".join(files.values())


def test_qwen_is_listened_to_by_a_file_of_its_home(tmp_path: Path) -> None:
    """D12: also where the home's name has a space."""
    home = tmp_path / "a home"
    given = context(tmp_path, home=home)
    [place] = re.findall(r"\A--import=file://(\S+)\Z", agent().prepare(given).env["NODE_OPTIONS"])
    assert agent().furnish(given)[str(Path(unquote(place)).relative_to(home))].startswith(b"import")


def test_qwen_asks_nothing_inside_the_walls_and_edits_only_without_them(tmp_path: Path) -> None:
    """T24: its own questions are off where Ganger's walls stand, or where the operator says so."""
    asked = [
        (agent(), context(tmp_path, walled=True)),
        (agent(), context(tmp_path)),
        (agent(permissions="edit"), context(tmp_path, walled=True)),
        (agent(permissions="full"), context(tmp_path)),
    ]
    assert ["yolo" in made.arguments(given) for made, given in asked] == [True, False, False, True]


def test_qwen_model_turns_and_session_are_arguments_and_the_key_is_none(tmp_path: Path) -> None:
    """T24 D16 H05: the key is passed under the program's own name."""
    made = agent({"TEAM_KEY": KEY}, key_env="TEAM_KEY", base_url="http://127.0.0.1:1/v1", model="m", max_turns=7)
    launch = made.prepare(context(tmp_path, session="s-1"))
    assert {"--model=m", "--max-session-turns=7", "--resume=s-1"} <= set(launch.argv) and KEY not in launch.argv
    assert (launch.env["OPENAI_API_KEY"], launch.env["OPENAI_BASE_URL"]) == (KEY, "http://127.0.0.1:1/v1")


# --- the real program -------------------------------------------------------------------------------------------------


def trial(folder: Path, server: ModelServer) -> Trial:
    settings = {"base_url": f"{server.url}/v1", "model": "played"}
    return Trial(folder, QwenAgent, installed("qwen"), {"OPENAI_API_KEY": KEY}, settings)


def appears(file: Path, seconds: float = 90) -> bool:
    end = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return file.exists()


@pytest.mark.whole
@pytest.mark.agents_full
def test_qwen_edits_a_file_and_answers(tmp_path: Path) -> None:
    """T24 G04: the real program, a played model; every token is counted, the key is nowhere."""
    with ModelServer([{"write": {"path": "a.txt", "content": "one\n"}}, {"result": {}}]) as server:
        place = trial(tmp_path, server)
        ran = place.run("Write a.txt.", walled=True)
        assert (place.workspace / "a.txt").read_text() == "one\n", ran.output
        assert "<<<END_TASK_RESULT_V2>>>" in ran.heard.answer
        counted = server.tokens()
        assert agent().hear(ran.log, place.home).tokens == Tokens(counted.input, counted.output)
        assert place.leaks(ran) == []


@pytest.mark.whole
@pytest.mark.agents_full
def test_qwen_that_was_killed_at_work_goes_on(tmp_path: Path) -> None:
    """H05 G04: the model sees what was done before, and each process counts its own calls."""
    steps = [{"write": {"path": "a.txt", "content": "one\n"}}, {"run": "touch begun; while :; do sleep 1; done"}]
    with ModelServer({"steps": steps, "resumed": [{"result": {}}]}) as server:
        place = trial(tmp_path, server)
        going = place.start("Write a.txt. FIRST", walled=True)
        assert appears(place.workspace / "begun")
        killed, before = agent().hear(going.kill().log, place.home), server.tokens()
        again = agent().hear(place.run("Go on.", session=killed.session, walled=True).log, place.home)
        assert again.session == killed.session and killed.tokens is not None and again.tokens is not None
        assert not again.tokens.session_tokens and killed.tokens.input == before.input
        assert again.tokens.input == server.tokens().input - before.input
        earlier = " ".join(str(turn) for turn in server.requests[-1].conversation)
        assert "FIRST" in earlier and "a.txt" in earlier


@pytest.mark.agents_full
@pytest.mark.parametrize(
    ("step", "how"),
    [
        *[({"drop": "stream"}, "network"), ({"garbage": True}, "network"), ({"error": 401}, "login")],
        *[({"error": 429, "retry_after": 1}, "limited"), ({"error": 402}, "limited")],
    ],
)
def test_qwen_gives_up_and_says_why(tmp_path: Path, step: dict[str, object], how: str) -> None:
    """D12 W07: the real program in trouble with its model; what takes it minutes is left out."""
    with ModelServer([step]) as server:
        found = trial(tmp_path, server).run("Do it.", walled=True).heard
    told = "login" if found.login else "limited" if found.limited else found.over.how if found.over else ""
    assert told == how


@pytest.mark.agents_full
def test_qwen_at_a_limit_of_an_hour_is_known_at_once(tmp_path: Path) -> None:
    """W07: while it waits without a word."""
    with ModelServer([{"error": 429, "retry_after": 3600}]) as server:
        going = trial(tmp_path, server).start("Do it.", walled=True)
        assert server.wait_for(lambda seen: len(seen) > 0, 90)
        end = time.monotonic() + 30
        while going.agent.hear(going.launch.log_path).limited is None and time.monotonic() < end:
            time.sleep(0.1)
        limited = going.kill().heard.limited
    assert limited is not None and limited.reset_at == pytest.approx(time.time() + 3600, abs=120)


@pytest.mark.agents_full
def test_qwen_tools_do_not_inherit_the_listener(tmp_path: Path) -> None:
    """T24: the project's own programs run as they always do."""
    with ModelServer([{"run": 'echo "[$NODE_OPTIONS]" > seen.txt'}, {"result": {}}]) as server:
        place = trial(tmp_path, server)
        place.run("Look.", walled=True)
    assert (place.workspace / "seen.txt").read_text() == "[]\n"


@pytest.mark.agents_full
def test_qwen_that_cannot_find_a_session_says_so(tmp_path: Path) -> None:
    """H05: then a fresh one is started."""
    with ModelServer(None) as server:
        found = trial(tmp_path, server).run("Go on.", session="11111111-2222-4333-8444-555555555555").heard
    assert found.over is not None and found.over.how == "no_session"

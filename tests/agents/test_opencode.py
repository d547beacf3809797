"""opencode: recorded streams of the real program, and the program itself against a scripted model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.programs.opencode import CONFIG, OpencodeAgent, OpencodeReader
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import hear, signs_of
from ganger.contracts.parser import Parsed
from ganger.core.signs import Context, Denied, Heard, Model, Over, Retrying, Session, Tokens, ToolEnded, ToolStarted
from ganger.dev.server import ModelServer
from ganger.errors import InputError
from ganger.ports.agents import AttemptContext
from tests.agents.installed import installed
from tests.agents.real import KEY, Trial

STREAMS = Path(__file__).parent / "streams"


def recorded(name: str) -> Heard:
    return hear(OpencodeReader(), STREAMS / f"opencode-{name}.jsonl")


def context(folder: Path, *, walled: bool = True, session: str = "") -> AttemptContext:
    return AttemptContext(
        "run", "T1", 1, "worker", folder, folder / "prompt", folder / "log", 60.0, walled=walled, session=session
    )


def config(folder: Path, given: AgentSettings, *, walled: bool = True, **environ: str) -> dict[str, Any]:
    agent = OpencodeAgent("o", given, folder, {"LOCAL_KEY": KEY, **environ})
    found: dict[str, Any] = json.loads(agent.prepare(context(folder, walled=walled)).env[CONFIG])
    return found


LOCAL = AgentSettings("opencode", model="local/m", base_url="http://127.0.0.1:1/v1", key_env="LOCAL_KEY")


# --- how it is called -------------------------------------------------------------------------------------------------


def test_another_endpoint_becomes_a_provider_without_its_key(tmp_path: Path) -> None:
    """T24: the key is named, not written."""
    provider = config(tmp_path, LOCAL)["provider"]["local"]
    assert provider["options"] == {"baseURL": "http://127.0.0.1:1/v1", "apiKey": "{env:LOCAL_KEY}"}
    assert list(provider["models"]) == ["m"]


def test_what_the_operator_has_set_stays(tmp_path: Path) -> None:
    """T24: their config wins, Ganger's is added."""
    theirs = {"provider": {"local": {"options": {"timeout": 5}}}, "permission": {"bash": "ask"}, "theme": "x"}
    found = config(tmp_path, LOCAL, OPENCODE_CONFIG_CONTENT=json.dumps(theirs))
    assert found["provider"]["local"]["options"]["timeout"] == 5
    assert found["provider"]["local"]["options"]["apiKey"] == "{env:LOCAL_KEY}"
    assert found["permission"] == {"*": "allow", "bash": "ask"} and found["theme"] == "x"


def test_a_config_that_is_no_config_is_refused(tmp_path: Path) -> None:
    """T24: instead of running without it."""
    with pytest.raises(InputError, match=CONFIG):
        OpencodeAgent("o", LOCAL, tmp_path, {CONFIG: "[1]"})


def test_a_model_is_named_with_its_provider(tmp_path: Path) -> None:
    """T24: another endpoint has no other name."""
    with pytest.raises(InputError, match="local/m"):
        OpencodeAgent("o", AgentSettings("opencode", model="m", base_url="http://127.0.0.1:1"), tmp_path, {})


def test_its_own_questions_are_off_only_behind_walls(tmp_path: Path) -> None:
    """T24: outside them it decides itself, and for edits alone it asks for the rest."""
    assert config(tmp_path, LOCAL)["permission"] == {"*": "allow"}
    assert config(tmp_path, LOCAL, walled=False)["permission"] == {"edit": "allow"}
    edit = config(tmp_path, AgentSettings("opencode", permissions="edit"))["permission"]
    assert (edit["edit"], edit["bash"], edit["external_directory"]) == ("allow", "ask", "ask")


def test_a_session_is_continued_or_named(tmp_path: Path) -> None:
    """H05: a session with a name of its own costs no request for one."""
    agent = OpencodeAgent("o", LOCAL, tmp_path, {})
    assert "--session=ses_1" in "=".join(agent.arguments(context(tmp_path, session="ses_1")))
    assert agent.arguments(context(tmp_path))[-4:] == ["--title", "T1", "--model", "local/m"]


# --- what it says -----------------------------------------------------------------------------------------------------


def test_a_stream_of_work_is_understood_sign_by_sign() -> None:
    """T24 G04: its log tells the session, the model and that a tool runs; the events what came of it."""
    signs = list(signs_of(OpencodeReader(), STREAMS / "opencode-works.jsonl"))
    assert signs[:5] == [
        Session("ses_e1fdd5ce1ffey01v3wuALeicbV"),
        Model("local/m"),
        ToolStarted("call 1", "edit", "a.txt"),
        ToolEnded("call 1", "write"),
        Tokens(3595, 19, step=True),
    ]
    assert signs[-1] == Over("success") and "<<<END_TASK_RESULT_V2>>>" in recorded("works").answer


def test_a_call_that_the_log_did_not_tell_is_still_one() -> None:
    """T24: the event alone is enough."""
    signs = list(signs_of(OpencodeReader(), STREAMS / "opencode-cached.jsonl"))
    assert signs[1:3] == [
        ToolStarted("call_34771ed87f1e30370", "write", "/trial/work/a.txt"),
        ToolEnded("call_34771ed87f1e30370", "write"),
    ]


def test_steps_add_up_with_what_was_cached() -> None:
    """G04: cached tokens are part of what was sent; a price that is not known is none."""
    assert recorded("works").tokens == Tokens(10845, 65, step=True)
    assert recorded("cached").tokens == Tokens(8618, 88, cache_read=3000, step=True)


def test_how_full_the_context_is_is_told_with_every_step() -> None:
    """Z05: what the last call of the model was sent and gave, cached or not; what it holds is not told."""
    told = [sign for sign in signs_of(OpencodeReader(), STREAMS / "opencode-works.jsonl") if isinstance(sign, Context)]
    assert [(sign.used, sign.window) for sign in told] == [(3614, 0), (3628, 0), (3668, 0)]


@pytest.mark.parametrize(
    ("name", "how"), [("overloaded", "network"), ("dropped", "network"), ("length", "length"), ("refused", "refused")]
)
def test_how_it_ended_is_told_apart(name: str, how: str) -> None:
    """D12: a busy server, a broken connection, an answer that was cut, one that was refused."""
    over = recorded(name).over
    assert over is not None and over.how == how


def test_a_limit_comes_with_the_time_its_answer_names() -> None:
    """G04 D12: 7 seconds after the last try; an empty account is told apart."""
    limited, empty = recorded("limited").limited, recorded("empty").limited
    assert limited is not None and limited.final and limited.reset_at == 1794759611.785 and not limited.empty
    assert empty is not None and empty.empty and empty.reset_at is None


def test_one_that_waits_for_its_limit_is_heard_waiting() -> None:
    """G04 D12 H05: its own log tells what the stream does not, and the session as well."""
    heard = recorded("waiting")
    assert heard.limited is not None and not heard.limited.final and heard.session.startswith("ses_")


def test_tries_that_the_stream_is_mute_about_are_heard() -> None:
    """D12: with the time it waits each time."""
    waits = [sign.wait_sec for sign in signs_of(OpencodeReader(), STREAMS / "opencode-dropped.jsonl")
             if isinstance(sign, Retrying)]  # fmt: skip
    assert waits == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_model_that_speaks_no_protocol_is_no_progress() -> None:
    """D12: opencode would ask it again for ever, several times a second."""
    retrying = recorded("garbage").retrying
    assert retrying is not None and retrying.wait_sec == math.inf


def test_a_wrong_key_is_a_missing_login() -> None:
    """D12: nothing to try again."""
    assert "Incorrect API key" in recorded("no-login").login


def test_a_refused_call_is_one_denial() -> None:
    """D12: a command it may not run, and a file outside of where it may work."""
    assert recorded("denied").denied == [Denied("bash", "echo x > b.txt")]
    assert recorded("outside").denied == [Denied("write", "/etc/xx.txt", rule=True)]


def test_a_session_that_is_gone_is_told_apart() -> None:
    """H05: then a new one is begun."""
    words = b"\x1b[91m\x1b[1mError: \x1b[0mSession not found"
    assert [type(sign) is Over and sign.how for sign in OpencodeReader().line(words)] == ["no_session"]


def test_noise_is_nothing() -> None:
    """T24: a reader never raises."""
    reader = OpencodeReader()
    for line in (b"", b"{", b'{"type":3}', b'{"type":"error"}', b'{"type":"tool_use","part":7}', b"\xff", b"[]"):
        list(reader.line(line))


# --- the real program -------------------------------------------------------------------------------------------------


def playing(steps: list[Any], resumed: list[Any] | None = None) -> ModelServer:
    return ModelServer({"scenarios": {"it": {"match": "", "steps": steps, "resumed": resumed or []}}, "default": "it"})


def place(folder: Path, server: ModelServer, **settings: Any) -> Trial:
    local = {"base_url": f"{server.url}/v1", "model": "local/m", "key_env": "LOCAL_KEY"}
    return Trial(folder, OpencodeAgent, installed("opencode"), environ={"LOCAL_KEY": KEY}, settings=local | settings)


WRITE = {"write": {"path": "a.txt", "content": "hi\n"}}


@pytest.mark.whole
@pytest.mark.agents_full
def test_the_program_edits_with_its_own_tools_and_answers(tmp_path: Path) -> None:
    """T24 G04: its tokens are those the server counted, and the key is nowhere."""
    with playing([WRITE, {"run": "echo x > b.txt"}, {"result": {}}]) as server:
        trial = place(tmp_path, server)
        ran = trial.run("make two files", walled=True)
        assert isinstance(trial.agent().extract_result(ran.log, "T1"), Parsed), ran.output
        assert (trial.workspace / "a.txt").exists() and (trial.workspace / "b.txt").exists()
        counted = server.tokens()
        assert ran.heard.tokens == Tokens(counted.input, counted.output, step=True) and trial.leaks(ran) == []


@pytest.mark.whole
@pytest.mark.agents_full
def test_the_program_killed_at_work_goes_on(tmp_path: Path) -> None:
    """H05 G04: the model sees the earlier turns, and both processes together say what the server counted."""
    with playing([WRITE, {"hang": 60, "where": "headers"}], [{"result": {}}]) as server:
        trial = place(tmp_path, server)
        going = trial.start("make a file", walled=True)
        assert server.wait_for(lambda seen: any(request.step == 1 for request in seen), 60)
        killed = going.kill()
        ran = trial.run("go on", session=killed.heard.session, walled=True)
        assert ran.heard.session == killed.heard.session and "TASK_RESULT_V2" in ran.heard.answer
        assert any("make a file" in turn.text for turn in server.requests[-1].conversation)
        told = [heard.tokens.input for heard in (killed.heard, ran.heard) if heard.tokens is not None]
        assert sum(number or 0 for number in told) == server.tokens().input


@pytest.mark.agents_full
def test_the_program_begins_no_session_it_does_not_know(tmp_path: Path) -> None:
    """H05: it says so, and nothing is asked of the model."""
    with playing([{"result": {}}]) as server:
        over = place(tmp_path, server).run("go on", session="ses_e1ffefc68ffeknCxf0zmSR9aRE", walled=True).heard.over
        assert over is not None and over.how == "no_session" and server.requests == ()

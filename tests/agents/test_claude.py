"""The `claude` agent: what its recorded output means, how it is called, and the real program against a played model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.programs.claude import ClaudeAgent, ClaudeReader, window_of
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import hear, signs_of
from ganger.contracts.parser import Parsed, parse_result
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
from tests.agents.real import KEY, TASK, Trial, wait_for

STREAMS = Path(__file__).with_name("streams")
RECORDED_AT = 1794761540.0
FAR = 600.0


def stream(name: str) -> Path:
    return STREAMS / f"claude-{name}.jsonl"


def heard(name: str) -> Heard:
    return hear(ClaudeReader(lambda: RECORDED_AT), stream(name))


# As the real program told it at its end, for models of these names.
WINDOWS = {
    "claude-opus-5-5": 1_000_000,
    "claude-sonnet-5": 1_000_000,
    "claude-opus-4-7": 1_000_000,
    "claude-opus-4-8": 1_000_000,
    "claude-haiku-4-6": 1_000_000,
    "claude-sonnet-4-8": 1_000_000,
    "claude-sonnet-4-5[1m]": 1_000_000,
    "my-own-model": 1_000_000,
    "claude-opus-4-5": 200_000,
    "claude-opus-4-6": 200_000,
    "claude-sonnet-4-5": 200_000,
    "claude-sonnet-4-6": 200_000,
    "claude-haiku-4-5": 200_000,
    "claude-3-5-haiku-20241022": 200_000,
    "claude-sonnet-4-20250514": 200_000,
    "claude-sonnet-4-5-20250929": 200_000,
    "claude-haiku-4-5-20251001": 200_000,
    "anthropic.claude-sonnet-4-5-v1:0": 200_000,
}


@pytest.mark.parametrize("model", WINDOWS)
def test_what_the_context_holds_is_known_by_the_models_name(model: str) -> None:
    """Z05: the program says it when it is through, which is too late."""
    assert window_of(model) == WINDOWS[model]


@pytest.mark.parametrize(("given", "window"), [(0, 1_000_000), (150_000, 150_000)])
def test_how_full_the_context_is_is_told_with_every_answer(given: int, window: int) -> None:
    """Z05: and the operator's word counts more than the program's."""
    reader = agent(context_tokens=given).reader()
    told = [sign for sign in signs_of(reader, stream("success")) if isinstance(sign, Context)]
    assert len(told) > 2 and {sign.window for sign in told} == {window}


def agent(environ: dict[str, str] | None = None, **settings: Any) -> ClaudeAgent:
    return ClaudeAgent("c", AgentSettings(kind="claude", **settings), Path("/root"), environ or {})


def context(folder: Path, **more: Any) -> AttemptContext:
    given = {"run_id": "r", "task_id": "T1", "attempt": 1, "role": "worker", "workspace": folder, "timeout_sec": 9.0}
    places = {"prompt_file": folder / "p", "log_path": folder / "l", "home": folder}
    return AttemptContext(**{**given, **places, **more})


def status_of(found: Heard) -> str:
    parsed = parse_result(found.answer.encode(), task_id=TASK)
    return parsed.value.status if isinstance(parsed, Parsed) else parsed.code


def test_claude_run_becomes_exactly_these_signs() -> None:
    """T24 G04: session, model, tools, what each answer used, the sum with its cost, the end."""
    signs = list(signs_of(ClaudeReader(), stream("success")))
    tools = [sign for sign in signs if isinstance(sign, ToolStarted)]
    assert [(tool.name, tool.about) for tool in tools] == [("Write", "/trial/work/a.txt"), ("Bash", "cat a.txt")]
    names = [type(sign).__name__ for sign in signs]
    one = ["ToolStarted", "Tokens", "Context", "ToolEnded"]
    assert names == ["Session", "Model", *one, *one, "Said", "Tokens", "Context", "Tokens", "Context", "Over"]
    assert next(sign for sign in signs if isinstance(sign, Tokens)) == Tokens(
        5000, 300, cache_read=1000, cache_write=500, step=True
    )
    assert signs[-3:-1] == [
        Tokens(15866, 344, cache_read=1000, cache_write=500, usd=pytest.approx(0.067044)),  # type: ignore[arg-type]
        Context(5475, 1_000_000),
    ]


def test_claude_answer_is_its_last_word() -> None:
    """T24: tools were used, or files were given in the answer; both hold the block."""
    assert [status_of(heard(name)) for name in ("success", "writes", "resumed", "subagent", "schema")] == ["DONE"] * 5


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("500", "network"),
        ("drop", "network"),
        ("drop-stream", "network"),
        ("garbage", "network"),
        ("length", "length"),
        ("refused", "refused"),
        ("turns", "turns"),
        ("no-session", "no_session"),
        ("bad-option", "usage"),
    ],
)
def test_claude_failure_is_told_apart(name: str, how: str) -> None:
    """T24 D12: it ends most of these with `subtype: success`."""
    found = heard(name)
    assert found.over is not None
    assert (found.over.how, found.login, found.limited, found.denied) == (how, "", None, [])


@pytest.mark.parametrize("name", ["401", "403", "no-login"])
def test_claude_without_a_valid_key_is_a_missing_login(name: str) -> None:
    """T24 D12: no attempt is burnt for it."""
    found = heard(name)
    assert (bool(found.login), found.limited) == (True, None)


def test_claude_limits() -> None:
    """D12 G04: a plan's limit has its time, a key's has none, an empty account waits for nobody."""
    plan, key, empty = heard("plan-limit").limited, heard("quota").limited, heard("credit").limited
    assert plan == Limited("You've hit your 5-hour limit · resets 6:52pm (UTC)", reset_at=1794768740.0)
    assert key is not None
    assert (key.reset_at, key.final, key.empty) == (None, True, False)
    assert empty == Limited("Credit balance is too low", empty=True)


@pytest.mark.parametrize(
    ("more", "limited"),
    [
        ({}, True),
        ({"overageStatus": "rejected", "isUsingOverage": False}, True),
        ({"isUsingOverage": True}, False),
        ({"overageStatus": "allowed"}, False),
        ({"overageStatus": "allowed_warning"}, False),
        ({"rateLimitGraceActive": True}, False),
    ],
)
def test_claude_that_pays_beyond_its_plan_is_not_limited(more: dict[str, Any], limited: bool) -> None:
    """D12 G04: the plan is used up, and the work goes on."""
    info = {"status": "rejected", "resetsAt": 1794768740, "rateLimitType": "five_hour", **more}
    line = json.dumps({"type": "rate_limit_event", "rate_limit_info": info}).encode()
    found = [Limited("five_hour", reset_at=1794768740.0, final=False)] if limited else []
    assert list(ClaudeReader().line(line)) == found


def test_claude_that_tries_again_says_how_long_it_waits() -> None:
    """D12: while it waits it is a limit that is not final, and the wait is known."""
    signs = list(signs_of(ClaudeReader(lambda: 100.0), stream("429")))
    assert signs[2:4] == [Limited("rate_limit", reset_at=101.0, final=False), Retrying("rate_limit", 429, 1.0)]


def test_claude_denials_are_counted_once() -> None:
    """D12: they are told when they happen and again at the end."""
    found = heard("denied")
    assert found.denied == [Denied("Bash", "curl http://127.0.0.1:9/a"), Denied("Bash", "curl http://127.0.0.1:9/b")]


def test_claude_killed_in_a_tool_has_told_what_it_used() -> None:
    """H05 G04: whole answers are counted as they come, each once, although its lines repeat."""
    found = heard("killed")
    assert found.tokens == Tokens(15000, 1600, step=True)
    assert ([tool.name for tool in found.running.values()], found.over) == (["Bash"], None)
    assert found.session == heard("resumed").session


def test_claude_resumed_counts_its_own_process_only() -> None:
    """H05 G04: cost and tokens of the session's earlier processes are not in it."""
    tokens = heard("resumed").tokens
    assert tokens == Tokens(11386, 44, usd=pytest.approx(0.046424))  # type: ignore[arg-type]


def test_claude_subagents_count_but_do_not_answer() -> None:
    """G04 T24: their tokens are in the sum, their words are not in the answer."""
    found = heard("subagent")
    assert found.tokens == Tokens(25345, 106, usd=pytest.approx(0.1035))  # type: ignore[arg-type]
    assert "All quiet" not in "".join(found.messages)


def test_claude_cost_of_a_model_it_cannot_price_is_unknown() -> None:
    """G04: never a guess, never 0."""
    tokens = heard("strange-model").tokens
    assert tokens is not None
    assert (tokens.input, tokens.usd) == (5168, None)


def test_claude_several_results_add_up() -> None:
    """G04: work left in the background starts another turn with a result of its own."""
    reader, found = ClaudeReader(), Heard()
    for tokens in (10, 5):
        used = {"m": {"inputTokens": tokens, "outputTokens": 1, "costUSD": 0.5, "costBasis": "list"}}
        line = {"type": "result", "subtype": "success", "result": "x", "model_usage_since_last_result": used}
        found.add(reader.line(json.dumps(line).encode()))
    assert found.tokens == Tokens(15, 2, usd=1.0)


def test_claude_nonsense_is_nothing() -> None:
    """T24: lines of any form never raise and never become an answer."""
    reader = ClaudeReader()
    lines = [b"", b"\xff\xfe", b"{", b"[]", b'{"type": 1}', b'{"type": "result", "permission_denials": 3}']
    lines += [b'{"type": "assistant", "message": []}', b'{"type": "stream_event", "event": {"type": "message_delta"}}']
    found = Heard()
    for line in lines:
        found.add(reader.line(line))
    found.add(reader.end())
    assert found.messages == []


def test_claude_says_which_session_it_is_at_once() -> None:
    """H05: the first line names it, so that a process killed right after can be continued."""
    signs = list(signs_of(ClaudeReader(), stream("killed")))
    assert isinstance(signs[0], Session)
    assert signs[1] == Model("claude-opus-5-5")
    assert not any(isinstance(sign, Said | Over) for sign in signs)
    assert len([sign for sign in signs if isinstance(sign, ToolEnded)]) == 1


def test_claude_is_called_as_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T24 W01: model, effort, turns, session and the operator's words are arguments; the prompt is not."""
    given = agent(model="opus", effort="high", max_turns=7, args=("--add-dir", "/x"))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    launch = given.prepare(context(tmp_path, session="s-1", walled=True))
    words = " ".join(launch.argv)
    assert "--model opus --effort high --max-turns 7" in words
    assert "--resume s-1" in words
    assert words.endswith("--permission-mode bypassPermissions --add-dir /x")
    assert launch.stdin_path == tmp_path / "p"


def test_claude_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T24: root cannot switch its questions off, and gets its tools by name; within walls it is who owns the place."""
    asked = [("auto", True), ("auto", False), ("edit", True), ("full", False)]

    def modes(uid: int) -> list[str]:
        monkeypatch.setattr("os.geteuid", lambda: uid)
        wheres = [(permissions, context(tmp_path, walled=walled)) for permissions, walled in asked]
        return [agent(permissions=permissions).arguments(where)[-1] for permissions, where in wheres]

    owner = tmp_path.stat().st_uid
    assert modes(owner or 1000) == ["bypassPermissions", "acceptEdits", "acceptEdits", "bypassPermissions"]
    as_root = modes(0)
    assert as_root[0].startswith("--allowedTools=Bash,") == (owner == 0)
    assert as_root[1:3] == ["acceptEdits"] * 2 and as_root[3].startswith("--allowedTools=Bash,")


def test_claude_key_of_another_name_is_the_only_one(tmp_path: Path) -> None:
    """The key the operator named is used, and its value is in no argument and no file."""
    given = agent({"MINE": KEY, "ANTHROPIC_API_KEY": "other"}, key_env="MINE", base_url="http://127.0.0.1:9")
    launch, files = given.prepare(context(tmp_path)), given.furnish(context(tmp_path))
    assert (launch.env["ANTHROPIC_API_KEY"], launch.env["ANTHROPIC_BASE_URL"]) == (KEY, "http://127.0.0.1:9")
    assert not any(KEY in word for word in (*launch.argv, *(data.decode() for data in files.values())))


def trial(folder: Path, server: ModelServer, **settings: Any) -> Trial:
    environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
    return Trial(folder, ClaudeAgent, installed("claude"), environ=environ, settings={"retries": 1, **settings})


@pytest.mark.whole
@pytest.mark.timeout(FAR)
def test_real_claude_writes_a_file_and_answers(tmp_path: Path) -> None:
    """T24 G04: by its own tools, tokens as the server counted them, the key nowhere."""
    steps = [{"write": {"path": "a.txt", "content": "hello\n"}}, {"run": "env"}, {"result": {}}]
    with ModelServer(steps) as server:
        one = trial(tmp_path, server)
        ran, counted = one.run("Make a.txt.", walled=True), server.tokens()
    assert (ran.code, status_of(ran.heard)) == (0, "DONE")
    assert (one.workspace / "a.txt").read_text() == "hello\n"
    assert ran.heard.tokens is not None
    assert (ran.heard.tokens.input, ran.heard.tokens.output) == (counted.input, counted.output)
    assert one.leaks(ran) == []


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.timeout(FAR)
def test_real_claude_killed_in_a_tool_goes_on(tmp_path: Path) -> None:
    """H05 G04: the model sees the earlier turns, and both processes together used what the server counted."""
    begun = [{"write": {"path": "a.txt", "content": "x"}}, {"run": "touch mark; sleep 300"}]
    with ModelServer({"steps": begun, "resumed": [{"run": "cat a.txt"}, {"result": {}}]}) as server:
        one = trial(tmp_path, server)
        going = one.start("Make a.txt.", walled=True)
        wait_for(one.workspace / "mark")
        killed, asked = going.kill(), len(server.requests)
        ran = one.run("Make a.txt.", session=killed.heard.session, walled=True)
        counted, seen = server.tokens(), server.requests[asked].conversation
    assert status_of(ran.heard) == "DONE"
    # The call that was running may not have reached its transcript yet.
    assert [call.name for turn in seen for call in turn.calls] in (["Write", "Bash"], ["Write"])
    used = [found.tokens for found in (killed.heard, ran.heard) if found.tokens is not None]
    assert sum((one.input or 0) for one in used) == counted.input
    assert sum((one.output or 0) for one in used) == counted.output


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.timeout(FAR)
def test_real_claude_is_held_to_the_schema(tmp_path: Path) -> None:
    """T24: an answer by its own tool becomes the block."""
    answer = {"contract_version": "2.0", "task_id": TASK, "status": "DONE", "summary": "ok"}
    with ModelServer([{"tool": {"name": "StructuredOutput", "input": answer}}]) as server:
        ran = trial(tmp_path, server, answer_schema=True).run("Say so.", walled=True)
    assert status_of(ran.heard) == "DONE"

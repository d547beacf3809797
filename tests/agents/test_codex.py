"""The `codex` agent: what its recorded output means, how it is called, and the real program against a played model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.programs.codex import CodexAgent, CodexReader
from ganger.agents.result_schema import STRICT_SCHEMA
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
RECORDED_AT = 1794761485.0
MODEL = "gpt-5.1"
FAR = 600.0


def stream(name: str) -> Path:
    return STREAMS / f"codex-{name}.jsonl"


def heard(name: str) -> Heard:
    return hear(CodexReader(MODEL, lambda: RECORDED_AT), stream(name))


def agent(environ: dict[str, str] | None = None, **settings: Any) -> CodexAgent:
    return CodexAgent("c", AgentSettings(kind="codex", **settings), Path("/root"), environ or {})


def context(folder: Path, **more: Any) -> AttemptContext:
    given = {"run_id": "r", "task_id": "T1", "attempt": 1, "role": "worker", "workspace": folder, "timeout_sec": 9.0}
    places = {"prompt_file": folder / "p", "log_path": folder / "l", "home": folder}
    return AttemptContext(**{**given, **places, **more})


def status_of(found: Heard) -> str:
    parsed = parse_result(found.answer.encode(), task_id=TASK)
    return parsed.value.status if isinstance(parsed, Parsed) else parsed.code


def test_codex_run_becomes_exactly_these_signs() -> None:
    """T24 G04: session, model, what each answer used, tools, text, the sum, the end; warnings are none of it."""
    signs = list(signs_of(CodexReader(MODEL), stream("success")))
    session, said = signs[0], next(sign for sign in signs if isinstance(sign, Said))
    assert isinstance(session, Session)
    assert signs == [
        *(session, Model(MODEL)),
        *(Tokens(5000, 300, cache_read=1000, step=True), Model(MODEL), Context(5300, 258_400)),
        ToolStarted("item_1", "shell", "/usr/bin/bash -lc \"printf %s 'hello\n' > a.txt\""),
        ToolEnded("item_1", "shell"),
        *(Tokens(6157, 5, step=True), Model(MODEL), Context(6162, 258_400)),
        ToolStarted("item_2", "shell", "/usr/bin/bash -lc 'cat a.txt'"),
        ToolEnded("item_2", "shell"),
        *(Tokens(6189, 38, step=True), Model(MODEL), Context(6227, 258_400)),
        said,
        Tokens(17346, 343, cache_read=1000),
        Over("success", said.text),
    ]


def test_codex_answer_is_its_last_message() -> None:
    """T24: tools were used, or files were given in the answer; both hold the block."""
    assert [status_of(heard(name)) for name in ("success", "writes", "resumed")] == ["DONE"] * 3


def test_codex_answer_by_schema_becomes_the_block() -> None:
    """T24: held to a schema it answers with an object alone."""
    parsed = parse_result(heard("schema").answer.encode())
    assert isinstance(parsed, Parsed)
    assert parsed.value.status == "DONE"


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("500", "network"),
        ("drop", "network"),
        ("drop-stream", "network"),
        ("garbage", "network"),
        ("length", "length"),
        ("refused", "refused"),
        ("no-session", "no_session"),
        ("bad-option", "usage"),
    ],
)
def test_codex_failure_is_told_apart(name: str, how: str) -> None:
    """T24 D12: it says all of these in words alone."""
    found = heard(name)
    assert found.over is not None
    assert (found.over.how, found.login, found.limited, found.denied) == (how, "", None, [])


@pytest.mark.parametrize("name", ["401", "403"])
def test_codex_without_a_valid_key_is_a_missing_login(name: str) -> None:
    """T24 D12: no attempt is burnt for it."""
    found = heard(name)
    assert (bool(found.login), found.limited, found.over) == (True, None, None)


def test_codex_limits() -> None:
    """D12 G04: a plan's limit has its time, an empty account waits for nobody."""
    plan, key, empty = heard("quota").limited, heard("429").limited, heard("credit").limited
    assert plan is not None
    assert plan.reset_at is not None
    assert (plan.empty, RECORDED_AT < plan.reset_at < RECORDED_AT + 86400) == (False, True)
    assert key == Limited("exceeded retry limit, last status: 429 Too Many Requests")
    assert empty == Limited("Quota exceeded. Check your plan and billing details.", empty=True)


def test_codex_that_tries_again_is_not_through() -> None:
    """D12: what it calls an error is a retry, as long as the turn goes on."""
    limited, dropped = (list(signs_of(CodexReader(), stream(name)))[2] for name in ("429", "drop"))
    assert limited == Limited("exceeded retry limit, last status: 429 Too Many Requests", final=False)
    assert dropped == Retrying("stream disconnected before completion: error sending request")


def test_codex_refused_commands_are_denials() -> None:
    """D12: only its error stream tells of them."""
    found = heard("denied")
    assert [(denied.tool, denied.rule) for denied in found.denied] == [("shell", False)] * 2


def test_codex_patch_outside_breaks_the_rule() -> None:
    """D12: leaving the workspace is not a missing permission."""
    words = "patch rejected: writing outside of the project; rejected by user approval settings"
    line = f"2026-11-15T16:49:50.101482Z ERROR codex_core::tools::router: error={words}"
    assert list(CodexReader().line(line.encode())) == [Denied("apply_patch", words, rule=True)]


def told(error: str) -> list[object]:
    line = f"2026-11-15T17:22:06.729170Z ERROR codex_core::tools::router: error={error}"
    return list(CodexReader().line(line.encode()))


@pytest.mark.parametrize(
    "error",
    [
        'exec_command failed: CreateProcess { message: "Rejected(\\"Failed to create unified exec process: No such '
        'file or directory (os error 2)\\")" }',
        "unsupported call: no_such_tool_reject",
        "patch rejected: empty patch",
        "write_stdin rejected: the session is closed",
    ],
)
def test_codex_mistake_of_the_model_is_no_denial(error: str) -> None:
    """D12: a command in a folder that does not exist is refused by nobody."""
    assert told(error) == []


@pytest.mark.parametrize(
    "error",
    [
        "approval policy is Never; reject command — you cannot ask for escalated permissions",
        'exec_command failed: CreateProcess { message: "Rejected(\\"`rm -rf /` rejected: blocked by policy\\")" }',
        'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }',
        "MCP tool call requires approval, but approval policy is never",
        "This action was rejected due to unacceptable risk.",
    ],
)
def test_codex_refusal_by_a_policy_is_a_denial(error: str) -> None:
    """D12: whatever it refuses the command for."""
    assert told(error) == [Denied("shell", error[:200])]


def test_codex_failed_command_is_a_failed_tool() -> None:
    """T24: a command that fails is no denial and no end."""
    signs = list(signs_of(CodexReader(), stream("failed-command")))
    assert ToolEnded("item_1", "shell", ok=False) in signs


def test_codex_killed_in_a_tool_has_told_what_it_used() -> None:
    """H05 G04: its own count of the session forgets the answer whose tool was running."""
    found = heard("killed")
    assert found.tokens == Tokens(15000, 1600, step=True)
    assert ([tool.name for tool in found.running.values()], found.over) == (["shell"], None)
    assert found.session == heard("resumed").session


def test_codex_resumed_counts_its_own_process_only() -> None:
    """H05 G04: although its stream tells the sum of the whole thread."""
    assert heard("resumed").tokens == Tokens(12765, 43)


def test_codex_without_traces_tells_the_threads_sum(tmp_path: Path) -> None:
    """G04: then the session's running total is all there is, and is marked as such."""
    lines = [line for line in stream("success").read_bytes().splitlines(keepends=True) if b"codex_otel" not in line]
    (tmp_path / "log").write_bytes(b"".join(lines))
    assert hear(CodexReader(), tmp_path / "log").tokens == Tokens(17346, 343, cache_read=1000, session_tokens=True)


def test_codex_sum_is_the_threads_when_an_answer_was_not_traced(tmp_path: Path) -> None:
    """G04: a sum with holes is not told."""
    lines = stream("success").read_bytes().splitlines(keepends=True)
    first = next(line for line in lines if b"input_token_count" in line)
    (tmp_path / "log").write_bytes(b"".join(line for line in lines if line != first))
    assert hear(CodexReader(), tmp_path / "log").tokens == Tokens(17346, 343, cache_read=1000, session_tokens=True)


def test_codex_nonsense_is_nothing() -> None:
    """T24: lines of any form never raise and never become an answer."""
    reader, found = CodexReader(), Heard()
    lines = [b"", b"\xff\xfe", b"{", b"[]", b'{"type": 1}', b'{"type": "item.completed", "item": 3}']
    lines += [b'{"type": "error"}', b'2026Z  INFO codex_otel.trace_safe: event.name="codex.sse_event" x']
    for line in lines:
        found.add(reader.line(line))
    assert (found.messages, found.over, found.tokens) == ([], None, None)


def test_codex_is_called_as_configured(tmp_path: Path) -> None:
    """T24 W01: the operator's words belong to `exec`, so they stand before the session that goes on."""
    given = agent(model="m", effort="high", args=("--add-dir", "/x"))
    launch = given.prepare(context(tmp_path, session="s-1", walled=True))
    words = " ".join(launch.argv)
    assert '-c sandbox_mode="danger-full-access" -m m -c model_reasoning_effort="high"' in words
    assert words.endswith("--add-dir /x resume s-1 -")
    assert launch.stdin_path == tmp_path / "p"


def test_codex_outside_the_walls_keeps_its_own(tmp_path: Path) -> None:
    """T24: nothing is switched off where nothing else stands around it."""
    assert 'sandbox_mode="workspace-write"' in agent().arguments(context(tmp_path))
    assert 'sandbox_mode="danger-full-access"' in agent(permissions="full").arguments(context(tmp_path))


def test_codex_another_endpoint_is_a_provider(tmp_path: Path) -> None:
    """T24: from the config or OPENAI_BASE_URL, which the program does not read; the key by its name alone."""
    given = agent({"MINE": KEY, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, key_env="MINE", retries=3)
    launch = given.prepare(context(tmp_path))
    provider = next(word for word in launch.argv if word.startswith("model_providers."))
    assert 'base_url="http://127.0.0.1:9/v1"' in provider
    assert 'env_key="MINE"' in provider
    assert "stream_max_retries=3" in provider
    assert not any(KEY in word for word in launch.argv)


def test_codex_schema_has_no_optional_field() -> None:
    """T24: its vendor's strict mode refuses a schema that has one."""
    schema = json.loads(STRICT_SCHEMA)
    write = schema["properties"]["writes"]["items"]
    assert all(set(one["required"]) == set(one["properties"]) for one in (schema, write))


def trial(folder: Path, server: ModelServer, **settings: Any) -> Trial:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{server.url}/v1"}
    given = {"retries": 1, "model": MODEL, **settings}
    return Trial(folder, CodexAgent, installed("codex"), environ=environ, settings=given)


def test_what_the_context_holds_is_known_while_it_works_and_the_operators_word_counts() -> None:
    """Z05: its stream does not say it."""
    reader = agent(context_tokens=100_000).reader()
    told = [sign for sign in signs_of(reader, stream("success")) if isinstance(sign, Context)]
    assert {sign.window for sign in told} == {100_000}


@pytest.mark.whole
@pytest.mark.timeout(FAR)
def test_real_codex_writes_a_file_and_answers(tmp_path: Path) -> None:
    """T24 G04: by its own tools, tokens as the server counted them, the key nowhere."""
    steps = [{"write": {"path": "a.txt", "content": "hello\n"}}, {"run": "env"}, {"result": {}}]
    with ModelServer(steps) as server:
        one = trial(tmp_path, server)
        ran, counted = one.run("Make a.txt.", walled=True), server.tokens()
    assert (ran.code, status_of(ran.heard)) == (0, "DONE")
    assert (one.workspace / "a.txt").read_text() == "hello\n"
    assert ran.heard.tokens == Tokens(counted.input, counted.output)
    assert one.leaks(ran) == []


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.timeout(FAR)
def test_real_codex_killed_in_a_tool_goes_on(tmp_path: Path) -> None:
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
    assert len([call for turn in seen for call in turn.calls]) == 2
    used = [found.tokens for found in (killed.heard, ran.heard) if found.tokens is not None]
    assert sum((one.input or 0) for one in used) == counted.input
    assert sum((one.output or 0) for one in used) == counted.output


@pytest.mark.whole
@pytest.mark.agents_full
@pytest.mark.timeout(FAR)
def test_real_codex_takes_the_schema(tmp_path: Path) -> None:
    """T24: the model is asked for an object of that form."""
    with ModelServer([{"result": {}}]) as server:
        ran = trial(tmp_path, server, answer_schema=True).run("Say so.", walled=True)
    assert isinstance(parse_result(ran.heard.answer.encode()), Parsed)

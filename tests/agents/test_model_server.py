"""The scripted model server, asked as the coding CLIs ask it: four protocols, streamed and plain."""

from __future__ import annotations

import gzip
import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from ganger.cli.shell.main import run_command
from ganger.contracts.parser import Parsed, parse_result
from ganger.dev.server import ModelServer

PROTOCOLS = ("anthropic", "responses", "chat", "gemini")
PATHS = {
    "anthropic": "/v1/messages?beta=true",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
}
STREAMED = "/v1beta/models/m:streamGenerateContent?alt=sse"
WRITE = {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS = {"write_file": WRITE, "bash": SHELL}
KEY = "sk-never-to-be-written-down"

Said = list[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    def events(self) -> list[dict[str, object]]:
        lines = [line.strip() for line in self.body.decode().splitlines() if line.startswith("data: ")]
        return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def post(server: ModelServer, path: str, body: object, headers: Mapping[str, str] | None = None) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    line = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
    try:
        line.request("POST", path, data, {"x-api-key": KEY, "authorization": f"Bearer {KEY}", **(headers or {})})
        answer = line.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        line.close()


def request(protocol: str, said: Said, *, stream: bool = False, tools: bool = True) -> tuple[str, dict[str, object]]:
    """A conversation in a protocol's own form; who is `user`, `model`, `call` or `tool`."""
    body: dict[str, object] = {"model": "m", "stream": stream}
    if protocol == "gemini":
        body = {"contents": [_gemini(who, text) for who, text in said]}
        declared = [{"name": name, "parametersJsonSchema": schema} for name, schema in TOOLS.items()]
        return (STREAMED if stream else PATHS[protocol]), {
            **body,
            "tools": [{"functionDeclarations": declared}] * tools,
        }
    if protocol == "anthropic":
        body |= {"messages": [_anthropic(who, text) for who, text in said]}
        body |= {"tools": [{"name": name, "input_schema": schema} for name, schema in TOOLS.items()] * tools}
    elif protocol == "chat":
        body |= {"messages": [_chat(who, text) for who, text in said], "stream_options": {"include_usage": True}}
        functions = [{"name": name, "parameters": schema} for name, schema in TOOLS.items()]
        body |= {"tools": [{"type": "function", "function": function} for function in functions] * tools}
    else:
        body |= {"input": [_responses(who, text) for who, text in said]}
        body |= {"tools": [{"type": "function", "name": n, "parameters": s} for n, s in TOOLS.items()] * tools}
    return PATHS[protocol], body


def _anthropic(who: str, text: str) -> object:
    part: dict[str, object] = {"type": "text", "text": text}
    if who == "call":
        part = {"type": "tool_use", "id": "c", "name": "bash", "input": {"command": text}}
    elif who == "tool":
        part = {"type": "tool_result", "tool_use_id": "c", "content": text}
    return {"role": "assistant" if who in ("call", "model") else "user", "content": [part]}


def _chat(who: str, text: str) -> object:
    if who == "call":
        function = {"name": "bash", "arguments": json.dumps({"command": text})}
        return {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    if who == "tool":
        return {"role": "tool", "tool_call_id": "c", "content": text}
    return {"role": "assistant" if who == "model" else "user", "content": text}


def _responses(who: str, text: str) -> object:
    if who == "call":
        arguments = json.dumps({"command": text})
        return {"type": "function_call", "call_id": "c", "name": "bash", "arguments": arguments}
    if who == "tool":
        return {"type": "function_call_output", "call_id": "c", "output": text}
    role, kind = ("assistant", "output_text") if who == "model" else ("user", "input_text")
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _gemini(who: str, text: str) -> object:
    part: dict[str, object] = {"text": text}
    if who == "call":
        part = {"functionCall": {"name": "bash", "args": {"command": text}}}
    elif who == "tool":
        part = {"functionResponse": {"name": "bash", "response": {"output": text}}}
    return {"role": "model" if who in ("call", "model") else "user", "parts": [part]}


def say(server: ModelServer, protocol: str, said: Said, *, stream: bool = False, tools: bool = True) -> Answer:
    return post(server, *request(protocol, said, stream=stream, tools=tools))


def found(value: object, name: str) -> list[object]:
    """Every value of that name, wherever it stands."""
    if isinstance(value, list):
        return [hit for inner in value for hit in found(inner, name)]
    if not isinstance(value, dict):
        return []
    here = [value[name]] if name in value else []
    return here + [hit for inner in value.values() for hit in found(inner, name)]


def streamed_text(protocol: str, answer: Answer) -> str:
    events = answer.events()
    if protocol == "responses":
        return "".join(str(e["delta"]) for e in events if e["type"] == "response.output_text.delta")
    name = {"anthropic": "text", "chat": "content", "gemini": "text"}[protocol]
    return "".join(map(str, found(events, name)))


def counted(protocol: str, last: object) -> tuple[int, int]:
    """Tokens sent and received, as that protocol tells them."""
    usage = [u for name in ("usage", "usageMetadata") for u in found(last, name) if u][-1]
    assert isinstance(usage, dict)
    if protocol == "anthropic":
        cached = usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
        return usage["input_tokens"] + cached, usage["output_tokens"]
    names = {
        "responses": ("input_tokens", "output_tokens"),
        "chat": ("prompt_tokens", "completion_tokens"),
        "gemini": ("promptTokenCount", "candidatesTokenCount"),
    }[protocol]
    return usage[names[0]], usage[names[1]] + usage.get("thoughtsTokenCount", 0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_result_arrives_whole_in_every_protocol(protocol: str, stream: bool, tmp_path: Path) -> None:
    """T24 T07: the block of a streamed answer comes in pieces, names the task, and is read by the one parser."""
    with ModelServer() as server:
        answer = say(server, protocol, [("user", '# Task api\n\n- "task_id": "api \\"1\\""')], stream=stream)
    texts = found(answer.json(), "content" if protocol == "chat" else "text") if not stream else []
    log = tmp_path / "log"
    log.write_text(streamed_text(protocol, answer) if stream else str(texts[0]))
    read = parse_result(log, task_id='api "1"')
    assert isinstance(read, Parsed)
    assert not stream or not any("<<<TASK_RESULT_V2>>>" in json.dumps(event) for event in answer.events()[2:-9])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tokens_told_are_the_tokens_counted(protocol: str, stream: bool) -> None:
    """T24 G04: what the client is told, cached and thinking tokens in its own form, is what is summed."""
    usage = {"input": 5000, "output": 70, "cache_read": 3000, "cache_write": 500}
    steps = [{"text": "hello", "think": "let me see", "usage": usage}]
    with ModelServer(steps) as server:
        answer = say(server, protocol, [("user", "hi")], stream=stream)
        told = counted(protocol, answer.events() if stream else answer.json())
        total = server.tokens()
    assert told == (total.input, total.output) == (5000, 70)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tokens_follow_the_length_of_the_conversation(protocol: str) -> None:
    """T24: the same conversation costs the same; four more characters cost one token more."""
    with ModelServer([{"text": "hello"}]) as server:
        for text in ("x" * 40, "x" * 40, "x" * 44):
            say(server, protocol, [("user", text)])
        assert [seen.input_tokens for seen in server.requests] == [1010, 1010, 1011]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_wishes_become_calls_of_the_clients_own_tools(protocol: str, stream: bool) -> None:
    """T24: a file goes to the tool that writes, in the folder the conversation tells; a command to the shell."""
    steps = [{"calls": [{"write": {"path": "a.txt", "content": "A"}}, {"run": "ls -l"}], "say": "Both."}]
    with ModelServer(steps) as server:
        answer = say(server, protocol, [("user", "<env>Working directory: /w/x\n</env> go")], stream=stream)
    text = answer.body.decode()
    if stream and protocol != "gemini":
        name = {"anthropic": "partial_json", "responses": "delta", "chat": "arguments"}[protocol]
        text = "".join(map(str, found(answer.events(), name)))
    plain = text.replace("\\", "").replace(" ", "")
    assert '"path":"/w/x/a.txt"' in plain
    assert '"content":"A"' in plain
    assert '"command":"ls-l"' in plain
    assert "write_file" in answer.body.decode()


def test_a_client_without_a_file_tool_writes_by_its_shell(tmp_path: Path) -> None:
    """T24: what a real shell makes of the command is the file as it was given."""
    shell = {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {"type": "string"}}}}
    with ModelServer([{"write": {"path": "d/a b.txt", "content": "it's\n$HOME"}}]) as server:
        answer = post(server, "/v1/responses", {"model": "m", "input": "go", "tools": [shell]})
    command = json.loads(str(found(answer.json(), "arguments")[0]))["cmd"]
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / "d" / "a b.txt").read_text() == "it's\n$HOME"


STEPS = [{"run": "one"}, {"run": "two"}, {"text": "the end"}]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_step_follows_from_the_conversation_alone(protocol: str) -> None:
    """T24: the same request asked twice, or in another order, is answered the same; the last step repeats."""
    first: Said = [("user", "go")]
    second = [*first, ("call", "one"), ("tool", "done"), ("tool", "done beside it")]
    third = [*second, ("call", "two"), ("tool", "done")]
    beyond = [*third, ("call", "three"), ("tool", "done")]
    with ModelServer(STEPS) as server:
        for said in (third, first, second, second, beyond, first):
            say(server, protocol, said)
        assert [seen.step for seen in server.requests] == [2, 0, 1, 1, 2, 0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_prompt_starts_over_and_a_resumed_session_has_its_own_steps(protocol: str) -> None:
    """H05 T24: calls of an earlier prompt do not count; `resumed` is played when there was one."""
    worked: Said = [("user", "go"), ("call", "one"), ("tool", "done")]
    again = [*worked, ("model", "ended"), ("user", "go on")]
    with ModelServer({"steps": STEPS, "resumed": [{"run": "back"}, {"text": "resumed"}]}) as server:
        answer = say(server, protocol, again)
        say(server, protocol, [*again, ("call", "back"), ("tool", "<system-reminder>x</system-reminder>")])
        say(server, protocol, [*worked, ("user", "<system-reminder>keep going</system-reminder>")])
        assert [(s.step, s.answered) for s in server.requests] == [(0, "run"), (1, "text"), (1, "run")]
    assert b"back" in answer.body


def test_a_prompt_beside_the_lost_one_counts_as_resumed() -> None:
    """H05: a client that drops a lost call sends both prompts in a row."""
    known = {"scenarios": {"s": {"match": "MARK", "again": "go on", "steps": STEPS, "resumed": [{"text": "back"}]}}}
    with ModelServer(known) as server:
        for said in (["MARK"], ["MARK", "MARK once more"], ["MARK", "go on"]):
            say(server, "gemini", [("user", text) for text in said])
        assert [seen.answered for seen in server.requests] == ["run", "text", "text"]


def test_the_prompt_chooses_the_scenario() -> None:
    """T24: the first that matches, the newest prompt before the older ones, else the default."""
    known = {
        "scenarios": {"a": {"match": "AAA", "steps": STEPS}, "b": {"match": "BBB", "steps": STEPS}},
        "default": "b",
    }
    with ModelServer(known) as server:
        for said in (["has AAA"], ["AAA BBB"], ["AAA", "then BBB"], ["AAA", "neither"], ["neither"]):
            say(server, "chat", [("user", text) for text in said])
        assert [seen.scenario for seen in server.requests] == ["a", "a", "b", "a", "b"]
        assert server.tokens("a").requests == 3


FAULTS = [401, 402, 403, 429, 500, 503, 529, "credit", "quota"]


@pytest.mark.parametrize("error", FAULTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_have_the_protocols_own_status_and_body(protocol: str, error: int | str) -> None:
    """T24 G04: a refused request counts no tokens; the body names the error as the vendor does."""
    with ModelServer([{"error": error, "message": "no, said the server"}]) as server:
        answer = say(server, protocol, [("user", "go")], stream=True)
        assert server.tokens().input == 0
        assert server.requests[0].status == answer.status
    expected = {
        "credit": 400 if protocol == "anthropic" else 429,
        "quota": 429,
        529: 503 if protocol == "gemini" else 529,
    }
    assert answer.status == expected.get(error, error)
    assert found(answer.json(), "message") == ["no, said the server"]


def test_reset_times_are_told_where_each_protocol_tells_them() -> None:
    """G04: epoch in a header, seconds in a header, seconds and epoch in a body, a delay in details."""
    reset = 4_000_000_000
    with ModelServer([{"error": "quota", "reset_at": reset}]) as server:
        told = {protocol: say(server, protocol, [("user", "go")]) for protocol in PROTOCOLS}
    assert told["anthropic"].headers["anthropic-ratelimit-unified-reset"] == str(reset)
    assert found(told["responses"].json(), "resets_at") == [reset]
    assert told["chat"].headers["x-ratelimit-reset-requests"].removesuffix("s") == told["chat"].headers["retry-after"]
    assert str(found(told["gemini"].json(), "retryDelay")[0]).endswith("s")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_with_times_gives_way_to_the_next_step(protocol: str) -> None:
    """T24: two refusals with the wait that was asked for, then the answer, though the conversation is the same."""
    with ModelServer([{"error": 429, "retry_after": 3, "times": 2}, {"text": "at last"}]) as server:
        answers = [say(server, protocol, [("user", "go")]) for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["retry-after"] == "3"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_errors_can_come_in_the_middle_of_a_stream(protocol: str) -> None:
    """T24: status 200, half an answer, then the vendor's error event."""
    with ModelServer([{"error": "credit", "where": "stream"}]) as server:
        answer = say(server, protocol, [("user", "go")], stream=True)
    assert answer.status == 200
    assert found(answer.events()[-1], "error")


@pytest.mark.parametrize(
    ("step", "stream"), [({"drop": "before"}, True), ({"drop": "stream"}, True), ({"drop": "stream"}, False)]
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_dropped_connection_is_seen_as_one(protocol: str, step: dict[str, object], stream: bool) -> None:
    """T24: closed before the answer or in its middle; the next request is served."""
    with ModelServer([{**step, "times": 1}, {"text": "well"}]) as server:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            say(server, protocol, [("user", "go")], stream=stream)
        assert say(server, protocol, [("user", "go")], stream=stream).status == 200
        assert [seen.output_tokens > 0 for seen in server.requests] == [False, True]


@pytest.mark.parametrize("where", ["headers", "stream"])
def test_a_hanging_answer_is_noted_at_once_and_ends_with_the_server(where: str) -> None:
    """T24: whoever waits for the request to arrive need not wait for its end."""
    failed = threading.Event()

    def ask() -> None:
        try:
            say(server, "anthropic", [("user", "go")], stream=True)
        except (http.client.HTTPException, ConnectionError):
            failed.set()

    with ModelServer([{"hang": 60, "where": where}]) as server:
        asking = threading.Thread(target=ask)
        asking.start()
        assert server.wait_for(lambda seen: len(seen) == 1, timeout=20)
    asking.join(20)
    assert failed.is_set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_garbage_is_a_page_with_status_200(protocol: str) -> None:
    """T24: what a proxy says when it is broken."""
    with ModelServer([{"garbage": True}]) as server:
        answer = say(server, protocol, [("user", "go")], stream=True)
    assert answer.status == 200
    assert answer.body.startswith(b"<!doctype html>")


STOPS = {
    "anthropic": ("max_tokens", "refusal"),
    "responses": ("max_output_tokens", "content_filter"),
    "chat": ("length", "content_filter"),
    "gemini": ("MAX_TOKENS", "SAFETY"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cut_and_refused_answers_name_their_reason(protocol: str, stream: bool) -> None:
    """T24: each in the protocol's own word."""
    for step, reason in zip(({"length": True}, {"refuse": "no"}), STOPS[protocol], strict=True):
        with ModelServer([step]) as server:
            assert f'"{reason}"' in say(server, protocol, [("user", "go")], stream=stream).body.decode()


@pytest.mark.parametrize("coding", ["plain", "gzip", "chunked"])
def test_bodies_come_in_any_coding_and_tens_of_megabytes(coding: str) -> None:
    """T24: whatever the clients' HTTP libraries do."""
    path, body = request("chat", [("user", "x" * 20_000_000)])
    data = json.dumps(body).encode()
    headers = {"content-encoding": "gzip"} if coding == "gzip" else {}
    with ModelServer() as server:
        line = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
        sent = gzip.compress(data, 1) if coding == "gzip" else data
        parts = (sent[at : at + 100_000] for at in range(0, len(sent), 100_000))
        line.request("POST", path, parts if coding == "chunked" else sent, headers, encode_chunked=coding == "chunked")
        assert line.getresponse().status == 200
        line.close()
        assert server.requests[0].input_tokens == 5_001_000


def test_side_requests_get_something_fitting_and_move_nothing() -> None:
    """T24: a title, a choice by schema, a probe of one token; none is a step, none spends `times`."""
    schema = {"properties": {"why": {"type": "string"}, "model": {"enum": ["flash", "pro"]}}, "required": ["model"]}
    title = {"messages": [{"role": "system", "content": "You write a title."}, {"role": "user", "content": "go"}]}
    router = {"contents": [_gemini("user", "go")], "generationConfig": {"responseJsonSchema": schema}}
    with ModelServer([{"error": 500, "times": 1}, {"text": "well"}]) as server:
        assert post(server, "/v1/chat/completions", title).status == 200
        choice = post(server, PATHS["gemini"], router)
        post(server, "/v1/messages", {"messages": [_anthropic("user", "quota")], "max_tokens": 1})
        assert [seen.step for seen in server.requests] == [-1, -1, -1]
        assert server.tokens(beside=False).requests == 0
        assert say(server, "chat", [("user", "go")]).status == 500
    assert json.loads(str(found(choice.json(), "text")[0])) == {"model": "flash"}


def test_an_answer_by_schema_is_the_result_itself() -> None:
    """T24 T07: a client that was given a schema gets the object without a block around it."""
    fields = {name: {"type": "string"} for name in ("contract_version", "task_id", "status", "summary")}
    form = {"type": "json_schema", "schema": {"type": "object", "properties": fields, "required": list(fields)}}
    path, body = request("responses", [("user", "# Task api")])
    with ModelServer() as server:
        answer = post(server, path, {**body, "text": {"format": form}})
    assert json.loads(str(found(answer.json()["output"], "text")[0]))["task_id"] == "api"


def test_models_and_token_counts_can_be_asked_for() -> None:
    """T24: with and without the version in the path."""
    with ModelServer() as server:
        body = {"messages": [_anthropic("user", "x" * 400)]}
        assert post(server, "/v1/messages/count_tokens", body).json() == {"input_tokens": 1100}
        assert post(server, "/messages", {**body, "model": "m"}).status == 200
        assert post(server, "/v1beta/models/m:countTokens", {"contents": []}).json() == {"totalTokens": 1000}
        assert post(server, "/v1/unknown", {}).status == 404
        line = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)
        line.request("GET", "/v1/models")
        assert json.loads(line.getresponse().read())["data"]
        line.close()


def test_the_server_runs_as_a_process_and_its_journal_holds_no_key(tmp_path: Path) -> None:
    """T24 G05: one line says where it listens; the journal tells every request, never a header."""
    (tmp_path / "play.json").write_text(json.dumps({"steps": [{"text": "from the file"}]}))
    command = [sys.executable, "-m", "ganger.dev.model_server", "--scenario", "play.json", "--journal", "seen.jsonl"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        where = server.stdout.readline().removeprefix("listening on http://").strip()
        line = http.client.HTTPConnection(where, timeout=20)
        path, body = request("gemini", [("user", "go")])
        line.request("POST", f"{path}?key={KEY}", json.dumps(body), {"x-goog-api-key": KEY})
        assert b"from the file" in line.getresponse().read()
        line.close()
        server.terminate()
    seen = (tmp_path / "seen.jsonl").read_text()
    assert json.loads(seen)["conversation"][0]["text"] == "go"
    assert KEY not in seen


@pytest.mark.parametrize(
    "text",
    ["no json", "3", '{"steps": []}', '[{"say": "x"}]', '[{"text": "x", "run": "y"}]', '[{"text": "x", "tims": 2}]'],
)
def test_a_wrong_scenario_file_is_refused_with_a_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T24: before anything listens."""
    file = tmp_path / "play.json"
    file.write_text(text)
    assert run_command(["dev", "model-server", "--scenario", str(file)]) == 1
    assert "error: " in capsys.readouterr().err

"""MCP on both carriers: a client that is not ours finds and calls every tool, in every revision of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from ganger.contracts.worker import VERBS
from ganger.endpoint.mcp import HANDSHAKE, STATELESS, SUPPORTED
from ganger.ports.endpoint import Reply, WorkerCall
from tests.reports.endpoint import JOIN, OTHER, TOKEN, Ear, Endpoint, Said, play, request

NEWEST = STATELESS[-1]
META = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MODES = ["legacy", "auto", NEWEST]


@asynccontextmanager
async def client(endpoint: Endpoint, token: str, mode: str, carrier: str = "http") -> AsyncIterator[Client]:
    transport = httpx2.AsyncHTTPTransport(uds=str(endpoint.server.socket) if carrier == "socket" else None)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(transport=transport, headers=headers) as http:
        async with Client(streamable_http_client(f"{endpoint.server.url}/mcp", http_client=http), mode=mode) as made:
            yield made


@pytest.mark.parametrize("carrier", ["http", "socket"])
@pytest.mark.parametrize("mode", MODES)
def test_a_foreign_client_takes_a_task_and_reports_on_it(tmp_path: Path, mode: str, carrier: str) -> None:
    """G02: a session a person opened pulls work over MCP; the token it was given counts for all that follows."""

    async def scene(endpoint: Endpoint) -> list[WorkerCall]:
        async with client(endpoint, JOIN, mode, carrier) as session:
            assert session.protocol_version == (HANDSHAKE[-1] if mode == "legacy" else NEWEST)
            tools = await session.list_tools()
            assert [tool.name for tool in tools.tools] == list(VERBS)
            taken = await session.call_tool("next", {"worker": "me"})
            token = (taken.structured_content or {})["token"]
            for verb in ("heartbeat", "progress", "done"):
                said = await session.call_tool(verb, {"token": token})
                assert not said.is_error and (said.structured_content or {})["task"] == "one"
        return endpoint.ear.asked

    asked = play(scene, tmp_path)
    assert asked[0] == WorkerCall("next", JOIN, {"worker": "me"}, "mcp")
    assert asked[1:] == [WorkerCall(verb, TOKEN, {}, "mcp") for verb in ("heartbeat", "progress", "done")]


@pytest.mark.parametrize("mode", MODES)
def test_a_refusal_is_shown_to_the_agent(tmp_path: Path, mode: str) -> None:
    """G02: as an error of the tool, with code and message, so that it can mend what it said."""
    refusal = {"ok": False, "code": "ATTEMPT_OVER", "message": "this attempt is over", "hint": "end"}

    async def scene(endpoint: Endpoint) -> tuple[bool | None, Any, str]:
        async with client(endpoint, TOKEN, mode) as session:
            said = await session.call_tool("report", {"result": {"x": 1}})
            return said.is_error, said.structured_content, json.loads(said.model_dump_json())["content"][0]["text"]

    is_error, shown, text = play(scene, tmp_path, Ear(reply=Reply(409, refusal)))
    assert is_error and shown == refusal and "ATTEMPT_OVER" in text and "this attempt is over" in text


@pytest.mark.whole
@pytest.mark.parametrize(
    "mode", [pytest.param("legacy", marks=pytest.mark.slow), "auto", pytest.param(NEWEST, marks=pytest.mark.slow)]
)
def test_fifty_clients_at_once_are_all_served(tmp_path: Path, mode: str) -> None:
    """G02: no session is kept for any of them."""

    async def one(endpoint: Endpoint, number: int) -> bool:
        async with client(endpoint, JOIN, mode) as session:
            said = await session.call_tool("heartbeat", {"token": TOKEN, "step": str(number)})
            return not said.is_error

    async def scene(endpoint: Endpoint) -> list[bool]:
        endpoint.server._pace._burst = 10_000
        return await asyncio.gather(*(one(endpoint, number) for number in range(50)))

    assert play(scene, tmp_path) == [True] * 50


# --- by hand ----------------------------------------------------------------------------------------------------------


def post(
    endpoint: Endpoint, message: object, *, token: str = TOKEN, version: str = "", method: str = "POST", **more: str
) -> Any:
    headers = {**({"mcp_protocol_version": version} if version else {}), **more}
    return _post(endpoint, request(endpoint.host, "/mcp", message, token=token, method=method, more=headers))


async def _post(endpoint: Endpoint, data: bytes) -> Said | None:
    wire = await endpoint.wire("http")
    await wire.send(data)
    return await wire.answer()


def call(method: str, params: object = None, number: object = 1) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})}


def answered(tmp_path: Path, message: object, ear: Ear | None = None, **options: Any) -> tuple[int, Any]:
    said = play(lambda endpoint: post(endpoint, message, **options), tmp_path, ear)
    assert isinstance(said, Said)
    return said.status, said.json if said.body else None


@pytest.mark.parametrize(
    ("wanted", "given"), [*((one, one) for one in HANDSHAKE), ("1999-01-01", HANDSHAKE[-1]), (None, HANDSHAKE[-1])]
)
def test_a_handshake_settles_on_a_revision_both_speak(tmp_path: Path, wanted: str | None, given: str) -> None:
    """G02: the one the client names, or our newest with a handshake."""
    status, said = answered(tmp_path, call("initialize", {"protocolVersion": wanted}))
    assert status == 200 and said["result"]["protocolVersion"] == given
    assert said["result"]["serverInfo"]["name"] == "ganger" and said["result"]["capabilities"] == {"tools": {}}


def test_a_revision_nobody_speaks_is_refused_with_those_we_do(tmp_path: Path) -> None:
    """G02: so that a client can choose another."""
    status, said = answered(tmp_path, call("tools/list"), version="1900-01-01")
    assert status == 400 and said["error"]["code"] == -32022 and said["error"]["data"]["supported"] == list(SUPPORTED)


@pytest.mark.parametrize("version", ["", *HANDSHAKE])
@pytest.mark.parametrize(
    "message", [{"method": "notifications/initialized"}, {"method": "notifications/x"}, {"id": 3, "result": {}}]
)
def test_notifications_are_taken_and_not_answered(tmp_path: Path, version: str, message: dict[str, object]) -> None:
    """G02: 202 and nothing more."""
    ear = Ear()
    assert answered(tmp_path, {"jsonrpc": "2.0", **message}, ear, version=version) == (202, None)
    assert ear.all_asked == []


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (call("resources/list"), -32601),
        (call("tools/call", {"name": "config"}), -32602),
        (call("tools/call", {"name": ["next"]}), -32602),
        (call("tools/call", {"name": "report", "arguments": []}), -32602),
        (call("tools/list", []), -32600),
        (call("tools/list", None, None), -32600),
        (call("tools/list", None, True), -32600),
        (call("tools/list", None, 1.5), -32600),
        ({"id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, -32600),
        ("ping", -32600),
        ([], -32600),
        ([call("ping")] * 21, -32600),
    ],
)
def test_what_makes_no_sense_is_an_error_of_json_rpc(tmp_path: Path, message: object, code: int) -> None:
    """G02: and nobody hears of it."""
    ear = Ear()
    status, said = answered(tmp_path, message, ear)
    assert said["error"]["code"] == code and status == (400 if code == -32600 else 200)
    assert ear.asked == []


def test_batches_are_answered_where_the_revision_has_them(tmp_path: Path) -> None:
    """G02: each by itself; later revisions have none."""
    batch = [call("ping", None, "a"), {"jsonrpc": "2.0", "method": "notifications/x"}, call("nope", None, "b")]
    status, said = answered(tmp_path, batch, version="2025-03-26")
    assert status == 200 and [one["id"] for one in said] == ["a", "b"] and "error" in said[1]
    assert answered(tmp_path, batch, version="2025-11-25")[0] == 400


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"params": {}}, -32602),
        ({"params": {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}}}, -32020),
        ({"mcp_method": "tools/call"}, -32020),
        ({"mcp_method": ""}, -32020),
        ({"method": "initialize", "mcp_method": "initialize"}, -32601),
    ],
)
def test_without_a_handshake_headers_and_body_must_agree(tmp_path: Path, change: dict[str, Any], code: int) -> None:
    """G02: whoever only reads the headers must not be deceived."""
    message = call(change.get("method", "tools/list"), change.get("params", {"_meta": META}))
    headers = {"mcp_method": change.get("mcp_method", "tools/list")}
    status, said = answered(tmp_path, message, version=NEWEST, **headers)
    assert said["error"]["code"] == code and status == (404 if code == -32601 else 400)


@pytest.mark.parametrize("method", ["initialize", "tools/list", "ping"])
@pytest.mark.parametrize(("token", "status"), [(TOKEN, 200), (JOIN, 200), ("w1.no.nobody", 401)])
def test_who_has_no_token_of_the_run_is_told_nothing(tmp_path: Path, method: str, token: str, status: int) -> None:
    """H07 G02: not even which tools there are."""
    found, said = answered(tmp_path, call(method), token=token)
    assert found == status and ("result" in said) == (status == 200)


@pytest.mark.parametrize("name", VERBS)
def test_a_join_token_only_asks_for_tasks(tmp_path: Path, name: str) -> None:
    """H07: every other tool needs the token of an attempt."""
    ear = Ear()
    _, said = answered(tmp_path, call("tools/call", {"name": name, "arguments": {}}), ear, token=JOIN)
    assert said["result"]["isError"] is (name != "next") and len(ear.asked) == (name == "next")


@pytest.mark.parametrize("token", ["", "x", 7, None, "w1.no.nobody", "a b", ["t"]])
def test_a_made_up_token_argument_is_refused(tmp_path: Path, token: object) -> None:
    """H07: it never falls back to the token of the header."""
    ear = Ear()
    _, said = answered(tmp_path, call("tools/call", {"name": "done", "arguments": {"token": token}}), ear)
    assert said["result"]["isError"] is True and ear.asked == []
    assert said["result"]["structuredContent"]["code"] == "WORKER_UNKNOWN"


def test_a_token_argument_counts_instead_of_the_headers(tmp_path: Path) -> None:
    """G02: and is no part of what is said."""
    ear = Ear()
    answered(tmp_path, call("tools/call", {"name": "done", "arguments": {"token": OTHER, "id": "d-1"}}), ear)
    assert ear.asked == [WorkerCall("done", OTHER, {"id": "d-1"}, "mcp")]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_stream_and_no_session_to_end(tmp_path: Path, method: str) -> None:
    """G02: 405, as the protocol has it for servers without."""
    status, said = answered(tmp_path, {}, method=method)
    assert status == 405 and said["code"] == "WRONG_METHOD"


SAMPLES: dict[str, dict[str, Any]] = {
    "next": {"worker": "me", "wait_sec": 5, "roles": ["worker"]},
    "heartbeat": {"step": "x", "percent": 40, "token": TOKEN},
    "progress": {"tiers": [{"tier": 1, "name": "syntax", "success": True}]},
    "milestone": {"name": "half"},
    "escalate": {"category": "design", "message": "which?", "options": ["a"], "default": "a", "deadline_sec": 60},
    "checkpoint": {"summary": "s", "done": ["a"], "leave": True},
    "report": {"result": {"status": "DONE"}},
    "done": {},
    "brief": {"section": "goal"},
    "messages": {"since": 3, "wait_sec": 1.5},
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_tools_schema_says_what_its_verb_takes(tmp_path: Path, verb: str) -> None:
    """G02: without the id, which is not the agent's business, and with the token."""
    _, said = answered(tmp_path, call("tools/list"))
    tool = next(one for one in said["result"]["tools"] if one["name"] == verb)
    check = jsonschema_rs.validator_for(tool["inputSchema"])
    assert check.is_valid(SAMPLES[verb]) and not check.is_valid({**SAMPLES[verb], "unknown": 1})
    assert ("token" in tool["inputSchema"]["properties"]) == (verb != "next")
    assert "id" not in tool["inputSchema"]["properties"] and len(tool["description"]) > 40
    VERBS[verb].model_validate_json(json.dumps({k: v for k, v in SAMPLES[verb].items() if k != "token"}))

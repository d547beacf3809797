"""MCP over streamable HTTP, without sessions: JSON-RPC 2.0 in, requests of the worker protocol out.

Supports the revisions with a handshake (`initialize`) and those in which every request states its version.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Any

import ganger
from ganger.contracts.worker import VERBS
from ganger.endpoint.admission import looks_like_token
from ganger.endpoint.http1 import HttpAnswer, RequestHead
from ganger.endpoint.mcp_tools import INSTRUCTIONS, tools
from ganger.endpoint.refusals import RequestRefused
from ganger.ports.endpoint import Reply, WorkerCall

HANDSHAKE = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)
SUPPORTED = (*reversed(STATELESS), *reversed(HANDSHAKE))
_BATCHES = "2025-03-26"
_MOST_IN_BATCH = 20
_CARRIER = "mcp"
_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_META_CLIENT = "io.modelcontextprotocol/clientCapabilities"
_META_SERVER = "io.modelcontextprotocol/serverInfo"
_CACHED = {"ttlMs": 3_600_000, "cacheScope": "public"}

_INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS = -32600, -32601, -32602
_HEADER_MISMATCH, _UNSUPPORTED_VERSION = -32020, -32022
_STATUS = {_NO_METHOD: 404}
_ALWAYS_BAD = (_INVALID_REQUEST, _HEADER_MISMATCH)

Ask = Callable[[WorkerCall, asyncio.Future[None]], Awaitable[Reply]]
Json = Mapping[str, Any]


class RpcFault(Exception):
    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.error = {"code": code, "message": message} | ({"data": data} if data is not None else {})


class Mcp:
    """`ask` passes a request on and raises Refused; `slow_down` raises it for a token that asks too often."""

    def __init__(self, ask: Ask, slow_down: Callable[[str], None]) -> None:
        self.ask, self.slow_down = ask, slow_down

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        return tools()

    async def answer(self, head: RequestHead, token: str, value: object, gone: asyncio.Future[None]) -> HttpAnswer:
        """Raises Refused for an unknown token; every other fault is a JSON-RPC answer."""
        version = head.headers.get("mcp-protocol-version", _BATCHES)
        if version not in SUPPORTED:
            data = {"supported": list(SUPPORTED), "requested": version}
            return _fault(_id_of(value), RpcFault(_UNSUPPORTED_VERSION, "Unsupported protocol version", data), 400)
        call = _Call(self, head, token, version, gone)
        if not isinstance(value, list):
            return await call.alone(value)
        if version != _BATCHES or not 0 < len(value) <= _MOST_IN_BATCH:
            return _fault(None, RpcFault(_INVALID_REQUEST, f"one to {_MOST_IN_BATCH} requests in a batch"), 400)
        answers = [said for message in value if (said := await call.one_of_many(message)) is not None]
        return HttpAnswer.of(200, answers) if answers else HttpAnswer(202)


class _Call:
    """The content of one POST."""

    def __init__(self, mcp: Mcp, head: RequestHead, token: str, version: str, gone: asyncio.Future[None]) -> None:
        self._mcp, self._head, self._token, self._version, self._gone = mcp, head, token, version, gone
        self._stateless = version in STATELESS

    async def alone(self, message: object) -> HttpAnswer:
        """In handshake revisions errors are sent with status 200: only JSON-RPC says what is wrong."""
        try:
            said = await self._answered(message)
        except RpcFault as fault:
            status = _STATUS.get(fault.code, 400) if self._stateless or fault.code in _ALWAYS_BAD else 200
            return _fault(_id_of(message), fault, status)
        return HttpAnswer(202) if said is None else HttpAnswer.of(200, said)

    async def one_of_many(self, message: object) -> Json | None:
        try:
            return await self._answered(message)
        except RpcFault as fault:
            return {"jsonrpc": "2.0", "id": _id_of(message), "error": fault.error}

    async def _answered(self, message: object) -> Json | None:
        """None for a notification, or an answer to no request of ours."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise RpcFault(_INVALID_REQUEST, "this is not a JSON-RPC 2.0 message")
        method, params = message.get("method"), message.get("params", {})
        if method is None and ("result" in message or "error" in message):
            return None
        if not isinstance(method, str) or not isinstance(params, dict):
            raise RpcFault(_INVALID_REQUEST, "method or params are malformed")
        if "id" not in message:
            return None
        if _id_of(message) is None:
            raise RpcFault(_INVALID_REQUEST, "an id is a string or an integer")
        self._check_meta(method, params)
        result = await self._result(method, params)
        if self._stateless:
            result = {"resultType": "complete", **result}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _check_meta(self, method: str, params: Json) -> None:
        """Without a handshake every request states its version, and its headers must match the body."""
        meta = params.get("_meta")
        told = meta.get(_META_VERSION) if isinstance(meta, dict) else None
        if not self._stateless:
            if told is not None and told != self._version:
                raise RpcFault(_HEADER_MISMATCH, "MCP-Protocol-Version is not the version in _meta")
            return
        if told is None or not isinstance(meta, dict) or _META_CLIENT not in meta:
            raise RpcFault(_INVALID_PARAMS, f"_meta lacks {_META_VERSION} or {_META_CLIENT}")
        headers = self._head.headers
        same_name = method != "tools/call" or headers.get("mcp-name") == params.get("name")
        if told != self._version or headers.get("mcp-method") != method or not same_name:
            raise RpcFault(_HEADER_MISMATCH, "the headers do not match the body")

    async def _result(self, method: str, params: Json) -> Json:
        if method == "tools/call":
            return await self._call_tool(params)
        shown = self._shown(method, params)
        if shown is None:
            raise RpcFault(_NO_METHOD, f"there is no method {method[:60]!r}")
        await self._require_known()
        return shown

    def _shown(self, method: str, params: Json) -> Json | None:
        """Answers that are the same for every worker; None for other methods."""
        about = {"name": "ganger", "version": ganger.__version__}
        can = {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
        if method == "tools/list":
            return {"tools": self._mcp.tools, **(_CACHED if self._stateless else {})}
        if method == "ping" and not self._stateless:
            return {}
        if method == "initialize" and not self._stateless:
            wanted = params.get("protocolVersion")
            return {"protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[-1], "serverInfo": about, **can}
        if method == "server/discover" and self._stateless:
            return {"supportedVersions": list(SUPPORTED), "_meta": {_META_SERVER: about}, **can, **_CACHED}
        return None

    async def _require_known(self) -> None:
        """Raises for a token that is not of this run: it learns nothing, not even the list of tools."""
        reply = await self._mcp.ask(WorkerCall("messages", self._token, {}, _CARRIER), self._gone)
        if reply.status in (401, 503):
            raise RequestRefused(
                reply.status, str(reply.body.get("code", "WORKER_UNKNOWN")), str(reply.body.get("message", ""))
            )

    async def _call_tool(self, params: Json) -> Json:
        name, given = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or name not in VERBS:
            raise RpcFault(_INVALID_PARAMS, f"there is no tool {str(name)[:60]!r}")
        if not isinstance(given, dict):
            raise RpcFault(_INVALID_PARAMS, "arguments are not an object")
        body = dict(given)
        token = body.pop("token", self._token) if name != "next" else self._token
        try:
            if not isinstance(token, str) or not looks_like_token(token):
                raise RequestRefused(401, "WORKER_UNKNOWN", "unknown token", "use the token that next gave you")
            if token != self._token:
                self._mcp.slow_down(token)
            reply = await self._mcp.ask(WorkerCall(name, token, body, _CARRIER), self._gone)
        except RequestRefused as refused:
            reply = refused.reply
        return _tool_result(reply)


def _tool_result(reply: Reply) -> Json:
    refused = reply.status >= 400
    body = {"ok": not refused, **reply.body}
    text = json.dumps(body, ensure_ascii=False)
    if refused:
        text = " ".join(filter(None, [f"{body.get('code')}: {body.get('message')}.", str(body.get("hint") or "")]))
    return {"content": [{"type": "text", "text": text}], "structuredContent": body, "isError": refused}


def _id_of(message: object) -> str | int | None:
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _fault(name: str | int | None, fault: RpcFault, status: int) -> HttpAnswer:
    return HttpAnswer.of(status, {"jsonrpc": "2.0", "id": name, "error": fault.error})

"""Anthropic's messages: /v1/messages, streamed and plain, and count_tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ganger.dev.conversation import ModelAsk, ModelCall, Tool, Turn, joined, mapping, rows, words
from ganger.dev.reply import ModelFault, ModelRefusal, ModelReply, Stop, Usage, pieces

_STOPS = {Stop.END: "end_turn", Stop.CALLS: "tool_use", Stop.LENGTH: "max_tokens", Stop.REFUSAL: "refusal"}
_TYPES = {
    "auth": "authentication_error",
    "forbidden": "permission_error",
    "billing": "billing_error",
    "rate": "rate_limit_error",
    "quota": "rate_limit_error",
    "overloaded": "overloaded_error",
    "server": "api_error",
}
_SAYS = {
    "auth": "invalid x-api-key",
    "forbidden": "Your API key does not have permission to use the specified resource.",
    "billing": "Your payment method was declined.",
    "credit": "Your credit balance is too low to access the Anthropic API. "
    "Please go to Plans & Billing to upgrade or purchase credits.",
    "rate": "This request would exceed your account's rate limit. Please try again later.",
    "quota": "This request would exceed your account's rate limit. Please try again later.",
    "overloaded": "Overloaded",
    "server": "Internal server error",
    "context": "prompt is too long: 1048577 tokens > 1000000 maximum",
    "pairing": "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    "signature": "messages.1.content.0: Invalid `signature` in `thinking` block",
}


class Anthropic:
    name = "anthropic"

    def owns(self, path: str) -> bool:
        return path.endswith(("/messages", "/messages/count_tokens"))

    def read(self, path: str, body: Mapping[str, object]) -> ModelAsk:
        turns = [Turn("system", words(body.get("system")))] if body.get("system") else []
        for message in rows(body.get("messages")):
            turns += _turns(message)
        most = body.get("max_tokens")
        form = mapping(body.get("output_format") or mapping(body.get("output_config")).get("format"))
        return ModelAsk(
            protocol=self.name,
            model=str(body.get("model", "")),
            turns=joined(turns),
            tools=tuple(
                Tool(str(tool.get("name", "")), mapping(tool.get("input_schema"))) for tool in rows(body.get("tools"))
            ),
            streamed=body.get("stream") is True,
            schema=mapping(form.get("schema")) or None,
            most_tokens=most if isinstance(most, int) else 0,
            counting=path.endswith("count_tokens"),
        )

    def count(self, tokens: int) -> Mapping[str, object]:
        return {"input_tokens": tokens}

    def whole(self, ask: ModelAsk, reply: ModelReply) -> Mapping[str, object]:
        return {**_head(ask, reply), "content": _blocks(reply), "stop_reason": _STOPS[reply.stop]}

    def stream(self, ask: ModelAsk, reply: ModelReply) -> Iterator[bytes]:
        head = _head(ask, reply)
        start = {**head, "usage": {**mapping(head["usage"]), "output_tokens": 1}}
        yield _event("message_start", message=start)
        yield _event("ping")
        for index, block in enumerate(_blocks(reply)):
            yield from _block(index, block)
        delta = {"stop_reason": _STOPS[reply.stop], "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage=_usage(reply.usage))
        yield _event("message_stop")

    def refusal(self, fault: ModelFault) -> ModelRefusal:
        return ModelRefusal(400 if fault.kind == "credit" else fault.status, _headers(fault), _error(fault))

    def broken(self, fault: ModelFault) -> bytes:
        body = _error(fault)
        return _event("error", error=body["error"])


def _turns(message: Mapping[str, object]) -> Iterator[Turn]:
    role, content = str(message.get("role", "")), message.get("content")
    parts = rows(content)
    results = tuple(words(p.get("content")) for p in parts if p.get("type") == "tool_result")
    calls = tuple(
        ModelCall(str(p.get("name", "")), mapping(p.get("input")), str(p.get("id", "")))
        for p in parts
        if p.get("type") == "tool_use"
    )
    if results:
        yield Turn("tool", results=results)
    text = words(content) if not parts else words([p for p in parts if p.get("type") == "text"])
    if text or calls or not results:
        yield Turn(role, text, calls)


def _head(ask: ModelAsk, reply: ModelReply) -> dict[str, object]:
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(reply.usage),
    }


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input - usage.cache_read - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _blocks(reply: ModelReply) -> list[dict[str, object]]:
    blocks: list[dict[str, object]] = []
    if reply.think:
        blocks.append({"type": "thinking", "thinking": reply.think, "signature": "c2lnbmF0dXJl"})
    if reply.text or not reply.calls:
        blocks.append({"type": "text", "text": reply.text})
    return blocks + [
        {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": dict(call.input)}
        for call in reply.calls
    ]


def _block(index: int, block: Mapping[str, object]) -> Iterator[bytes]:
    kind = block["type"]
    if kind == "tool_use":
        empty: dict[str, object] = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": p} for p in pieces(json.dumps(block["input"]))]
    elif kind == "thinking":
        empty = {"type": kind, "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(str(block["thinking"]))]
        deltas.append({"type": "signature_delta", "signature": str(block["signature"])})
    else:
        empty = {"type": kind, "text": ""}
        deltas = [{"type": "text_delta", "text": p} for p in pieces(str(block["text"]))]
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(name: str, **body: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **body})}\n\n".encode()


def _error(fault: ModelFault) -> dict[str, object]:
    said = fault.message or _SAYS.get(fault.kind, "The request was not accepted.")
    return {"type": "error", "error": {"type": _TYPES.get(fault.kind, "invalid_request_error"), "message": said}}


def _headers(fault: ModelFault) -> dict[str, str]:
    headers: dict[str, str] = {}
    wait = fault.wait()
    if wait is not None:
        headers["retry-after"] = str(wait)
    if fault.kind in ("rate", "quota") and fault.reset_at is not None:
        headers["anthropic-ratelimit-unified-status"] = "rejected"
        headers["anthropic-ratelimit-unified-reset"] = str(int(fault.reset_at))
        headers["anthropic-ratelimit-unified-representative-claim"] = "five_hour"
    return headers

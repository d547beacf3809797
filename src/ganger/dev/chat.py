"""OpenAI's chat completions: /v1/chat/completions, streamed and plain; spoken by most clients."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ganger.dev import openai
from ganger.dev.conversation import ModelAsk, ModelCall, Tool, Turn, joined, mapping, rows, words
from ganger.dev.reply import ModelFault, ModelRefusal, ModelReply, Stop, Usage, pieces

_STOPS = {Stop.END: "stop", Stop.CALLS: "tool_calls", Stop.LENGTH: "length", Stop.REFUSAL: "content_filter"}


class Chat:
    name = "chat"

    def owns(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def read(self, path: str, body: Mapping[str, object]) -> ModelAsk:
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        form = mapping(body.get("response_format"))
        schema = mapping(mapping(form.get("json_schema")).get("schema"))
        tools = [mapping(row.get("function")) for row in rows(body.get("tools"))]
        return ModelAsk(
            protocol=self.name,
            model=str(body.get("model", "")),
            turns=joined(map(_turn, rows(body.get("messages")))),
            tools=tuple(Tool(str(tool.get("name", "")), mapping(tool.get("parameters"))) for tool in tools),
            streamed=body.get("stream") is True,
            schema=schema or ({"type": "object"} if form.get("type") == "json_object" else None),
            most_tokens=most if isinstance(most, int) else 0,
            usage_wanted=mapping(body.get("stream_options")).get("include_usage") is True,
        )

    def count(self, tokens: int) -> Mapping[str, object]:
        return {"input_tokens": tokens}

    def whole(self, ask: ModelAsk, reply: ModelReply) -> Mapping[str, object]:
        message: dict[str, object] = {"role": "assistant", "content": reply.text or None}
        if reply.think:
            message["reasoning_content"] = reply.think
        if reply.calls:
            message["tool_calls"] = [_call(number, call) for number, call in enumerate(reply.calls)]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _STOPS[reply.stop]}
        head = _head(ask, reply, "chat.completion")
        return {**head, "choices": [choice], "usage": _usage(reply.usage)}

    def stream(self, ask: ModelAsk, reply: ModelReply) -> Iterator[bytes]:
        head = _head(ask, reply, "chat.completion.chunk")

        def chunk(delta: Mapping[str, object], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return openai.data({**head, "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in pieces(reply.think):
            yield chunk({"reasoning_content": piece})
        for piece in pieces(reply.text):
            yield chunk({"content": piece})
        for number, call in enumerate(reply.calls):
            for part in _parts(number, call):
                yield chunk({"tool_calls": [part]})
        yield chunk({}, _STOPS[reply.stop])
        if ask.usage_wanted:
            yield openai.data({**head, "choices": [], "usage": _usage(reply.usage)})
        yield b"data: [DONE]\n\n"

    def refusal(self, fault: ModelFault) -> ModelRefusal:
        return openai.refusal(fault)

    def broken(self, fault: ModelFault) -> bytes:
        return openai.data({"error": openai.error(fault)})


def _turn(message: Mapping[str, object]) -> Turn:
    role, text = str(message.get("role", "")), words(message.get("content"))
    if role == "tool":
        return Turn("tool", results=(text,))
    return Turn("system" if role == "developer" else role, text, tuple(map(_made, rows(message.get("tool_calls")))))


def _made(row: Mapping[str, object]) -> ModelCall:
    function = mapping(row.get("function"))
    try:
        arguments = json.loads(str(function.get("arguments") or "{}"))
    except ValueError:
        arguments = {}
    return ModelCall(str(function.get("name", "")), mapping(arguments), str(row.get("id", "")))


def _head(ask: ModelAsk, reply: ModelReply, kind: str) -> dict[str, object]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 1_700_000_000, "model": ask.model}


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.thinking},
    }


def _call(number: int, call: ModelCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": json.dumps(dict(call.input))}
    return {"index": number, "id": f"call_{call.id}", "type": "function", "function": function}


def _parts(number: int, call: ModelCall) -> Iterator[dict[str, object]]:
    whole = _call(number, call)
    yield {**whole, "function": {"name": call.name, "arguments": ""}}
    for piece in pieces(json.dumps(dict(call.input))):
        yield {"index": number, "function": {"arguments": piece}}

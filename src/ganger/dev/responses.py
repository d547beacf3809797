"""OpenAI's responses: /v1/responses, streamed and plain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from ganger.dev import openai
from ganger.dev.conversation import ModelAsk, ModelCall, Tool, Turn, joined, mapping, rows, words
from ganger.dev.reply import ModelFault, ModelRefusal, ModelReply, Stop, Usage, pieces

Item = dict[str, object]

_REASONS = {Stop.LENGTH: "max_output_tokens", Stop.REFUSAL: "content_filter"}


class Responses:
    name = "responses"

    def owns(self, path: str) -> bool:
        return path.endswith(("/responses", "/responses/input_tokens"))

    def read(self, path: str, body: Mapping[str, object]) -> ModelAsk:
        turns = [Turn("system", words(body.get("instructions")))] if body.get("instructions") else []
        given = body.get("input")
        turns += [Turn("user", given)] if isinstance(given, str) else [t for i in rows(given) for t in _turns(i)]
        form = mapping(mapping(body.get("text")).get("format"))
        most = body.get("max_output_tokens")
        return ModelAsk(
            protocol=self.name,
            model=str(body.get("model", "")),
            turns=joined(turns),
            tools=tuple(tool for row in rows(body.get("tools")) for tool in _tools(row)),
            streamed=body.get("stream") is True,
            schema=mapping(form.get("schema")) or None,
            most_tokens=most if isinstance(most, int) else 0,
            counting=path.endswith("input_tokens"),
        )

    def count(self, tokens: int) -> Mapping[str, object]:
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def whole(self, ask: ModelAsk, reply: ModelReply) -> Mapping[str, object]:
        reason = _REASONS.get(reply.stop)
        return {
            **_head(ask, reply),
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": _items(reply),
            "usage": _usage(reply.usage),
        }

    def stream(self, ask: ModelAsk, reply: ModelReply) -> Iterator[bytes]:
        for number, (kind, body) in enumerate(self._events(ask, reply)):
            yield _event(kind, body, number)

    def _events(self, ask: ModelAsk, reply: ModelReply) -> Iterator[tuple[str, Item]]:
        yield "response.created", {"response": _head(ask, reply)}
        yield "response.in_progress", {"response": _head(ask, reply)}
        for index, item in enumerate(_items(reply)):
            yield "response.output_item.added", {"output_index": index, "item": _begun(item)}
            for kind, body in _deltas(item):
                yield kind, {"item_id": item["id"], "output_index": index, **body}
            yield "response.output_item.done", {"output_index": index, "item": item}
        end = "response.incomplete" if reply.stop in _REASONS else "response.completed"
        yield end, {"response": self.whole(ask, reply)}

    def refusal(self, fault: ModelFault) -> ModelRefusal:
        return openai.refusal(fault)

    def broken(self, fault: ModelFault) -> bytes:
        error = openai.error(fault)
        response = {"id": "resp_broken", "object": "response", "status": "failed", "error": error, "output": []}
        return _event("response.failed", {"response": response}, 1)


def _turns(item: Mapping[str, object]) -> Iterator[Turn]:
    kind = str(item.get("type", "message"))
    if kind == "message":
        role = str(item.get("role", "user"))
        yield Turn("system" if role == "developer" else role, words(item.get("content")))
    elif kind == "function_call":
        yield Turn("assistant", calls=(_call(item),))
    elif kind == "custom_tool_call":
        call = ModelCall(str(item.get("name", "")), {}, str(item.get("call_id", "")), str(item.get("input", "")))
        yield Turn("assistant", calls=(call,))
    elif kind.endswith("_output"):
        yield Turn("tool", results=(words(item.get("output")) or json.dumps(item.get("output")),))


def _call(item: Mapping[str, object]) -> ModelCall:
    try:
        arguments = json.loads(str(item.get("arguments", "{}")))
    except ValueError:
        arguments = {}
    return ModelCall(str(item.get("name", "")), mapping(arguments), str(item.get("call_id", "")))


def _tools(row: Mapping[str, object]) -> Iterator[Tool]:
    if row.get("type") in ("function", "custom"):
        yield Tool(str(row.get("name", "")), mapping(row.get("parameters")), free=row.get("type") == "custom")


def _head(ask: ModelAsk, reply: ModelReply) -> Item:
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": ask.model,
        "status": "in_progress",
        "error": None,
        "output": [],
        "usage": None,
    }


def _usage(usage: Usage) -> Item:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thinking},
        "total_tokens": usage.input + usage.output,
    }


def _items(reply: ModelReply) -> list[Item]:
    items: list[Item] = []
    if reply.think:
        summary = [{"type": "summary_text", "text": reply.think}]
        items.append({"id": f"rs_{reply.id}", "type": "reasoning", "summary": summary})
    if reply.text or not reply.calls:
        part: Item = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message: Item = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**message, "content": [part]})
    for call in reply.calls:
        head: Item = {"id": f"fc_{call.id}", "call_id": f"call_{call.id}", "name": call.name, "status": "completed"}
        if call.text is not None:
            items.append({**head, "type": "custom_tool_call", "input": call.text})
        else:
            items.append({**head, "type": "function_call", "arguments": json.dumps(dict(call.input))})
    return items


def _begun(item: Item) -> Item:
    empty: Item = {"content": [], "arguments": "", "input": "", "summary": [], "status": "in_progress"}
    return {**item, **{name: value for name, value in empty.items() if name in item}}


def _deltas(item: Item) -> Iterator[tuple[str, Item]]:
    kind = item["type"]
    if kind == "message":
        part = rows(item["content"])[0]
        yield "response.content_part.added", {"content_index": 0, "part": {**part, "text": ""}}
        for piece in pieces(str(part["text"])):
            yield "response.output_text.delta", {"content_index": 0, "delta": piece, "logprobs": []}
        yield "response.output_text.done", {"content_index": 0, "text": part["text"], "logprobs": []}
        yield "response.content_part.done", {"content_index": 0, "part": part}
    elif kind == "reasoning":
        part = rows(item["summary"])[0]
        yield "response.reasoning_summary_part.added", {"summary_index": 0, "part": {**part, "text": ""}}
        for piece in pieces(str(part["text"])):
            yield "response.reasoning_summary_text.delta", {"summary_index": 0, "delta": piece}
        yield "response.reasoning_summary_text.done", {"summary_index": 0, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {"summary_index": 0, "part": part}
    else:
        name, field = (
            ("custom_tool_call_input", "input") if "input" in item else ("function_call_arguments", "arguments")
        )
        for piece in pieces(str(item[field])):
            yield f"response.{name}.delta", {"delta": piece}
        yield f"response.{name}.done", {field: item[field]}


def _event(kind: str, body: Mapping[str, object], number: int) -> bytes:
    line = json.dumps({"type": kind, "sequence_number": number, **body})
    return f"event: {kind}\ndata: {line}\n\n".encode()

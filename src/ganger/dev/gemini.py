"""Gemini's models: :generateContent, :streamGenerateContent and :countTokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from ganger.dev.conversation import ModelAsk, ModelCall, Tool, Turn, joined, mapping, rows, words
from ganger.dev.reply import ModelFault, ModelRefusal, ModelReply, Stop, Usage, pieces

_PATH = re.compile(r"/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)$")
_STOPS = {Stop.END: "STOP", Stop.CALLS: "STOP", Stop.LENGTH: "MAX_TOKENS", Stop.REFUSAL: "SAFETY"}
_PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel"
_PER_DAY = "GenerateRequestsPerDayPerProjectPerModel"
_GOOGLE = "type.googleapis.com/google.rpc."

# kind: (status word, message)
_ERRORS: Mapping[str, tuple[str, str]] = {
    "auth": ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    "forbidden": ("PERMISSION_DENIED", "The caller does not have permission."),
    "billing": ("FAILED_PRECONDITION", "Billing is not enabled for this project."),
    "credit": ("RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please manage your project and billing."),
    "rate": ("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
    "quota": ("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
    "overloaded": ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    "server": ("INTERNAL", "An internal error has occurred."),
    "context": (
        "INVALID_ARGUMENT",
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "pairing": (
        "INVALID_ARGUMENT",
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn.",
    ),
    "signature": ("INVALID_ARGUMENT", "Function call is missing a thought_signature in functionCall parts."),
}


class Gemini:
    name = "gemini"

    def owns(self, path: str) -> bool:
        return _PATH.search(path) is not None

    def read(self, path: str, body: Mapping[str, object]) -> ModelAsk:
        found = _PATH.search(path)
        model, act = found.groups() if found else ("", "")
        given = mapping(body.get("generateContentRequest")) or body
        settings = mapping(given.get("generationConfig"))
        system = words(mapping(given.get("systemInstruction")).get("parts"))
        turns = [Turn("system", system)] if system else []
        for content in rows(given.get("contents")):
            turns += _turns(content)
        most = settings.get("maxOutputTokens")
        wanted = settings.get("responseJsonSchema") or settings.get("responseSchema")
        declared = [tool for row in rows(given.get("tools")) for tool in rows(row.get("functionDeclarations"))]
        return ModelAsk(
            protocol=self.name,
            model=model,
            turns=joined(turns),
            tools=tuple(
                Tool(str(tool.get("name", "")), mapping(tool.get("parametersJsonSchema") or tool.get("parameters")))
                for tool in declared
            ),
            streamed=act == "streamGenerateContent",
            schema=mapping(wanted) or None,
            most_tokens=most if isinstance(most, int) else 0,
            counting=act == "countTokens",
        )

    def count(self, tokens: int) -> Mapping[str, object]:
        return {"totalTokens": tokens}

    def whole(self, ask: ModelAsk, reply: ModelReply) -> Mapping[str, object]:
        return _chunk(ask, reply, _parts(reply, whole=True), last=True)

    def stream(self, ask: ModelAsk, reply: ModelReply) -> Iterator[bytes]:
        parts = _parts(reply, whole=False)
        for part in parts[:-1]:
            yield _data(_chunk(ask, reply, [part], last=False))
        yield _data(_chunk(ask, reply, parts[-1:], last=True))

    def refusal(self, fault: ModelFault) -> ModelRefusal:
        status = {"credit": 429, "overloaded": 503}.get(fault.kind, fault.status)
        wait = fault.wait()
        return ModelRefusal(status, {} if wait is None else {"retry-after": str(wait)}, _error(fault, status))

    def broken(self, fault: ModelFault) -> bytes:
        return _data(_error(fault, self.refusal(fault).status))


def _turns(content: Mapping[str, object]) -> Iterator[Turn]:
    role = "assistant" if content.get("role") == "model" else "user"
    parts = rows(content.get("parts"))
    answers = [mapping(part["functionResponse"]) for part in parts if "functionResponse" in part]
    results = tuple(json.dumps(answer.get("response")) for answer in answers)
    made = [mapping(part["functionCall"]) for part in parts if "functionCall" in part]
    calls = tuple(ModelCall(str(c.get("name", "")), mapping(c.get("args")), str(c.get("id", ""))) for c in made)
    if results:
        yield Turn("tool", results=results)
    texts = [str(part["text"]) for part in parts if part.get("text")]
    if role == "assistant":
        yield Turn(role, "".join(texts), calls)
    else:
        # A prompt after a lost call is a further part of the message before it.
        yield from (Turn(role, text) for text in texts)


def _parts(reply: ModelReply, *, whole: bool) -> list[dict[str, object]]:
    def cut(text: str) -> list[str]:
        return ([text] if text else []) if whole else list(pieces(text, 24))

    parts: list[dict[str, object]] = [{"text": piece, "thought": True} for piece in cut(reply.think)]
    parts += [{"text": piece} for piece in cut(reply.text)]
    for call in reply.calls:
        parts.append({"functionCall": {"id": call.id, "name": call.name, "args": dict(call.input)}})
    return parts or [{"text": ""}]


def _chunk(ask: ModelAsk, reply: ModelReply, parts: list[dict[str, object]], *, last: bool) -> dict[str, object]:
    candidate: dict[str, object] = {"content": {"role": "model", "parts": parts}, "index": 0}
    body: dict[str, object] = {"candidates": [candidate], "modelVersion": ask.model, "responseId": reply.id}
    if last:
        candidate["finishReason"] = _STOPS[reply.stop]
        body["usageMetadata"] = _usage(reply.usage)
    return body


def _usage(usage: Usage) -> dict[str, object]:
    counts: dict[str, object] = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.thinking,
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.cache_read:
        counts["cachedContentTokenCount"] = usage.cache_read
    if usage.thinking:
        counts["thoughtsTokenCount"] = usage.thinking
    return counts


def _data(body: object) -> bytes:
    return f"data: {json.dumps(body)}\r\n\r\n".encode()


def _error(fault: ModelFault, status: int) -> dict[str, object]:
    word, said = _ERRORS.get(fault.kind, ("INVALID_ARGUMENT", "Request contains an invalid argument."))
    details: list[dict[str, object]] = []
    if fault.kind in ("rate", "quota"):
        quota = {"quotaMetric": "generate_requests", "quotaId": _PER_DAY if fault.kind == "quota" else _PER_MINUTE}
        details.append({"@type": f"{_GOOGLE}QuotaFailure", "violations": [quota]})
    wait = fault.wait()
    if wait is not None:
        details.append({"@type": f"{_GOOGLE}RetryInfo", "retryDelay": f"{wait}s"})
    body: dict[str, object] = {"code": status, "message": fault.message or said, "status": word}
    return {"error": {**body, "details": details} if details else body}

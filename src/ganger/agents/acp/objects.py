"""Reads objects of the Agent Client Protocol: tool calls, options, errors, usage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ganger.agents.streams import number, part, text

_SHORT = 200
_LONGEST = 2000


def option_of(options: Iterable[Mapping[str, Any]], kind: str) -> dict[str, Any] | None:
    """The option of a kind, as names differ; never the one that holds for ever."""
    for option in options:
        if text(option, "kind") == kind:
            return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return None


def name_of(call: Mapping[str, Any]) -> str:
    return text(call, "kind") or text(call, "title")[:_SHORT] or "tool"


def about(call: Mapping[str, Any]) -> str:
    given = part(call, "rawInput")
    for name in ("command", "file_path", "filePath", "path"):
        if found := text(given, name):
            return found[:_SHORT]
    return text(call, "title")[:_SHORT]


def shown(data: object) -> str:
    return "" if data is None else json.dumps(data)[:_LONGEST]


def status_of(data: object) -> int | None:
    """The HTTP status somewhere in the details of an error."""
    for name in ("statusCode", "http_status_code", "status"):
        if (found := number(data, name)) is not None:
            return found
    inner = [value for value in data.values() if isinstance(value, dict)] if isinstance(data, dict) else []
    return next((found for value in inner if (found := status_of(value)) is not None), None)


def used_in(answer: Mapping[str, Any]) -> tuple[int, int, int, int] | None:
    """Tokens sent, generated, read from the cache, written to the cache."""
    told = part(answer, "usage")
    sent, made = number(told, "inputTokens"), number(told, "outputTokens")
    if sent is None or made is None:
        quota = part(answer, "_meta", "quota", "token_count")
        sent, made = number(quota, "input_tokens"), number(quota, "output_tokens")
        return None if sent is None or made is None else (sent, made, 0, 0)
    read, wrote = number(told, "cachedReadTokens") or 0, number(told, "cachedWriteTokens") or 0
    thought = number(told, "thoughtTokens") or 0
    # Agents differ in whether cached tokens count as sent and thoughts as generated; the total shows which.
    beside = (number(told, "totalTokens") or 0) - sent - made
    if beside >= read + wrote:
        sent, beside = sent + read + wrote, beside - read - wrote
    return sent, made + thought if beside >= thought else made, read, wrote

"""What OpenAI's two protocols share: error bodies, rate-limit headers, server-sent data lines."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ganger.dev.reply import ModelFault, ModelRefusal

# kind: (type, code, message)
_ERRORS: Mapping[str, tuple[str, str | None, str]] = {
    "auth": ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    "forbidden": ("invalid_request_error", "model_not_found", "Project does not have access to this model."),
    "billing": ("billing_error", "insufficient_balance", "Insufficient balance."),
    "credit": (
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "rate": ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."),
    "quota": ("usage_limit_reached", None, "The usage limit has been reached"),
    "overloaded": ("server_error", "server_is_overloaded", "The server is overloaded."),
    "context": (
        "invalid_request_error",
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    "pairing": (
        "invalid_request_error",
        None,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: call_01",
    ),
    "signature": (
        "invalid_request_error",
        "invalid_encrypted_content",
        "The encrypted content gAAA... could not be verified.",
    ),
    "server": ("server_error", None, "The server had an error while processing your request."),
}


def refusal(fault: ModelFault) -> ModelRefusal:
    """An error answer with OpenAI's body and headers."""
    status = 429 if fault.kind == "credit" else fault.status
    return ModelRefusal(status, _headers(fault), {"error": error(fault)})


def error(fault: ModelFault) -> dict[str, object]:
    kind, code, said = _ERRORS.get(fault.kind, ("invalid_request_error", None, "The request was not accepted."))
    body: dict[str, object] = {"message": fault.message or said, "type": kind, "param": None, "code": code}
    wait = fault.wait()
    if fault.kind == "quota" and wait is not None:
        body |= {"plan_type": "pro", "resets_at": int(fault.reset_at or fault.now + wait), "resets_in_seconds": wait}
    return body


def data(body: object) -> bytes:
    return f"data: {json.dumps(body)}\n\n".encode()


def _headers(fault: ModelFault) -> dict[str, str]:
    wait = fault.wait()
    if wait is None:
        return {}
    headers = {"retry-after": str(wait)}
    if fault.kind in ("rate", "quota"):
        headers |= {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{wait}s"}
    return headers

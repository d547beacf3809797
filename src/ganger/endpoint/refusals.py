"""The endpoint's refusals; their text never repeats anything from the request."""

from __future__ import annotations

from collections.abc import Mapping

from ganger.ports.endpoint import Reply

_RETRY_SEC = 1


class RequestRefused(Exception):
    """A refused request. `headers` are sent with the answer."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = dict(headers or {})
        self.reply = Reply(status, {"ok": False, "code": code, "message": message, "hint": hint})


def bad_request(message: str) -> RequestRefused:
    return RequestRefused(400, "BAD_REQUEST", message, "ganger worker speaks the protocol for you")


def no_token() -> RequestRefused:
    hint = "send Authorization: Bearer TOKEN with the token in GANGER_TOKEN"
    return RequestRefused(401, "NO_TOKEN", "the request carries no usable token", hint, {"WWW-Authenticate": "Bearer"})


def too_often(wait_sec: float) -> RequestRefused:
    after = str(max(_RETRY_SEC, int(wait_sec + 0.999)))
    message = "this token has asked too often"
    return RequestRefused(429, "TOO_OFTEN", message, f"ask again in {after} s", {"Retry-After": after})


def too_many(do: str) -> RequestRefused:
    message = f"too many requests of this token {do}"
    return RequestRefused(
        429, "TOO_OFTEN", message, "ask again when one has finished", {"Retry-After": str(_RETRY_SEC)}
    )


def lead_busy(message: str = "the lead cannot take this now") -> RequestRefused:
    hint = "nothing was recorded; send it again with the same id"
    return RequestRefused(503, "LEAD_BUSY", message, hint, {"Retry-After": str(_RETRY_SEC)})

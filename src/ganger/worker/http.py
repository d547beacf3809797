"""One request to the run's lead: HTTP over its Unix socket or over loopback, through the bare socket.

Importing `socket` and `http.client` would take longer than a heartbeat may.
"""

from __future__ import annotations

import _socket
import json
import time

from .errors import Away, Busy, Misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MCP = "/mcp"
_LOOPBACK = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1"}
_LONGEST_HEAD = 64 * 1024
_LONGEST_BODY = 16 * 1024 * 1024
_LONGEST_PATH = 107
_BUSY_SEC = 0.02


class LeadAnswer:
    """`retry_sec` is set if the request should be sent again later."""

    __slots__ = ("body", "retry_sec", "status")

    def __init__(self, status: int, body: dict[str, Any], retry_sec: float | None = None) -> None:
        self.status, self.body, self.retry_sec = status, body, retry_sec

    @property
    def taken(self) -> bool:
        return self.status < 300

    @property
    def passing(self) -> bool:
        """Refused for now: the same request may be accepted later."""
        return self.status >= 500 or self.status == 408 or (self.status == 429 and self.retry_sec is not None)


def call(
    address: str, token: str, path: str, body: object, timeout_sec: float, more: dict[str, str] | None = None
) -> LeadAnswer:
    """Raises Away without a complete answer, or if the lead cannot take it now. `more` are header fields."""
    until = time.monotonic() + timeout_sec
    content = encoded(body)
    line = _connected(address, until)
    try:
        fields = {
            "Host": _host(address),
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "Connection": "close",
            **(more or {}),
        }
        cut = ""
        try:
            line.sendall(_written(f"POST {path} HTTP/1.1", fields) + content)
        except OSError as error:
            # A server that refuses a request by its head answers and closes before all of it is sent.
            cut = _reason(error)
        answer = _answer(line, until, cut)
    finally:
        line.close()
    if answer.passing:
        why = str(answer.body.get("message") or f"it answered {answer.status}")
        raise (Busy if answer.body.get("ok") is False else Away)(why, answer.retry_sec or 0.0)
    if path != MCP and answer.body.get("ok") is not answer.taken:
        # Another program may listen there by now; only a lead's answer removes a request from the spool.
        raise Away("what answered is no lead")
    return answer


def encoded(value: object) -> bytes:
    """The shortest JSON; a lone surrogate, which UTF-8 cannot hold, is escaped."""
    try:
        return json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False).encode("ascii")


def _written(first: str, fields: dict[str, str]) -> bytes:
    """A request head; characters that would start a new line are removed from values."""
    lines = (f"{name}: {''.join(c for c in value if c.isprintable())}" for name, value in fields.items())
    return "\r\n".join([first, *lines, "", ""]).encode("ascii", "replace")


def _host(address: str) -> str:
    return "localhost" if address.startswith("/") else address[len("http://") :].rstrip("/")


def _place(address: str) -> tuple[int, Any]:
    if address.startswith("/"):
        if len(address.encode("utf-8", "surrogateescape")) > _LONGEST_PATH:
            raise Misuse(f"{address} is too long for a socket", hint="GANGER_REPORT is set by the run's lead")
        return _socket.AF_UNIX, address
    scheme, _, rest = address.rpartition("//")
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme != "http:" or host not in _LOOPBACK or not port.isdigit() or int(port) > 65535:
        raise Misuse(
            f"{address!r} is not the address of a lead",
            hint="GANGER_REPORT is the path of a socket, or http://127.0.0.1:PORT",
        )
    return _socket.AF_INET, (_LOOPBACK[host], int(port))


def _connected(address: str, until: float) -> _socket.socket:
    family, place = _place(address)
    while True:
        line = _socket.socket(family, _socket.SOCK_STREAM)
        try:
            line.settimeout(max(0.05, until - time.monotonic()))
            line.connect(place)
        except BlockingIOError as error:
            # A Unix socket whose queue is full says so at once.
            line.close()
            if time.monotonic() + _BUSY_SEC >= until:
                raise Away("it is busy") from error
            time.sleep(_BUSY_SEC)
        except OSError as error:
            line.close()
            raise Away(_reason(error)) from error
        else:
            return line


def _answer(line: _socket.socket, until: float, cut: str) -> LeadAnswer:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(line, until, cut)
        if len(data) > _LONGEST_HEAD:
            raise Away("what answered is no lead")
    head, _, body = data.partition(b"\r\n\r\n")
    status, fields = _head(head)
    length = fields.get("content-length", "")
    if not length.isdigit() or int(length) > _LONGEST_BODY:
        raise Away("what answered is no lead")
    parts, missing = [body], int(length) - len(body)
    while missing > 0:
        parts.append(_more(line, until, cut))
        missing -= len(parts[-1])
    return LeadAnswer(status, _object(b"".join(parts)[: int(length)]), _seconds(fields.get("retry-after")))


def _more(line: _socket.socket, until: float, cut: str) -> bytes:
    left = until - time.monotonic()
    if left <= 0:
        raise Away("it did not answer in time")
    try:
        line.settimeout(left)
        data = line.recv(65536)
    except OSError as error:
        raise Away(cut or _reason(error)) from error
    if not data:
        raise Away(cut or "it closed the connection without an answer")
    return data


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise Away("what answered is no lead")
    fields = (line.partition(":") for line in lines)
    return int(rest[:3]), {name.strip().lower(): value.strip() for name, _, value in fields}


def _object(body: bytes) -> dict[str, Any]:
    if not body:
        return {}
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Away("what answered is no lead") from error
    return found if isinstance(found, dict) else {"value": found}


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return "it did not answer in time"
    return error.strerror or str(error) or "the connection broke"

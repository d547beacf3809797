"""HTTP/1.1 as far as workers need it: strictly parses a request's head, and renders an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from ganger.endpoint.refusals import RequestRefused, bad_request

HEAD_LIMIT = 16 * 1024
END = b"\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_MOST_HEADERS = 64
_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,2000}) (HTTP/\d\.\d)")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"[\x20-\x7e\t]*")
_LENGTH = re.compile(r"[0-9]{1,12}")
# Headers that decide something: a repeated one could be read in two ways.
_ONCE = re.compile(
    r"authorization|connection|content-(?:encoding|length|type)|expect|host|mcp-[a-z-]+|origin|sec-fetch-[a-z]+"
    r"|transfer-encoding"
)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The head of a request. `headers` have lower-case names; `length` is None if none was given."""

    method: str
    target: str
    headers: Mapping[str, str]
    length: int | None

    def words(self, name: str) -> frozenset[str]:
        """The words of a list header, such as Connection."""
        return frozenset(word.strip().lower() for word in self.headers.get(name, "").split(","))


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """`body` is encoded JSON; None: no body."""

    status: int
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, value: object, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Raises TypeError or ValueError for what HTTP or JSON cannot express."""
        return cls(HTTPStatus(status), json.dumps(value, allow_nan=False).encode("ascii"), headers or {})


def check_first_line(begun: bytes) -> None:
    """Raises Refused for an incomplete head that begins wrong, so that the rest is not waited for."""
    line = begun.partition(b"\n")[0]
    if not line.endswith(b"\r"):
        raise bad_request("a line of the head does not end with CR LF")
    _request_line(line[:-1])


def parse_head(raw: bytes) -> RequestHead:
    """Parses a head without its empty line; raises Refused."""
    first, *lines = raw.split(b"\r\n")
    if any(mark in line for line in (first, *lines) for mark in (b"\r", b"\n")):
        raise bad_request("a line of the head does not end with CR LF")
    method, target = _request_line(first)
    headers = _headers(lines)
    if not headers.get("host"):
        raise bad_request("the request has no Host header")
    return RequestHead(method, target, headers, _length(headers))


def _request_line(line: bytes) -> tuple[str, str]:
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise bad_request("the first line is not an HTTP request")
    method, target, version = (part.decode("ascii") for part in found.groups())
    if version != "HTTP/1.1":
        raise RequestRefused(505, "BAD_REQUEST", "only HTTP/1.1 is supported", "ganger worker does it for you")
    return method, target


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > _MOST_HEADERS:
        raise RequestRefused(431, "REQUEST_TOO_LARGE", f"there are more than {_MOST_HEADERS} headers", "send fewer")
    headers: dict[str, str] = {}
    for line in lines:
        raw_name, colon, raw_value = line.partition(b":")
        # Folded lines and names with blanks fail here too, because readers differ in how they parse them.
        if not colon or not _NAME.fullmatch(raw_name) or not _VALUE.fullmatch(raw_value):
            raise bad_request("a header is malformed")
        name, value = raw_name.decode("ascii").lower(), raw_value.decode("ascii").strip(" \t")
        if name in headers and _ONCE.fullmatch(name):
            raise bad_request(f"the header {name} is given twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _length(headers: Mapping[str, str]) -> int | None:
    """Only Content-Length marks the end of a body: with a second way, requests could be smuggled."""
    length = headers.get("content-length")
    if "transfer-encoding" in headers:
        status = 411 if length is None else 400
        raise RequestRefused(status, "BAD_REQUEST", "Transfer-Encoding is not supported", "send Content-Length instead")
    if length is None:
        return None
    if not _LENGTH.fullmatch(length):
        raise bad_request("Content-Length is not a number")
    return int(length)


def render(answer: HttpAnswer, *, close: bool) -> bytes:
    """The answer as bytes. No header lets a web page read it."""
    body = answer.body or b""
    headers = {
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close" if close else "keep-alive",
        **answer.headers,
    }
    if answer.body is not None:
        headers["Content-Type"] = "application/json"
    lines = [f"HTTP/1.1 {answer.status:d} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body

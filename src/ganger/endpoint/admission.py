"""Which requests are accepted, by rules that check the head before any of the body is read; and how many per token."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ganger.contracts.worker import VERBS
from ganger.endpoint.http1 import RequestHead
from ganger.endpoint.refusals import RequestRefused, bad_request, no_token

MCP = "mcp"
BODY_LIMIT = 1 << 20
# A report contains whole files; over MCP it comes as a tool's arguments.
REPORT_LIMIT = 9 << 20
_PLACES = {f"/v1/{verb}": verb for verb in VERBS} | {"/mcp": MCP}
_TOKEN = re.compile(r"[A-Za-z0-9._:~-]{8,200}")
_JSON = re.compile(r"application/json(?:[ \t]*;[ \t]*charset=\"?utf-8\"?)?", re.IGNORECASE)
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Admission:
    """One way in. `hosts` are the only names it answers to, None: any; `uids` are the users who may use it, None: all.

    A web page that rebinds its own host name to this machine is recognised by that name.
    """

    carrier: str
    hosts: frozenset[str] | None = None
    uids: frozenset[int] | None = None

    def lets_in(self, connection: socket.socket) -> bool:
        if self.uids is None:
            return True
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return _CREDENTIALS.unpack(raw)[1] in self.uids


@dataclass(frozen=True, slots=True)
class Ticket:
    """An accepted request: what it is for, which token it has, how long its body is."""

    place: str
    token: str
    length: int


def local_uids(others: frozenset[int]) -> frozenset[int]:
    return frozenset({0, os.geteuid()}) | others


def _is_for_us(head: RequestHead, door: Admission) -> None:
    if door.hosts is not None and head.headers["host"] not in door.hosts:
        raise RequestRefused(
            403, "WRONG_DOOR", "the request was meant for another host", "use the address in GANGER_REPORT"
        )


def _is_from_no_page(head: RequestHead, _door: Admission) -> None:
    if "origin" in head.headers or head.headers.get("sec-fetch-site", "none") != "none":
        raise RequestRefused(403, "WRONG_DOOR", "requests from browsers are refused", "use a program instead")


def _is_known(head: RequestHead, _door: Admission) -> None:
    if head.target not in _PLACES:
        raise RequestRefused(404, "NO_VERB", "there is nothing here", f"known paths: {', '.join(_PLACES)}")


def _is_post(head: RequestHead, _door: Admission) -> None:
    if head.method != "POST":
        raise RequestRefused(405, "WRONG_METHOD", "only POST is accepted", "use POST", {"Allow": "POST"})


def _is_json(head: RequestHead, _door: Admission) -> None:
    plain = head.headers.get("content-encoding", "identity").lower() == "identity"
    if not plain or not _JSON.fullmatch(head.headers.get("content-type", "")):
        raise RequestRefused(415, "WRONG_TYPE", "only JSON is accepted", "send Content-Type: application/json")


def _is_measured(head: RequestHead, _door: Admission) -> None:
    if head.length is None:
        raise RequestRefused(411, "BAD_REQUEST", "the request has no length", "send Content-Length")
    if head.headers.get("expect", "100-continue").lower() != "100-continue":
        raise RequestRefused(417, "BAD_REQUEST", "the Expect header is not supported", "remove the header Expect")


def _fits(head: RequestHead, _door: Admission) -> None:
    largest = REPORT_LIMIT if _PLACES.get(head.target) in (MCP, "report") else BODY_LIMIT
    if (head.length or 0) > largest:
        raise RequestRefused(
            413, "REQUEST_TOO_LARGE", f"the body is larger than {largest} bytes", "send less, or in parts"
        )


def _has_token(head: RequestHead, _door: Admission) -> None:
    if token_of(head) is None:
        raise no_token()


def token_of(head: RequestHead) -> str | None:
    scheme, _, token = head.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" and looks_like_token(token) else None


def looks_like_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


Rule = Callable[[RequestHead, Admission], None]
RULES: tuple[Rule, ...] = (
    _is_for_us,
    _is_from_no_page,
    _is_known,
    _is_post,
    _is_json,
    _is_measured,
    _fits,
    _has_token,
)


def admit(head: RequestHead, door: Admission, rules: tuple[Rule, ...] = RULES) -> Ticket:
    """Raises Refused."""
    for rule in rules:
        rule(head, door)
    place = _PLACES.get(head.target)
    if place is None or head.length is None:
        raise bad_request("the request is invalid")
    return Ticket(place, token_of(head) or "", head.length)


class TokenRate:
    """Rate limit per token: a bucket that refills with time. `rate` requests a second, `burst` at once; only the `most`
    latest tokens are remembered. A request that costs more than is left is accepted anyway, and everything after it
    waits accordingly."""

    def __init__(self, rate: float = 50.0, burst: float = 100.0, most: int = 4096) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_sec(self, token: str, now: float, cost: float = 1.0) -> float:
        """0 if the request is accepted and counted; else how long to wait."""
        left, since = self._buckets.pop(token, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        may = left >= 1.0
        self._buckets[token] = (left - cost if may else left, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if may else (1.0 - left) / self._rate

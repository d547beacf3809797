"""Requests that must not come in, and the few that must; `fault` says what a server did wrong with one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from tests.reports.endpoint import JOIN, TOKEN, Endpoint, request

OK = (200,)


@dataclass(frozen=True)
class Attack:
    """`statuses` are what may be answered. `heard`: how many requests the handler may get of it."""

    name: str
    build: Callable[[str], bytes]
    statuses: tuple[int, ...]
    carriers: tuple[str, ...] = ("http", "socket")
    heard: int = 0


async def fault(endpoint: Endpoint, attack: Attack, carrier: str) -> str:
    """What is wrong; empty: nothing."""
    before = len(endpoint.ear.all_asked)
    wire = await endpoint.wire(carrier)
    data = attack.build(endpoint.host)
    await wire.send(data)
    try:
        said = await wire.answer()
        # Something smuggled behind the first request would be answered too.
        second = await wire.answer() if said is not None and said.headers.get("connection") == "close" else None
    except TimeoutError:
        return f"{attack.name} over {carrier}: nobody answers"
    finally:
        wire.close()
    status = 0 if said is None else said.status
    if status not in attack.statuses:
        return f"{attack.name} over {carrier}: answered {status}, not {attack.statuses}"
    # Before a large body is parsed, it is asked whether its sender is known.
    asked = endpoint.ear.all_asked[before:]
    heard = sum(one.verb != "messages" or len(data) < LARGE for one in asked)
    if heard != attack.heard or second is not None:
        return f"{attack.name} over {carrier}: the handler heard {heard} of it"
    if said is not None and any(name.startswith("access-control") for name in said.headers):
        return f"{attack.name} over {carrier}: a page may read the answer"
    return ""


LARGE = 64 * 1024
HOSTS = {"own": "{host}", "name": "localhost:{port}", "rebound": "evil.example:{port}", "other port": "127.0.0.1:1"}
ORIGINS = {"none": "", "page": "https://evil.example", "null": "null", "own": "http://{host}"}
METHODS = ("POST", "GET", "PUT")
TOKENS = {"good": TOKEN, "none": ""}
TYPES = ("application/json", "text/plain")


def _crossed() -> list[Attack]:
    """Every host with every origin, method, token and type: only what is right in all of them comes in."""
    made = []
    for host, origin, method, token, kind in product(HOSTS, ORIGINS, METHODS, TOKENS, TYPES):
        good = host in ("own", "name") and (origin, method, token, kind) == ("none", "POST", "good", TYPES[0])
        made.append(
            Attack(
                f"{host} host, {origin} origin, {method}, {token} token, {kind}",
                _crossing(host, origin, method, token, kind),
                OK if good else (401, 403, 405, 415),
                ("http",),
                heard=int(good),
            )
        )
    return made


def _crossing(host: str, origin: str, method: str, token: str, kind: str) -> Callable[[str], bytes]:
    def build(own: str) -> bytes:
        names = {"host": own, "port": own.partition(":")[2]}
        more = {"origin": ORIGINS[origin].format(**names)} if ORIGINS[origin] else {}
        drop = () if TOKENS[token] else ("authorization",)
        return request(HOSTS[host].format(**names), method=method, drop=drop, more={"content_type": kind, **more})

    return build


CROSSED = _crossed()


def _target(target: str) -> Callable[[str], bytes]:
    return lambda host: request(host, target)


def _headers(**more: str) -> Callable[[str], bytes]:
    return lambda host: request(host, more=more)


def _body(body: bytes, target: str = "/v1/heartbeat") -> Callable[[str], bytes]:
    return lambda host: request(host, target, raw_body=body)


def _edited(old: bytes, new: bytes, **more: str) -> Callable[[str], bytes]:
    """A good request with some of its bytes changed."""

    def build(host: str) -> bytes:
        made = request(host, more=more)
        assert old in made
        return made.replace(old, new, 1)

    return build


def _raw(data: bytes) -> Callable[[str], bytes]:
    return lambda host: data.replace(b"HOST", host.encode())


_HIDDEN = b"POST /v1/done HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer " + TOKEN.encode() + b"\r\n"
_HIDDEN += b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def _smuggling(host: str) -> bytes:
    hidden = b"0\r\n\r\n" + _raw(_HIDDEN)(host)
    return _edited(b"{}", hidden, transfer_encoding="chunked")(host)


def _bearing(token: str) -> Callable[[str], bytes]:
    return lambda host: request(host, token=token)


TARGETS = r"""
    / /v1 /v1/ /v1/heartbeat/ /v1//heartbeat //v1/heartbeat /v1/../v1/heartbeat /v1/./heartbeat /v1/%2e%2e/v1/heartbeat
    /v1/heartbea%74 /%76%31/heartbeat /v1/heartbeat?x=1 /v1/heartbeat? /v1/heartbeat#x /v1/heartbeat;x=1 /V1/heartbeat
    /v1/HEARTBEAT /v1/config /v1/tasks /v1/state /v1/__class__ /v1/heartbeat%00 /v1/heartbeat%0d%0aX:1 \v1\heartbeat
    http://127.0.0.1/v1/heartbeat * /v2/heartbeat /mcp/ /mcp?token=x /.well-known/oauth-authorization-server
    /favicon.ico /../../etc/passwd
"""
METHODS_TOO = "GET HEAD PUT PATCH DELETE OPTIONS TRACE CONNECT"
BAD_TOKENS = [
    "", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer  {TOKEN}", f"Bearer {TOKEN} {TOKEN}",
    f"Bearer {TOKEN},{TOKEN}", f'Bearer "{TOKEN}"', "Bearer ../../etc/passwd", "Bearer " + "a" * 201, "Bearer short",
    f"Bearer\t{TOKEN}", f"Token {TOKEN}",
]  # fmt: skip
UNKNOWN_TOKENS = [
    TOKEN[:-1], TOKEN + "a", TOKEN.upper(), TOKEN.replace("fence-1", "fence-2"), "j1." + "d" * 40, "w1.." + "a" * 40,
]  # fmt: skip
BAD_LENGTHS = ["-1", "+2", "2, 2", "2 2", "0x2", "2.0", "", "1e1", "\u00b2", "9" * 13, "9" * 30]
BAD_BODIES = {
    "nothing": b"", "no JSON": b"step=1", "an array": b"[]", "a string": b'"x"', "null": b"null", "a number": b"1",
    "twice the same key": b'{"step": "a", "step": "b"}', "NaN": b'{"percent": NaN}',
    "Infinity": b'{"percent": -Infinity}', "1e999": b'{"percent": 1e999}',
    "deep arrays": b'{"x": ' + b"[" * 200 + b"]" * 200 + b"}",
    "very deep arrays": b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep objects": b'{"x":' * 5000 + b"1" + b"}" * 5000, "invalid UTF-8": b'{"step": "\xff\xfe"}',
    "an overlong NUL": b'{"step": "\xc0\x80"}', "half a pair": b'{"step": "\\ud800"}',
    "a raw NUL": b'{"step": "\x00"}', "UTF-16": '{"step": "x"}'.encode("utf-16"), "a mark first": b"\xef\xbb\xbf{}",
    "cut off": b'{"step": "x"', "two documents": b"{}{}", "a comment": b"{} // x",
    "5000 digits": b'{"since": ' + b"9" * 5000 + b"}", "many values": b'{"x": [' + b"1," * 300_000 + b"1]}",
}  # fmt: skip
PAGE_SIGNS = [
    {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}, {"sec_fetch_site": "same-origin"},
    {"origin": ""}, {"origin": "null"}, {"origin": "http://localhost"}, {"origin": "chrome-extension://x"},
]  # fmt: skip
BAD_TYPES = [
    "", "text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "application/jsonx", "application/json, text/plain", "application/json; charset=utf-16", "application/json;",
    "text/plain; application/json",
]  # fmt: skip
BAD_HEADS: dict[str, tuple[Callable[[str], bytes], tuple[int, ...]]] = {
    "HTTP/0.9": (_raw(b"GET /v1/heartbeat\r\n"), (400,)),
    "HTTP/0.9 with LF": (_raw(b"GET /\n\n"), (400,)),
    "HTTP/1.0": (_edited(b"HTTP/1.1", b"HTTP/1.0"), (505,)),
    "HTTP/2 preface": (_raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), (505,)),
    "HTTP/1.10": (_edited(b"HTTP/1.1", b"HTTP/1.10"), (400,)),
    "lower-case http": (_edited(b"HTTP/1.1", b"http/1.1"), (400,)),
    "lower-case method": (_edited(b"POST", b"post"), (400,)),
    "two blanks": (_edited(b"POST ", b"POST  "), (400,)),
    "a tab": (_edited(b"POST ", b"POST\t"), (400,)),
    "an empty line first": (_edited(b"POST ", b"\r\nPOST "), (400,)),
    "TLS": (_raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n"), (400,)),
    "a NUL in the path": (_edited(b"/v1/heartbeat", b"/v1/heartbeat\x00"), (400,)),
    "a NUL in a header": (_edited(b"application/json", b"application/json\x00"), (400,)),
    "a NUL in the host": (lambda host: request(f"{host}\x00evil.example"), (400,)),
    "line feeds alone": (lambda host: request(host).replace(b"\r\n", b"\n"), (400,)),
    "a line feed inside": (_edited(b"\r\nAuth", b"\nAuth"), (400,)),
    "a carriage return inside": (_edited(b"\r\nAuth", b"\rAuth"), (400,)),
    "a folded header": (_edited(b"\r\nContent-Type", b"\r\n folded\r\nContent-Type"), (400,)),
    "a blank before the colon": (_edited(b"Host:", b"Host :"), (400,)),
    "no colon": (_edited(b"Host: ", b"Host "), (400,)),
    "an empty name": (_edited(b"Host:", b":"), (400,)),
    "no host": (lambda host: request(host, drop=("host",)), (400,)),
    "an empty host": (lambda host: request(""), (400,)),
    "two hosts": (_edited(b"Host:", b"Host: evil.example\r\nHost:"), (400,)),
    "two tokens": (_edited(b"\r\nAuth", b"\r\nAuthorization: Bearer " + JOIN.encode() + b"\r\nAuth"), (400,)),
    "two types": (_edited(b"Content-Type:", b"Content-Type: text/plain\r\nContent-Type:"), (400,)),
    "two lengths": (_edited(b"Content-Length:", b"Content-Length: 2\r\nContent-Length:"), (400,)),
    "two other lengths": (_edited(b"Content-Length:", b"Content-Length: 0\r\nContent-Length:"), (400,)),
    "no length": (lambda host: request(host, drop=("content-length",)), (411,)),
    "chunked": (lambda host: request(host, drop=("content-length",), more={"transfer_encoding": "chunked"}), (411,)),
    "chunked and a length": (_headers(transfer_encoding="chunked"), (400,)),
    "Chunked": (_headers(transfer_encoding="Chunked"), (400,)),
    "xchunked": (_headers(transfer_encoding="xchunked"), (400,)),
    "identity coding": (_headers(transfer_encoding="identity"), (400,)),
    "an odd expectation": (_headers(expect="200-ok"), (417,)),
    "gzip": (_headers(content_encoding="gzip"), (415,)),
    "a huge header": (_headers(x_a="a" * 20_000), (431,)),
    "a huge path": (_target("/" + "a" * 20_000), (400, 431)),
    "100 headers": (lambda host: request(host, more={f"x_{n}": "1" for n in range(100)}), (431,)),
    "10,000 headers": (lambda host: request(host, more={f"x_{n}": "1" for n in range(10_000)}), (431,)),
    "CL.TE smuggling": (lambda host: _smuggling(host), (400,)),
    "a folded coding": (_edited(b"Content-Length:", b"Transfer-Encoding:\r\n chunked\r\nContent-Length:"), (400,)),
    "a coding after a tab": (_edited(b"Content-Length:", b"Transfer-Encoding:\tchunked\r\nContent-Length:"), (400,)),
    "non-ASCII header": (_headers(x_a="\xe9"), (400,)),
    "1 MiB and one": (_body(b" " * ((1 << 20) + 1)), (413,)),
    "9 MiB and one": (_body(b" " * ((9 << 20) + 1), "/v1/report"), (413,)),
    "4 GB announced": (_headers(content_length="4294967298"), (413,)),
}  # fmt: skip
GOOD: dict[str, tuple[Callable[[str], bytes], int]] = {
    "plain": (_headers(), 1),
    "a charset": (_headers(content_type='application/json; charset="UTF-8"'), 1),
    "a scheme in lower case": (_edited(b"Bearer", b"bearer"), 1),
    "names in capitals": (_edited(b"Authorization", b"AUTHORIZATION"), 1),
    "closing": (_headers(connection="close"), 1),
    "fetch of a program": (_headers(sec_fetch_mode="cors"), 1),
    "typed by a person": (_headers(sec_fetch_site="none"), 1),
    "exactly 1 MiB": (_body(b"{" + b" " * ((1 << 20) - 2) + b"}"), 1),
    "exactly 9 MiB": (_body(b"{" + b" " * ((9 << 20) - 2) + b"}", "/v1/report"), 1),
    "99 deep": (_body(json.dumps({"context": "x"}).encode()[:-1] + b', "y": ' + b"[" * 98 + b"]" * 98 + b"}"), 1),
}  # fmt: skip

ATTACKS: list[Attack] = [
    *(Attack(f"path {target!r}", _target(target), (404,)) for target in TARGETS.split()),
    *(Attack(f"method {method}", _edited(b"POST", method.encode()), (405,)) for method in METHODS_TOO.split()),
    *(Attack(f"token {token!r}", _headers(authorization=token), (401,)) for token in BAD_TOKENS),
    *(Attack(f"unknown token {token!r}", _bearing(token), (401,), heard=1) for token in UNKNOWN_TOKENS),
    Attack("a join token reports", lambda host: request(host, "/v1/report", token=JOIN), (403,), heard=1),
    *(Attack(f"length {length!r}", _headers(content_length=length), (400,)) for length in BAD_LENGTHS),
    *(Attack(f"type {kind!r}", _headers(content_type=kind), (415,)) for kind in BAD_TYPES),
    *(Attack(f"page {sign}", _headers(**sign), (403,)) for sign in PAGE_SIGNS),
    *(Attack(f"body: {name}", _body(body), (400,)) for name, body in BAD_BODIES.items()),
    *(Attack(f"head: {name}", build, statuses) for name, (build, statuses) in BAD_HEADS.items()),
    *(Attack(f"good: {name}", build, OK, heard=heard) for name, (build, heard) in GOOD.items()),
]

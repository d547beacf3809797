"""Receives a forge's webhooks. A signed one makes Ganger check sooner; nothing in it counts as a result."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from ganger.contracts.reading.strict_json import DocumentFault, check_count, loads
from ganger.errors import ForgeError

HEAD_BYTES = 16 * 1024
BODY_BYTES = 1 << 20
_MOST_VALUES = 50_000
_LONGEST_ID = 200
_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) [\x21-\x7e]{1,2000} HTTP/1\.[01]")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DELIVERIES = (
    "x-forgejo-delivery",
    "x-gitea-delivery",
    "x-github-delivery",
    "idempotency-key",
    "x-gitlab-event-uuid",
)


class WebhookRefused(Exception):
    """A refused request; `status` is the HTTP status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True, slots=True)
class WebhookHead:
    """Header names are lower-case."""

    headers: Mapping[str, bytes]
    length: int

    @property
    def delivery(self) -> str:
        """The forge's id of this delivery, the same if it is repeated; empty if it has none."""
        found = next((self.headers[name] for name in _DELIVERIES if name in self.headers), b"")
        return found[:_LONGEST_ID].decode("latin-1")


def read_head(raw: bytes) -> WebhookHead:
    """Reads a head with its empty line; raises WebhookRefused."""
    first, *lines = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
    asked = _REQUEST_LINE.fullmatch(first)
    if asked is None:
        raise WebhookRefused(400, "this is not an HTTP request")
    if asked[1] != b"POST":
        raise WebhookRefused(405, "use POST")
    headers: dict[str, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        key = name.decode("latin-1").lower()
        if not colon or not _NAME.fullmatch(name) or key in headers:
            raise WebhookRefused(400, "a header is malformed or repeated")
        headers[key] = value.strip(b" \t")
    return WebhookHead(headers, _length(headers))


def _length(headers: Mapping[str, bytes]) -> int:
    """Checks the head before any of the body is read."""
    kind = headers.get("content-type", b"").split(b";")[0].strip().lower()
    if kind != b"application/json" or headers.get("content-encoding", b"identity") != b"identity":
        raise WebhookRefused(415, "only JSON is accepted: set the webhook's content type to application/json")
    length = headers.get("content-length", b"")
    if "transfer-encoding" in headers or not re.fullmatch(rb"[0-9]{1,12}", length):
        raise WebhookRefused(411, "the request has no Content-Length")
    if int(length) > BODY_BYTES:
        raise WebhookRefused(413, f"the body is larger than {BODY_BYTES} bytes")
    return int(length)


def _hexed(body: bytes, secret: bytes) -> bytes:
    return hmac.new(secret, body, hashlib.sha256).hexdigest().encode()


_SIGNATURES: Mapping[str, Callable[[bytes, bytes], bytes]] = {
    "x-forgejo-signature": _hexed,
    "x-gitea-signature": _hexed,
    "x-hub-signature-256": lambda body, secret: b"sha256=" + _hexed(body, secret),
    "x-gitlab-token": lambda _body, secret: secret,
}


def signer(head: WebhookHead, body: bytes, secrets: Iterable[str]) -> str | None:
    """The secret that signed it. It must have at least one signature, and all of them must be right."""
    given = [(head.headers[name], proof) for name, proof in _SIGNATURES.items() if name in head.headers]
    found: str | None = None
    for secret in secrets:
        right = [hmac.compare_digest(value, proof(body, secret.encode())) for value, proof in given]
        if secret and given and all(right):
            found = secret
    return found


def project_of(body: bytes) -> str:
    """`owner/name` from the body; empty if there is none. Raises WebhookRefused if the body is not JSON."""
    try:
        text = body.decode("utf-8")
        check_count(text, _MOST_VALUES)
        value = loads(text)
    except (UnicodeDecodeError, DocumentFault):
        raise WebhookRefused(400, "the body is not valid JSON") from None
    for outer, inner in (("repository", "full_name"), ("project", "path_with_namespace")):
        part = value.get(outer) if isinstance(value, dict) else None
        named = part.get(inner) if isinstance(part, dict) else None
        if isinstance(named, str) and named:
            return named
    return ""


HOST = "127.0.0.1"
_MOST_LINES = 32
_MOST_REMEMBERED = 4096
_LINGER_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class HookLimits:
    """`within_sec` limits a whole request. `rate` requests per second are read, up to `burst` at once. A project is
    nudged at most once in `every_sec`."""

    within_sec: float = 5.0
    linger_sec: float = 1.0
    rate: float = 100.0
    burst: float = 2000.0
    every_sec: float = 1.0


@dataclass(slots=True)
class HookCounts:
    """Counts of requests. `unknown`: signed, but for a project that the run does not follow."""

    taken: int = 0
    repeated: int = 0
    unknown: int = 0
    forged: int = 0
    refused: int = 0


class WebhookReceiver:
    """`secrets` by project, as `owner/name`; `nudge` is called with a project that may have news."""

    def __init__(
        self,
        secrets: Mapping[str, str],
        nudge: Callable[[str], None],
        *,
        port: int = 0,
        limits: HookLimits | None = None,
    ) -> None:
        self._secrets = {project.lower(): (project, secret) for project, secret in secrets.items()}
        self._nudge, self._limits, self.port = nudge, limits or HookLimits(), port
        self.counts = HookCounts()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._nudged: dict[str, float] = {}
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._left, self._left_at = self._limits.burst, 0.0
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Raises ForgeError if it cannot listen, or if a project has no secret."""
        bare = [project for project, secret in self._secrets.values() if not secret]
        if bare or not self._secrets:
            raise ForgeError(
                f"webhooks need a secret ({', '.join(bare) or 'no project has one'})",
                hint="set the variable that delivery.webhook_secret_env names, and enter the same secret on the forge",
            )
        try:
            self._server = await asyncio.start_server(self._came, HOST, self.port, limit=HEAD_BYTES)
        except OSError as problem:
            raise ForgeError(
                f"cannot listen for webhooks at {HOST}:{self.port} ({problem.strerror})",
                hint="set delivery.webhook_port to another port, or to 0 for no webhooks",
            ) from problem
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for line in self._lines:
            line.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()

    # --- a request --------------------------------------------------------------------------------------------------

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request per connection. It always ends in time and does not disturb other requests."""
        line = asyncio.current_task()
        assert line is not None
        crowded = len(self._lines) >= _MOST_LINES or not self._may_come()
        self._lines.add(line)
        try:
            async with asyncio.timeout(self._limits.within_sec + self._limits.linger_sec):
                status, why = (429, "too many requests at once") if crowded else await self._answered(reader)
                self.counts.refused += crowded
                writer.write(_answer(status, why))
                await writer.drain()
                if status != HTTPStatus.OK and not crowded:
                    await self._linger(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError):
            pass
        finally:
            writer.transport.abort()
            self._lines.discard(line)

    async def _answered(self, reader: asyncio.StreamReader) -> tuple[int, str]:
        try:
            async with asyncio.timeout(self._limits.within_sec):
                head = read_head(await reader.readuntil(b"\r\n\r\n"))
                body = await reader.readexactly(head.length)
            return 200, self._taken(head, body)
        except WebhookRefused as refused:
            found = refused
        except asyncio.LimitOverrunError:
            found = WebhookRefused(431, f"the head is larger than {HEAD_BYTES} bytes")
        except asyncio.IncompleteReadError:
            found = WebhookRefused(400, "the request is incomplete")
        except TimeoutError:
            found = WebhookRefused(408, "the request took too long")
        self.counts.forged += found.status == HTTPStatus.UNAUTHORIZED
        self.counts.refused += found.status != HTTPStatus.UNAUTHORIZED
        return found.status, found.why

    def _taken(self, head: WebhookHead, body: bytes) -> str:
        """What became of a complete request, in one word; raises WebhookRefused."""
        secret = signer(head, body, sorted({secret for _project, secret in self._secrets.values()}))
        if secret is None:
            raise WebhookRefused(401, "it is not signed with the secret")
        named = project_of(body)
        project, expected = self._secrets.get(named.lower(), ("", ""))
        if expected != secret:
            self.counts.unknown += 1
            return "unknown"
        # The delivery's id is not signed, so the same body under another id is a repetition too.
        if not self._is_new(f"{project} {head.delivery}" if head.delivery else "", hashlib.sha256(body).hexdigest()):
            self.counts.repeated += 1
            return "repeated"
        self.counts.taken += 1
        self._call(project)
        return "taken"

    # --- limits ---------------------------------------------------------------------------------------------------

    def _may_come(self) -> bool:
        now, limits = asyncio.get_running_loop().time(), self._limits
        self._left = min(limits.burst, self._left + (now - self._left_at) * limits.rate)
        self._left_at = now
        may = self._left >= 1.0
        self._left -= 1.0 if may else 0.0
        return may

    def _is_new(self, *names: str) -> bool:
        known = [name for name in names if name in self._seen]
        for name in filter(None, names):
            self._seen[name] = None
            self._seen.move_to_end(name)
        while len(self._seen) > _MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return not known

    def _call(self, project: str) -> None:
        """Nudges at once, or as soon as the project may be nudged again: the last hook of a burst is never lost."""
        loop = asyncio.get_running_loop()
        due = self._nudged.get(project, -self._limits.every_sec) + self._limits.every_sec
        if project in self._later:
            return
        if loop.time() >= due:
            self._nudged[project] = loop.time()
            self._nudge(project)
        else:
            self._later[project] = loop.call_at(due, self._call_late, project)

    def _call_late(self, project: str) -> None:
        del self._later[project]
        self._nudged[project] = asyncio.get_running_loop().time()
        self._nudge(project)

    async def _linger(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads on, so that a client that is still sending gets the answer: closing at once would drop it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_sec):
                if writer.can_write_eof():
                    writer.write_eof()
                left = _LINGER_BYTES
                while left > 0 and (read := await reader.read(HEAD_BYTES)):
                    left -= len(read)


def _answer(status: int, why: str) -> bytes:
    body = f'{{"ok": {"true" if status == HTTPStatus.OK else "false"}, "message": "{why}"}}\n'.encode("ascii")
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(["Retry-After: 1"] if status == HTTPStatus.TOO_MANY_REQUESTS else []),
        *(["Allow: POST"] if status == HTTPStatus.METHOD_NOT_ALLOWED else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body

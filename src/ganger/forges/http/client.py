"""HTTP to one host: deadlines, repeats, limits, a circuit breaker, cached answers, and the token's safety."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import ssl
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urljoin, urlsplit

import httpx

from ganger.core.state.hosts import short_reason
from ganger.errors import ForgeDenied, ForgeError, ForgeLimited, ForgeUnreachable
from ganger.forges.http.limits import Breaker, emptied, limited
from ganger.forges.settings import ForgeAddress, ForgeSettings, is_loopback

MOST_BYTES = 32 * 1024 * 1024
TAIL_BYTES = 4 * 1024 * 1024
MOST_LOG_BYTES = 512 * 1024 * 1024
CACHED_BYTES = 2 * 1024 * 1024
CACHED = 64
REDIRECTS = 3
_CREDENTIALS = re.compile(r"(://)[^/@\s]+@")
_TOKEN = re.compile(r"[\x21-\x7e]*")


@dataclass(slots=True)
class Tally:
    """How many requests one repository has sent."""

    calls: int = 0


@dataclass(frozen=True, slots=True)
class ForgeAsk:
    """One request. `repeats`: it is safe to send twice. `away`: another host, which gets no token, may answer it.
    `tail`: only the end of a long answer is kept. `knocks`: it tests whether the host is back, so it is sent once,
    without waiting for the breaker."""

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: object = None
    repeats: bool = True
    away: bool = False
    tail: bool = False
    knocks: bool = False
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True, slots=True)
class ForgeAnswer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    def json(self) -> object:
        """None if it is not JSON."""
        try:
            found: object = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return found

    @property
    def message(self) -> str:
        """The host's own message, as one short line."""
        found = self.json()
        said = (found.get("message") or found.get("error")) if isinstance(found, dict) else None
        text = said if isinstance(said, str) else json.dumps(said) if said else ""
        return " ".join(text.split())[:300]


class _Trouble(Exception):
    """The host did not answer, or failed. `sent`: it may have carried out the request."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.why = why
        self.sent = sent


def scrub(text: str, token: str) -> str:
    """The text without the token and without the part of an address before its @."""
    clean = text.replace(token, "•••") if token else text
    return _CREDENTIALS.sub(r"\1•••@", clean)


class Client:
    """Shared by all repositories of one host; each call has its own token."""

    def __init__(self, address: ForgeAddress, settings: ForgeSettings) -> None:
        self.address = address
        self._settings = settings
        self._clock = settings.clock
        self._breaker = Breaker(settings.patience)
        self._until: dict[str, float] = {}
        self._cache: OrderedDict[tuple[str, str], tuple[str, ForgeAnswer]] = OrderedDict()
        self._http: httpx.AsyncClient | None = None
        self._recent: deque[float] = deque()
        self._last = ""
        self.calls = 0

    def __repr__(self) -> str:
        return f"Client({self.address.origin})"

    @property
    def per_minute(self) -> int:
        """Requests sent in the last sixty seconds."""
        while self._recent and self._recent[0] <= self._clock.monotonic() - 60:
            self._recent.popleft()
        return len(self._recent)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def send(self, ask: ForgeAsk, authorization: str, token: str) -> ForgeAnswer:
        """Any answer that is neither a failure of the host nor a rate limit. `authorization` is the token's scheme."""
        if _TOKEN.fullmatch(token) is None:
            raise ForgeDenied(
                "the forge's token contains characters that a token cannot have",
                hint="check delivery.token_file and delivery.token_env",
                host=self.address.name,
                way="api",
                why="the token contains invalid characters",
            )
        header = f"{authorization} {token}" if token else ""
        patience, tried = self._settings.patience, 0
        if ask.knocks:
            self._breaker.let_try(self._clock.monotonic())
        while True:
            await self._may_ask(token)
            tried += 1
            try:
                answer = await self._once(ask, header)
            except _Trouble as trouble:
                again = tried < (1 if ask.knocks else patience.tries) and (ask.repeats or not trouble.sent)
                if not again or self._breaker.failures >= patience.trips:
                    raise self._unreachable(trouble.why, token) from None
                await self._settings.sleep(patience.pause(tried))
                continue
            wait = self._limit(answer, token)
            if wait is None:
                return answer
            if tried >= patience.tries:
                raise self._limited(wait)
            await self._rest(wait)

    async def _may_ask(self, token: str) -> None:
        left = self._until.get(_mark(token), 0.0) - self._clock.monotonic()
        if left > 0:
            await self._rest(left)
        wait = self._breaker.wait(self._clock.monotonic())
        if wait > 0:
            raise ForgeUnreachable(
                f"{self.address.name} failed {self._breaker.failures} times in a row; "
                f"it is asked again in {wait:.0f} s",
                hint="check that the forge is up; delivery then continues by itself",
                host=self.address.name,
                way="api",
                why=self._last,
            )

    async def _rest(self, wait: float) -> None:
        if wait > self._settings.patience.most_sec:
            raise self._limited(wait)
        await self._settings.sleep(wait)

    def _limit(self, answer: ForgeAnswer, token: str) -> float | None:
        """Seconds to wait, if this answer is a rate limit."""
        now = self._clock.now()
        wait = limited(answer.status, answer.headers, answer.body, now)
        refused = wait is not None or answer.status == 429
        if refused and wait is None:
            wait = self._settings.patience.first_sec
        pause = wait if refused else emptied(answer.headers, now)
        if pause is not None:
            self._until[_mark(token)] = self._clock.monotonic() + pause
        return wait if refused else None

    def _limited(self, wait: float) -> ForgeLimited:
        return ForgeLimited(
            f"{self.address.name} accepts no more requests for {wait:.0f} s",
            until=self._clock.now() + wait,
            hint="delivery then continues by itself; raise delivery.poll_sec to ask less often",
        )

    def _unreachable(self, why: str, token: str) -> ForgeUnreachable:
        self._last = short_reason(scrub(why, token))
        return ForgeUnreachable(
            scrub(f"{self.address.name} cannot be reached: {why}", token),
            hint="check that the forge is up and that delivery.url is right",
            host=self.address.name,
            way="api",
            why=self._last,
        )

    async def _once(self, ask: ForgeAsk, header: str) -> ForgeAnswer:
        """One try, including redirects."""
        try:
            async with asyncio.timeout(self._settings.call_sec):
                answer = await self._followed(ask, header)
        except (TimeoutError, httpx.TimeoutException) as error:
            never = isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
            raise self._trouble(f"no answer within {self._settings.call_sec:g} s", sent=not never) from None
        except httpx.HTTPError as error:
            never = isinstance(error, httpx.ConnectError)
            raise self._trouble(_reason(error), sent=not never) from None
        except httpx.InvalidURL:
            # The library parses the address of a redirect even if it does not follow it.
            self._breaker.gave_up()
            raise ForgeError(f"{self.address.name} redirects to an invalid address") from None
        except BaseException:
            self._breaker.gave_up()
            raise
        # 503 with Retry-After asks to come later; without it, like all other 5xx, it is a failure.
        busy = answer.status == 503 and "retry-after" in answer.headers
        if answer.status >= 500 and answer.status != 501 and not busy:
            raise self._trouble(f"it answered {answer.status}", sent=answer.status != 503)
        self._breaker.went_well()
        return answer

    def _trouble(self, why: str, *, sent: bool) -> _Trouble:
        self._breaker.failed(self._clock.monotonic())
        return _Trouble(why, sent=sent)

    async def _followed(self, ask: ForgeAsk, header: str) -> ForgeAnswer:
        url = self.address.origin + ask.path
        for step in range(REDIRECTS + 1):
            answer = await self._request(ask, url, header if self._at_home(url) else "", first=step == 0)
            target = answer.headers.get("location", "")
            if answer.status not in (301, 302, 303, 307, 308) or not target or ask.method != "GET":
                return answer
            url = _joined(url, target)
            if not self._at_home(url) and not (ask.away and self._fit_for_logs(url)):
                raise ForgeError(
                    f"{self.address.name} redirects to {urlsplit(url).hostname or 'nowhere'}, which is not followed",
                    hint="set delivery.url to the forge's own address",
                )
        raise ForgeError(f"{self.address.name} redirects in circles", hint="check that delivery.url is right")

    def _at_home(self, url: str) -> bool:
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            return False
        here = self.address
        return (parts.scheme, parts.hostname, port) == (here.scheme, here.host, here.port) and "@" not in parts.netloc

    def _fit_for_logs(self, url: str) -> bool:
        parts = urlsplit(url)
        return parts.scheme == "https" or (
            parts.scheme == "http" and self.address.loopback and is_loopback(parts.hostname or "")
        )

    async def _request(self, ask: ForgeAsk, url: str, header: str, *, first: bool) -> ForgeAnswer:
        headers = {"accept": "*/*" if ask.tail else "application/json", "user-agent": "ganger"}
        if header:
            headers["authorization"] = header
        query = "&".join(f"{name}={value}" for name, value in ask.query.items())
        key = (f"{url}?{query}", _mark(header))
        known = self._cache.get(key) if ask.method == "GET" else None
        if known is not None:
            headers["if-none-match"] = known[0]
        answer = await self._raw(ask, url, headers, first=first)
        if answer.status == 304 and known is not None:
            self._cache.move_to_end(key)
            return ForgeAnswer(known[1].status, known[1].body, answer.headers)
        etag = answer.headers.get("etag", "")
        if ask.method == "GET" and etag and answer.status == 200 and len(answer.body) <= CACHED_BYTES and not ask.tail:
            self._cache[key] = (etag, answer)
            if len(self._cache) > CACHED:
                self._cache.popitem(last=False)
        return answer

    async def _raw(self, ask: ForgeAsk, url: str, headers: dict[str, str], *, first: bool) -> ForgeAnswer:
        self.calls += 1
        ask.tally.calls += 1
        self._recent.append(self._clock.monotonic())
        params = dict(ask.query) if first and ask.query else None
        body = None if ask.body is None else json.dumps(ask.body).encode()
        if body is not None:
            headers["content-type"] = "application/json"
        async with self._open().stream(ask.method, url, params=params, headers=headers, content=body) as response:
            kept = await _read(response, tail=ask.tail)
            return ForgeAnswer(
                response.status_code, kept, {name.lower(): value for name, value in response.headers.items()}
            )

    def _open(self) -> httpx.AsyncClient:
        if self._http is None:
            self._http = httpx.AsyncClient(
                timeout=self._settings.call_sec,
                follow_redirects=False,
                trust_env=False,
                verify=_trust(),
                proxy=self._settings.proxy or None,
                cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._http


def _joined(url: str, target: str) -> str:
    """The target of a redirect; empty if it is not a valid address."""
    try:
        return str(httpx.URL(urljoin(url, target)))
    except (ValueError, httpx.InvalidURL):
        return ""


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that this machine trusts. Reading them takes longer than a request, so all hosts share them."""
    return ssl.create_default_context()


async def _read(response: httpx.Response, *, tail: bool) -> bytes:
    kept, seen = bytearray(), 0
    async for part in response.aiter_bytes():
        seen += len(part)
        kept += part
        if tail and len(kept) > 2 * TAIL_BYTES:
            del kept[:-TAIL_BYTES]
        if seen > (MOST_LOG_BYTES if tail else MOST_BYTES):
            raise ForgeError(f"an answer is larger than {seen >> 20} MB and was not read to its end")
    return bytes(kept[-TAIL_BYTES:]) if tail else bytes(kept)


def _mark(secret: str) -> str:
    """A hash that distinguishes tokens without storing them."""
    return hashlib.sha256(secret.encode()).hexdigest()[:16] if secret else ""


def _reason(error: httpx.HTTPError) -> str:
    """The reason of an error, with the system's message if that is the cause."""
    words, cause = str(error).strip(), error.__cause__ or error.__context__
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror and cause.strerror not in words:
            words = f"{words} ({cause.strerror})"
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {words}" if words else type(error).__name__

"""Settings of an opened forge: its address, repository, token, and limits for calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from ganger.errors import ForgeError
from ganger.ports.clock import Clock


class RealClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a call is tried, how long the pauses are (D12), and when a host is left alone for a while.

    `trips` failures in a row open its breaker for `rest_sec`; each further failure doubles that up to `rest_most_sec`.
    """

    tries: int = 3
    first_sec: float = 5.0
    most_sec: float = 60.0
    trips: int = 5
    rest_sec: float = 30.0
    rest_most_sec: float = 300.0

    def pause(self, tried: int) -> float:
        """Seconds to wait after that many tries."""
        return min(self.most_sec, self.first_sec * 2.0 ** (tried - 1))


def no_token() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class ForgeSettings:
    """`token` is called for each request, so that a renewed file takes effect; its value is never stored or shown.
    `source` is the repository that change requests come from, as owner/name, if it is another one."""

    url: str
    project: str
    token: Callable[[], str] = field(default=no_token, repr=False)
    call_sec: float = 30.0
    clock: Clock = field(default_factory=RealClock, repr=False)
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    patience: Patience = field(default_factory=Patience)
    proxy: str = field(default="", repr=False)
    source: str = ""


@dataclass(frozen=True, slots=True)
class ForgeAddress:
    """A host's address, without credentials. `path` is the prefix of its API, such as `/git`."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def origin(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"https": 443, "http": 80}[self.scheme]
        return f"{self.scheme}://{name}" + ("" if self.port == usual else f":{self.port}")

    @property
    def name(self) -> str:
        """The host as people write it."""
        return self.origin.partition("://")[2]

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_address(url: str) -> ForgeAddress:
    """Without a scheme https is assumed, for this machine http."""
    text = url.strip()
    plain = "://" not in text
    try:
        parts = urlsplit(f"https://{text}" if plain else text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    scheme = "http" if plain and is_loopback(host) else parts.scheme.lower()
    if not host or scheme not in ("http", "https"):
        shown = text.rpartition("@")[2]
        raise ForgeError(f"{shown!r} is not an address of a forge", hint="set delivery.url to https://HOST")
    return ForgeAddress(scheme, host, port or (443 if scheme == "https" else 80), parts.path.rstrip("/"))

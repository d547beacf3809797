"""One repository on one host: calls with its token, and what their refusals mean."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from ganger.errors import ForgeDenied, ForgeError, ForgeUnreachable
from ganger.forges.http.client import Client, ForgeAnswer, ForgeAsk, Tally, scrub
from ganger.forges.settings import ForgeSettings
from ganger.forges.untrusted import Row, number, row, rows, text

MOST_PAGES = 20
# What a forge answers where it does not do what was asked, though it may well do other things.
REFUSED = (403, 404, 405, 409, 412, 413, 422, 423)


@dataclass(frozen=True, slots=True)
class Listed:
    """A list read to its end. `digest` is the SHA-256 of all that was answered."""

    rows: tuple[Row, ...]
    digest: str


def total_of(answer: ForgeAnswer, *, counted: bool = True) -> int:
    """How long the whole list is, where the answer says so; -1: it does not. `counted`: its body may be believed."""
    said = answer.headers.get("x-total-count") or answer.headers.get("x-total") or ""
    if said.isascii() and said.isdigit() and len(said) < 10:
        return int(said)
    return number(row(answer.json()), "total_count", -1) if counted else -1


def at_end(answer: ForgeAnswer, *, seen: int, part: int, size: int, counted: bool = True) -> bool:
    """Whether this page was the last. A server may give fewer rows than it was asked for, so a short page says that
    only where nothing else does."""
    total = total_of(answer, counted=counted)
    return part == 0 or (seen >= total if total >= 0 else part < size)


class Site:
    """`root` is the API's own path; what begins with `R` lies under the repository."""

    def __init__(self, client: Client, settings: ForgeSettings, *, root: str, repo: str, authorization: str) -> None:
        self.client = client
        self.project = settings.project
        self.source = settings.source or settings.project
        self.root = root
        self._repo = repo
        self._token: Callable[[], str] = settings.token
        self._authorization = authorization
        self.tally = Tally()
        self._login: str | None = None

    def __repr__(self) -> str:
        return f"Site({self.client.address.name}, {self.project})"

    @property
    def owner(self) -> str:
        """What stands before the name of a branch that lies in another repository."""
        return "" if self.source.lower() == self.project.lower() else f"{self.source.partition('/')[0]}:"

    @property
    def has_token(self) -> bool:
        return bool(self._read_token())

    def _read_token(self) -> str:
        """What keeps it from being read keeps it from everybody who asks this host; a file may be being renewed."""
        try:
            return self._token().strip()
        except ForgeDenied as denied:
            host, why = self.client.address.name, "the token cannot be read"
            raise ForgeDenied(denied.message, hint=denied.hint, host=host, way="api", why=why) from denied

    async def login(self) -> str:
        """Who the token speaks for; empty where it may not be told. Asked once."""
        if self._login is None and self.has_token:
            answer = await self.get("user", also=(403,))
            found = row(answer.json()) if answer.status != 403 else {}
            self._login = text(found, "login") or text(found, "username")
        return self._login or ""

    async def get(
        self, path: str, query: Mapping[str, str | int] | None = None, also: Collection[int] = ()
    ) -> ForgeAnswer:
        return await self.ask(ForgeAsk("GET", path, query or {}), also=also)

    async def ask(self, ask: ForgeAsk, *, also: Collection[int] = ()) -> ForgeAnswer:
        """An answer of success, or one of `also`; everything else is an error that says what to do."""
        token = self._read_token()
        whole = replace(ask, path=self._path(ask.path), tally=self.tally)
        answer = await self.client.send(whole, self._authorization, token)
        if 200 <= answer.status < 300 or answer.status in also:
            return answer
        raise self._refusal(ask, answer, token)

    async def pages(self, path: str, query: Mapping[str, str | int], under: str = "", size: int = 50) -> Listed | None:
        """Every page of a list; None where there is no such thing (any more)."""
        found: list[Row] = []
        bodies = hashlib.sha256()
        limit = "limit" if "limit" in query else "per_page"
        for page in range(1, MOST_PAGES + 1):
            answer = await self.get(path, {**query, limit: size, "page": page}, also=(404, 410))
            if answer.status in (404, 410):
                return None
            part = self.listed(answer, under)
            bodies.update(answer.body)
            found += part
            if at_end(answer, seen=len(found), part=len(part), size=size):
                break
        return Listed(tuple(found), bodies.hexdigest())

    def listed(self, answer: ForgeAnswer, under: str = "") -> list[Row]:
        """The rows of an answer that must be JSON: a proxy's page of HTML is trouble, not an empty list."""
        value = answer.json()
        if not isinstance(value, dict | list) and answer.body.strip() != b"null":
            raise ForgeUnreachable(
                f"{self.client.address.name} answered with something that is not JSON",
                hint="see whether delivery.url is the forge itself",
            )
        return rows(value, under) if under and isinstance(value, dict) else rows(value)

    def _path(self, path: str) -> str:
        if path.startswith("/"):
            return path
        return self.root + (self._repo + path[1:] if path == "R" or path.startswith("R/") else f"/{path}")

    def _refusal(self, ask: ForgeAsk, answer: ForgeAnswer, token: str) -> ForgeError:
        where = f"{self.client.address.name} ({self.project})"
        said = scrub(answer.message, token)
        told = f": {said}" if said else ""
        if answer.status == 401:
            why = f"refuses the token{told}" if token else f"wants a token{told}"
            return ForgeDenied(
                f"{where} {why}",
                hint="renew what delivery.token_env or delivery.token_file names",
                host=self.client.address.name,
                way="api",
                why=said or "it wants a token",
            )
        if answer.status == 403:
            return ForgeDenied(
                f"{where} does not let the token do {ask.method} {ask.path}{told}",
                hint="give the token the right to read and write the repository",
            )
        if answer.status == 404:
            return ForgeDenied(
                f"{where} has no {ask.path} for this token{told}",
                hint="check delivery.project, that the token may read it, and that CI is switched on there",
                code="FORGE_NOT_FOUND",
            )
        moved = "it has moved: give its new name as delivery.project" if 300 <= answer.status < 400 else ""
        return ForgeError(f"{where} answered {answer.status} to {ask.method} {ask.path}{told}", hint=moved)

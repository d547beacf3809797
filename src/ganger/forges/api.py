"""Calls to one repository on one host, and what it means when the host refuses one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from ganger.errors import ForgeDenied, ForgeError, ForgeUnreachable
from ganger.forges.http.client import Client, ForgeAnswer, ForgeAsk, Tally, scrub
from ganger.forges.settings import ForgeSettings
from ganger.forges.untrusted import Row, number, row, rows, text

MOST_PAGES = 20
# A forge answers with one of these if it declines this request; other requests may still succeed.
REFUSED = (403, 404, 405, 409, 412, 413, 422, 423)


@dataclass(frozen=True, slots=True)
class Listed:
    """A complete list. `digest` is the SHA-256 of all answers."""

    rows: tuple[Row, ...]
    digest: str


def total_of(answer: ForgeAnswer, *, counted: bool = True) -> int:
    """The length of the whole list, or -1 if the answer does not tell. `counted`: the body's own count is reliable."""
    said = answer.headers.get("x-total-count") or answer.headers.get("x-total") or ""
    if said.isascii() and said.isdigit() and len(said) < 10:
        return int(said)
    return number(row(answer.json()), "total_count", -1) if counted else -1


def at_end(answer: ForgeAnswer, *, seen: int, part: int, size: int, counted: bool = True) -> bool:
    """Whether this page is the last. A server may give fewer rows than requested, so a short page counts as the last
    only if there is no total."""
    total = total_of(answer, counted=counted)
    return part == 0 or (seen >= total if total >= 0 else part < size)


class Site:
    """`root` is the path of the API; a path that begins with `R` is below the repository."""

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
        """The prefix of a branch name if the branch is in another repository."""
        return "" if self.source.lower() == self.project.lower() else f"{self.source.partition('/')[0]}:"

    def page(self, link: str) -> str:
        """The address of a page that people open; older releases answer with its path alone."""
        return self.client.address.origin + link if link.startswith("/") and not link.startswith("//") else link

    @property
    def has_token(self) -> bool:
        return bool(self._read_token())

    def _read_token(self) -> str:
        """An unreadable token stops every request to this host for now; its file may be about to be replaced."""
        try:
            return self._token().strip()
        except ForgeDenied as denied:
            host, why = self.client.address.name, "the token cannot be read"
            raise ForgeDenied(denied.message, hint=denied.hint, host=host, way="api", why=why) from denied

    async def login(self) -> str:
        """The token's user, asked for once; empty if the token may not read it."""
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
        """Returns a success or a status in `also`; raises an error with the next step for all others."""
        token = self._read_token()
        whole = replace(ask, path=self._path(ask.path), tally=self.tally)
        answer = await self.client.send(whole, self._authorization, token)
        if 200 <= answer.status < 300 or answer.status in also:
            return answer
        raise self._refusal(ask, answer, token)

    async def pages(self, path: str, query: Mapping[str, str | int], under: str = "", size: int = 50) -> Listed | None:
        """All pages of a list; None if it does not exist (any more)."""
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
        """The rows of an answer that must be JSON: an HTML page of a proxy is an error, not an empty list."""
        value = answer.json()
        if not isinstance(value, dict | list) and answer.body.strip() != b"null":
            raise ForgeUnreachable(
                f"{self.client.address.name} answered with something that is not JSON",
                hint="check that delivery.url is the forge's own address",
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
            why = f"refuses the token{told}" if token else f"requires a token{told}"
            return ForgeDenied(
                f"{where} {why}",
                hint="renew the token that delivery.token_env or delivery.token_file names",
                host=self.client.address.name,
                way="api",
                why=said or "it requires a token",
            )
        if answer.status == 403:
            return ForgeDenied(
                f"{where} does not let the token do {ask.method} {ask.path}{told}",
                hint="allow the token to read and write the repository",
            )
        if answer.status == 404:
            return ForgeDenied(
                f"{where} has no {ask.path} for this token{told}",
                hint="check that delivery.project is right, that the token may read it, and that CI is enabled there",
                code="FORGE_NOT_FOUND",
            )
        moved = "the repository has moved: set delivery.project to its new name" if 300 <= answer.status < 400 else ""
        return ForgeError(f"{where} answered {answer.status} to {ask.method} {ask.path}{told}", hint=moved)

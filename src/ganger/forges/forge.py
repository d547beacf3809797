"""A forge opened for one repository: the port, made of its CI reader and its change requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ganger.core.delivery.branch_rules import BranchRules
from ganger.core.delivery.forge_reviews import Review
from ganger.core.model.ci import JobFact, RunFact
from ganger.forges.api import Site
from ganger.forges.ci.reader import CiReader
from ganger.forges.http.client import ForgeAsk
from ganger.forges.http.hosts import Hosts
from ganger.forges.untrusted import row, text
from ganger.ports.forge import Greeting, MergeAnswer, MergeRules, NewRequest, QueueLook, Request


class Requests(Protocol):
    async def find(self, branch: str, into: str) -> Request | None: ...

    async def open(self, new: NewRequest) -> Request: ...

    async def update(self, request: Request, new: NewRequest) -> None: ...

    async def ready(self, request: Request) -> None: ...

    async def reviews(self, request: Request) -> Sequence[Review]: ...

    async def remark(self, request: Request, mark: str, words: str) -> str: ...

    async def branch_rules(self, branch: str) -> BranchRules: ...

    async def rules(self, into: str) -> MergeRules: ...

    async def merge(self, request: Request, head: str, method: str) -> MergeAnswer: ...

    async def enqueue(self, request: Request, head: str) -> MergeAnswer: ...

    async def queued(self, request: Request) -> QueueLook: ...


class Opened:
    """`meet` asks once for the release, if that matters, and returns its name and the CI reader for it. `version` asks
    for the name alone, if it does not."""

    def __init__(
        self,
        kind: str,
        site: Site,
        requests: Requests,
        meet: Callable[[], Awaitable[tuple[str, CiReader]]],
        version: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._kind = kind
        self._site = site
        self._requests = requests
        self._meet = meet
        self._version = version
        self._met: tuple[str, CiReader] | None = None
        self.hosts: Hosts | None = None

    def __repr__(self) -> str:
        return f"Opened({self.name}, {self._site.project})"

    @property
    def name(self) -> str:
        return f"{self._kind} at {self._site.client.address.name}"

    @property
    def host(self) -> str:
        return self._site.client.address.name

    @property
    def calls(self) -> int:
        return self._site.tally.calls

    async def greet(self) -> Greeting:
        version, reader = await self._reader()
        if self._version is not None:
            version = await self._version()
        user, notes = await self._user()
        return Greeting(self.name, version, user, (*notes, *reader.notes))

    async def knock(self) -> None:
        path = "user" if self._site.has_token else "R"
        await self._site.ask(ForgeAsk("GET", path, knocks=True), also=(403, 404))

    async def _user(self) -> tuple[str, tuple[str, ...]]:
        if not self._site.has_token:
            return "", ("there is no token: Ganger can read public data only, and write nothing",)
        answer = await self._site.get("user", also=(403,))
        if answer.status == 403:
            # Tokens of apps, and tokens that may not read their owner, may still work for the repository.
            await self._site.get("R")
            return "", ("the token may not read its own user; it can read the repository",)
        found = row(answer.json())
        return text(found, "login") or text(found, "username"), ()

    async def _reader(self) -> tuple[str, CiReader]:
        if self._met is None:
            self._met = await self._meet()
        return self._met

    async def runs(self, shas: Sequence[str]) -> Sequence[RunFact]:
        _, reader = await self._reader()
        return await reader.runs(shas)

    async def jobs(self, run: RunFact) -> RunFact:
        _, reader = await self._reader()
        return await reader.jobs(run)

    async def log(self, run: RunFact, job: JobFact) -> str:
        _, reader = await self._reader()
        return await reader.log(run, job)

    async def rerun(self, run: RunFact) -> bool:
        _, reader = await self._reader()
        return await reader.rerun(run)

    async def cancel(self, run: RunFact) -> bool:
        _, reader = await self._reader()
        return await reader.cancel(run)

    async def find_request(self, branch: str, into: str) -> Request | None:
        return await self._requests.find(branch, into)

    async def open_request(self, new: NewRequest) -> Request:
        return await self._requests.open(new)

    async def ready(self, request: Request) -> None:
        await self._requests.ready(request)

    async def update_request(self, request: Request, new: NewRequest) -> None:
        await self._requests.update(request, new)

    async def reviews(self, request: Request) -> Sequence[Review]:
        return await self._requests.reviews(request)

    async def remark(self, request: Request, mark: str, words: str) -> str:
        return await self._requests.remark(request, mark, words)

    async def branch_rules(self, branch: str) -> BranchRules:
        return await self._requests.branch_rules(branch)

    async def merge_rules(self, into: str) -> MergeRules:
        return await self._requests.rules(into)

    async def merge(self, request: Request, head: str, method: str = "merge") -> MergeAnswer:
        return await self._requests.merge(request, head, method)

    async def enqueue(self, request: Request, head: str) -> MergeAnswer:
        return await self._requests.enqueue(request, head)

    async def queued(self, request: Request) -> QueueLook:
        return await self._requests.queued(request)

    async def close(self) -> None:
        hosts, self.hosts = self.hosts, None
        if hosts is not None:
            await hosts.give_back(self._site.client)

"""The runs of a repository, one page per call, matched to commits by the full SHA alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ganger.core.model.ci import OVER, RunFact, is_sha
from ganger.forges.api import Site, total_of
from ganger.forges.http.client import ForgeAnswer
from ganger.forges.untrusted import Row

MOST_PAGES = 20
BY_NAME = 0


class PageOrder:
    """`backwards`: the server lists the oldest first, so the newest rows are on the last page."""

    def __init__(self, *, backwards: bool = False) -> None:
        self._backwards = backwards
        self._pages = 1
        self._newest_next = True
        self._deep = 1

    @property
    def newest(self) -> int:
        return self._pages if self._backwards else 1

    def next(self) -> int:
        """The page to read next; BY_NAME after the last one: then one commit is asked for by its SHA."""
        if self._newest_next or self._pages <= 1:
            self._newest_next = False
            return self.newest
        self._newest_next = True
        if self._deep >= min(self._pages, MOST_PAGES):
            self._deep = 1
            return BY_NAME
        self._deep += 1
        return self._pages + 1 - self._deep if self._backwards else self._deep

    def read(self, page: int, *, pages: int, enough: bool) -> None:
        """Notes the list's length. `enough`: the newest page had everything that is awaited."""
        known = max(1, pages)
        if enough and page == (known if self._backwards else 1):
            self._deep, self._newest_next = 1, True
        self._pages = known


_ID = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class ListCall:
    """How a forge lists runs. `read` turns a row into a run, or None if the row is not credible."""

    path: str
    sha_name: str
    read: Callable[[Row], RunFact | None]
    under: str = "workflow_runs"
    size: int = 50
    size_name: str = "limit"
    more: Mapping[str, str | int] = field(default_factory=dict)
    backwards: bool = False


class RunList:
    def __init__(self, site: Site, call: ListCall) -> None:
        self._site = site
        self._call = call
        self._turns = PageOrder(backwards=call.backwards)
        self._open: dict[str, str] = {}
        self._unseen: list[str] = []
        self._size = call.size

    async def of(self, shas: Sequence[str]) -> list[RunFact]:
        wanted = {sha for sha in shas if is_sha(sha)}
        if not wanted:
            return []
        if len(wanted) == 1:
            return await self._filtered(min(wanted), wanted)
        page = self._turns.next()
        if page == BY_NAME:
            return await self._filtered(self._next_unseen(wanted), wanted)
        answer = await self._page(page, {})
        listed = self._site.listed(answer, self._call.under)
        found = self._matched(listed, wanted)
        last = self._call.read(listed[-1]) if listed else None
        cut = last is not None and last.sha in wanted
        self._turns.read(
            page, pages=self._pages(answer, page, len(listed)), enough=not cut and self._saw(found, wanted)
        )
        return found

    async def _filtered(self, sha: str, wanted: set[str]) -> list[RunFact]:
        answer = await self._page(1, {self._call.sha_name: sha})
        return self._matched(self._site.listed(answer, self._call.under), wanted)

    async def _page(self, page: int, more: Mapping[str, str | int]) -> ForgeAnswer:
        query = {**self._call.more, **more, self._call.size_name: self._call.size, "page": page}
        return await self._site.get(self._call.path, query)

    def _matched(self, listed: Sequence[Row], wanted: set[str]) -> list[RunFact]:
        read = (self._call.read(entry) for entry in listed)
        found = [run for run in read if run is not None and run.sha in wanted and _ID.fullmatch(run.id)]
        for run in found:
            if run.word in OVER:
                self._open.pop(run.id, None)
            else:
                self._open[run.id] = run.sha
        return found

    def _saw(self, found: Sequence[RunFact], wanted: set[str]) -> bool:
        """Whether this page has a run of every commit, and every run in progress."""
        self._open = {run: sha for run, sha in self._open.items() if sha in wanted}
        self._unseen = sorted(wanted - {run.sha for run in found})
        return not self._unseen and self._open.keys() <= {run.id for run in found}

    def _next_unseen(self, wanted: set[str]) -> str:
        waiting = [sha for sha in self._unseen if sha in wanted] or sorted(wanted)
        self._unseen = waiting[1:] + waiting[:1]
        return waiting[0]

    def _pages(self, answer: ForgeAnswer, page: int, rows: int) -> int:
        total = total_of(answer)
        if total < 0:
            return page + 1 if rows >= self._call.size else page
        if page == 1 and 0 < rows < min(total, self._call.size):
            # The server gives fewer rows than requested.
            self._size = rows
        return -(-total // self._size)

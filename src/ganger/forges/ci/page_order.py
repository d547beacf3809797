"""Which page of a long list is read next: the newest every second time, the older ones by turns in between."""

from __future__ import annotations

MOST_PAGES = 20
BY_NAME = 0


class Turns:
    """`backwards`: the server gives the oldest first, so the newest rows are on its last page."""

    def __init__(self, *, backwards: bool = False) -> None:
        self._backwards = backwards
        self._pages = 1
        self._newest_next = True
        self._deep = 1

    @property
    def newest(self) -> int:
        return self._pages if self._backwards else 1

    def next(self) -> int:
        """The page to read now, or BY_NAME: after the last one it is time to ask for one row by its name."""
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
        """What a page said of the list's length. `enough`: all that is waited for was on the newest page."""
        known = max(1, pages)
        if enough and page == (known if self._backwards else 1):
            self._deep, self._newest_next = 1, True
        self._pages = known

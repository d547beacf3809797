"""Notices through the library apprise: mail, chat and a hundred other services, each by its own address."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Sequence
from typing import Any

from ganger.notices.notice import NotDelivered, Notice


def has_apprise() -> bool:
    return importlib.util.find_spec("apprise") is not None


class AppriseWay:
    """The channel's name; addresses may hold secrets, so none is shown."""

    name = "notify.urls"

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = tuple(urls)
        self._sender: Any = None
        self._unknown: list[str] = []

    def hurry(self) -> None:
        """Does nothing: the library has its own time limits."""

    def deliver(self, notice: Notice) -> None:
        if self._sender is None:
            self._sender = self._made()
        reached = self._sender.notify(title=notice.title, body=notice.text or notice.event)
        if self._unknown:
            raise NotDelivered(f"apprise does not understand {', '.join(self._unknown)}")
        if not reached:
            raise NotDelivered("apprise could not deliver it to every address")

    def _made(self) -> Any:
        try:
            library = importlib.import_module("apprise")
        except ImportError as error:
            raise NotDelivered("the library apprise is missing: pip install 'ganger[notify]'") from error
        # It logs addresses.
        logging.getLogger("apprise").setLevel(logging.CRITICAL)
        sender = library.Apprise()
        self._unknown = [f"urls[{number}]" for number, url in enumerate(self._urls) if not sender.add(url)]
        return sender

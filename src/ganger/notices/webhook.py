"""Notices to a web address: the event as JSON in a POST."""

from __future__ import annotations

import urllib.error
import urllib.parse
import urllib.request

from ganger.notices.notice import NotDelivered, Notice

_TIMEOUT_SEC = 10.0


class WebhookWay:
    """The channel's name; the address may hold a secret, so only its host is shown."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def name(self) -> str:
        return f"webhook {urllib.parse.urlsplit(self._url).hostname or ''}"

    def hurry(self) -> None:
        """Does nothing: a request ends at its time limit."""

    def deliver(self, notice: Notice) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "ganger"}
        if urllib.parse.urlsplit(self._url).scheme not in ("http", "https"):
            raise NotDelivered("is not an http:// or https:// address")
        try:
            request = urllib.request.Request(self._url, notice.json, headers, method="POST")  # noqa: S310
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SEC) as answer:  # noqa: S310
                answer.read(1000)
        except urllib.error.HTTPError as error:
            error.close()
            raise NotDelivered(f"answered {error.code}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise NotDelivered(
                f"cannot be reached: {getattr(reason, 'strerror', None) or type(reason).__name__}"
            ) from error

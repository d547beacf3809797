"""Ganger's comment on a change request: found by its mark and updated, so that there is only one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ganger.forges.api import REFUSED, Site
from ganger.forges.http.client import ForgeAsk
from ganger.forges.untrusted import Row, row, text


@dataclass(frozen=True, slots=True)
class Comments:
    """Where a forge keeps the comments of one request. `one` is the path of a single comment, before its number."""

    listed: str
    one: str
    size_name: str
    method: str = "PATCH"


async def keep_one(site: Site, at: Comments, mark: str, words: str) -> Row | None:
    """The current comment; None if the forge accepts none. Looks first: an earlier lead may have written it and died
    before it recorded that."""
    found = await _own(site, at, mark)
    if found is not None and text(found, "body") == words:
        return found
    body = {"body": words}
    if found is not None:
        answer = await site.ask(ForgeAsk(at.method, f"{at.one}/{text(found, 'id')}", body=body), also=REFUSED)
    else:
        answer = await site.ask(ForgeAsk("POST", at.listed, body=body, repeats=False), also=REFUSED)
    return row(answer.json()) if answer.status not in REFUSED else None


async def _own(site: Site, at: Comments, mark: str) -> Row | None:
    """The oldest comment with the mark; another user's comment that quotes the mark is not touched."""
    me = await site.login()
    listed = await site.pages(at.listed, {at.size_name: 50})
    rows: Sequence[Row] = listed.rows if listed is not None else ()
    return next((found for found in rows if mark in text(found, "body") and _is_by(found, me)), None)


def _is_by(found: Row, me: str) -> bool:
    by = text(found, "user", "login") or text(found, "author", "username")
    return not me or by == me

"""Labels and milestones of Forgejo and Gitea, which number them and allow two of the same name."""

from __future__ import annotations

import asyncio

from ganger.forges.api import REFUSED, Site
from ganger.forges.http.client import ForgeAsk
from ganger.forges.untrusted import number, row, text

COLOUR = "#8a8f98"


class Labels:
    """Created once, even if several requests need the same one at the same time: they wait for each other. If another
    program creates it too, the older one is used."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._turn = asyncio.Lock()

    async def numbers(self, names: tuple[str, ...]) -> list[int]:
        """A label that the token may not create is left out: that must not stop a delivery."""
        if not names:
            return []
        async with self._turn:
            known = await self._known()
            for name in names:
                if name not in known and (made := await self._make(name)):
                    known = await self._known()
                    if known.setdefault(name, made) != made:
                        await self._site.ask(ForgeAsk("DELETE", f"R/labels/{made}"), also=REFUSED)
        return [known[name] for name in names if known.get(name)]

    async def _known(self) -> dict[str, int]:
        listed = await self._site.pages("R/labels", {"limit": 50})
        found: dict[str, int] = {}
        for one in listed.rows if listed is not None else ():
            name, value = text(one, "name"), number(one, "id")
            found[name] = min(found.get(name, value), value)
        return found

    async def _make(self, name: str) -> int:
        made = ForgeAsk("POST", "R/labels", body={"name": name, "color": COLOUR}, repeats=False)
        answer = await self._site.ask(made, also=REFUSED)
        return number(row(answer.json()), "id") if answer.status not in REFUSED else 0


async def milestone_number(site: Site, title: str, under: str = "id") -> int:
    """0 if there is no open one of that name."""
    if not title:
        return 0
    size = "limit" if under == "id" else "per_page"
    listed = await site.pages("R/milestones", {"state": "open", size: 50})
    rows = listed.rows if listed is not None else ()
    return next((number(found, under) for found in rows if text(found, "title") == title), 0)

"""The release of a Forgejo or Gitea server."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ganger.forges.api import Site
from ganger.forges.untrusted import row, text

_NUMBERS = re.compile(r"v?(\d+)(?:\.(\d+))?")
# A server that does not tell its release counts as the newest: a call it lacks is then an error, never a verdict.
NEWEST = 10_000


@dataclass(frozen=True, slots=True)
class Version:
    text: str
    major: int
    minor: int
    gitea: bool

    @property
    def pair(self) -> tuple[int, int]:
        return self.major, self.minor


def parse_version(said: str) -> Version:
    """Forgejo writes `16.0.1+gitea-1.22.0`, Gitea `1.25.5`."""
    found = _NUMBERS.match(said.strip())
    if found is None or len(found[1]) > 6 or len(found[2] or "") > 6:
        return Version(said, NEWEST, 0, gitea=False)
    major, minor = int(found[1]), int(found[2] or 0)
    return Version(said, major, minor, gitea=major == 1 and "gitea-" not in said and "forgejo" not in said)


async def read_version(site: Site) -> Version:
    answer = await site.get("version")
    site.listed(answer)
    return parse_version(text(row(answer.json()), "version"))

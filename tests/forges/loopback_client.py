"""What asks the loopback forge as each flavour wants it."""

from __future__ import annotations

from typing import Any

import httpx

from tests.forges.loopback.flavour import PROJECT
from tests.forges.loopback.ground import Ground
from tests.forges.loopback.server import FLAVOURS, TOKEN, LoopbackForge

WITH_JOBS = [name for name in FLAVOURS if name not in ("forgejo-13", "forgejo-11")]


def push(ground: Ground, name: str = "a.txt", branch: str = "main") -> str:
    return ground.commit(branch, name, name)


class Client:
    """Asks as each flavour wants it."""

    def __init__(self, flavour: str, forge: LoopbackForge) -> None:
        self.flavour = flavour
        self.lab, self.hub = flavour == "gitlab", flavour == "github"
        base = "/api/v4" if self.lab else "/api/v3" if self.hub else "/api/v1"
        project = f"/projects/{PROJECT.replace('/', '%2F')}" if self.lab else f"/repos/{PROJECT}"
        self.http = httpx.Client(base_url=forge.url + base, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10)
        self.repo = project

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def runs(self, sha: str) -> list[Any]:
        query = {"sha": sha} if self.lab else {"head_sha": sha}
        found = self.http.get(f"{self.repo}/{'pipelines' if self.lab else 'actions/runs'}", params=query).json()
        return found if self.lab else found["workflow_runs"] or []

    def jobs(self, run: Any) -> dict[str, str]:
        where = f"pipelines/{run['id']}/jobs" if self.lab else f"actions/runs/{run['id']}/jobs"
        found = self.http.get(f"{self.repo}/{where}").json()
        rows = found["jobs"] if isinstance(found, dict) else found
        return {row["name"]: row.get("conclusion") or row["status"] for row in rows}

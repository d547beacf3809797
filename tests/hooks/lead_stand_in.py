"""A lead as sessions see it: the real endpoint of a run, answered by a few lines, and claims that point to it."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from types import TracebackType

from ganger.endpoint.server import ReportServer
from ganger.ports.endpoint import Reply, WorkerCall

TOKEN = "w1.1.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


class StandIn:
    """Has one task for whoever asks, and answers all else with `status`; `heard` are the verbs."""

    def __init__(self, project: Path, status: int = 200) -> None:
        self.project, self.status = project, status
        self.run = project / ".ganger" / "r1"
        (self.run / "workers").mkdir(parents=True, exist_ok=True)
        (self.run / "desk").mkdir(exist_ok=True)
        (project / "ganger.toml").touch()
        (self.run / "ganger.db").touch()
        (self.run / "worker.key").write_text("ab" * 32)
        self.heard: list[str] = []
        self._server = ReportServer(self.run)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> StandIn:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._server.open(self._handle), self._loop).result(10)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _handle(self, request: WorkerCall) -> Reply:
        self.heard.append(request.verb)
        if request.verb == "next":
            return Reply(200, self._given())
        ok = request.token == TOKEN and self.status == 200
        return Reply(self.status if request.token == TOKEN else 401, {"ok": ok, "messages": 0, "latest": 0})

    def _given(self) -> dict[str, object]:
        task = {"id": "T1", "attempt": 1, "role": "worker", "prompt": "Do it.", "workspace": str(self.project)}
        desk, report = str(self.run / "desk"), str(self._server.socket)
        return {"ok": True, "task": task, "token": TOKEN, "report": report, "url": "", "desk": desk, "worker": "ada"}

    def claim(self, worker: str = "ada", *, by_url: bool = False, **more: object) -> Path:
        """What `ganger worker next` leaves behind."""
        claim = {
            "worker": worker, "session": "s-1", "task_id": "T1", "attempt": 1, "token": TOKEN, "reported": False,
            "report": self._server.url if by_url else str(self._server.socket), "desk": str(self.run / "desk"),
            "done": False, **more,
        }  # fmt: skip
        path = self.run / "workers" / f"{worker}.json"
        path.write_text(json.dumps(claim))
        return path


def moved_on(path: Path) -> None:
    """A trace of work."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))

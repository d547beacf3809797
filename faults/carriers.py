"""The ways by which a session that somebody opened asks for tasks and speaks of them: each as real ones do it.

Socket and loopback HTTP through the worker's own client, `ganger worker` as processes, an MCP client library, plain
files. Whoever has a spool uses it; who has none says the same thing again until it is answered.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import ganger.worker
from ganger.worker.errors import Away, WorkerError
from ganger.worker.find_run import RunAddress
from ganger.worker.http import call
from ganger.worker.identity import WorkerIdentity
from ganger.worker.sending import deliver, tell, waits

_PROGRAM = Path(ganger.worker.__file__).with_name("__main__.py")
_WAIT_SEC = 2.0
_ANSWER_SEC = 20.0
_LOOK_SEC = 0.02
_OPTIONS = {"step": "--step", "percent": "--percent", "summary": "--summary", "done": "--done"}
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """A task that was given."""

    task: str
    attempt: int
    workspace: Path
    token: str
    report: str
    desk: str

    @classmethod
    def of(cls, reply: Body) -> Held:
        task = reply["task"]
        return cls(task["id"], task["attempt"], Path(task["workspace"]), reply["token"], reply["report"], reply["desk"])


@dataclass(frozen=True, slots=True)
class Said:
    """What became of something said: `taken`, `kept` or `refused` with the code of the refusal."""

    what: str
    why: str = ""


class Carrier(Protocol):
    def next(self) -> Held | None:
        """None: there is no task at this moment; raises Away where nobody leads."""

    def say(self, held: Held, verb: str, body: Body) -> Said: ...

    def settle(self, held: Held) -> None:
        """Waits until nothing of what was kept is left."""


class Socket:
    """The worker's own client, in this process."""

    def __init__(self, folder: Path, worker: str, *, http: bool) -> None:
        self._folder, self._worker, self._http = folder, worker, http
        self._asked = ""

    def next(self) -> Held | None:
        """A question whose answer was lost is asked again under its own name."""
        self._asked = self._asked or os.urandom(8).hex()
        door = RunAddress(str(self._folder))
        address = self._url() if self._http else door.address
        body = {"id": self._asked, "worker": self._worker, "wait_sec": _WAIT_SEC}
        answer = call(address, door.token, "/v1/next", body, _ANSWER_SEC)
        self._asked = ""
        return Held.of(answer.body) if answer.body.get("task") else None

    def _url(self) -> str:
        try:
            return str(json.loads((self._folder / "worker.json").read_text())["url"])
        except (OSError, ValueError) as error:
            raise Away(str(error)) from error

    def _post(self, held: Held) -> WorkerIdentity:
        return WorkerIdentity(held.token, self._url() if self._http else held.report, held.desk, held.task)

    def say(self, held: Held, verb: str, body: Body) -> Said:
        if verb == "heartbeat":
            answer = call(self._post(held).report, held.token, "/v1/heartbeat", body, _ANSWER_SEC)
            return Said("taken") if answer.taken else Said("refused", str(answer.body.get("code")))
        outcome = tell(self._post(held), verb, body)
        if outcome.answer is not None:
            return Said("taken") if outcome.answer.taken else Said("refused", str(outcome.answer.body.get("code")))
        return Said("kept" if outcome.kept else "gone")

    def settle(self, held: Held) -> None:
        while waits(self._post(held)):
            with suppress(Away):
                deliver(self._post(held))
            time.sleep(_LOOK_SEC)


class Program:
    """`ganger worker` as a shell script calls it."""

    def __init__(self, root: Path, worker: str, scratch: Path) -> None:
        self._root, self._worker, self._scratch = root, worker, scratch

    def next(self) -> Held | None:
        code, reply = self._call("next", "--wait", str(_WAIT_SEC))
        if reply.get("task"):
            return Held.of(reply)
        if code and "task" not in reply:
            raise Away(str(reply.get("error")))
        return None

    def _call(self, verb: str, *words: str) -> tuple[int, Body]:
        argv = [sys.executable, "-I", "-S", str(_PROGRAM), verb, *words]
        who = ("--json", "--worker", self._worker, "--project", str(self._root))
        names = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_STATE_HOME") if name in os.environ}
        done = subprocess.run([*argv, *who], env=names, capture_output=True, text=True, timeout=120, check=False)
        if "Traceback" in done.stderr:
            raise RuntimeError(done.stderr)
        return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}

    def say(self, held: Held, verb: str, body: Body) -> Said:
        code, reply = self._call(verb, *self._words(verb, body))
        if code == 0:
            return Said("kept" if reply.get("kept") else "taken")
        error = reply.get("error") or {}
        if error.get("code") == "LEAD_AWAY":
            raise Away(str(error.get("message")))
        return Said("refused", str(error.get("code")))

    def _words(self, verb: str, body: Body) -> list[str]:
        if verb == "report":
            file = self._scratch / f"{self._worker}.result.json"
            file.write_text(json.dumps(body["result"]))
            return [str(file)]
        words = [body["name"]] if verb == "milestone" else ["--leave"] if body.get("leave") else []
        for name, value in body.items():
            if name in _OPTIONS:
                for each in value if isinstance(value, list) else [value]:
                    words += [_OPTIONS[name], str(each)]
        return words

    def settle(self, held: Held) -> None:
        spool = Path(held.desk) / "spool"
        while spool.is_dir() and list(spool.glob("*.json")):
            self._call("heartbeat")
            time.sleep(_LOOK_SEC)


class Mcp:
    """A client library that knows nothing of Ganger; one connection per call, as many hosts do."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder, self._worker = folder, worker

    def next(self) -> Held | None:
        reply = self._call(RunAddress(str(self._folder)).token, "next", {"worker": self._worker, "wait_sec": _WAIT_SEC})
        return Held.of(reply) if reply.get("task") else None

    def _call(self, token: str, verb: str, body: Body) -> Body:
        try:
            url = str(json.loads((self._folder / "worker.json").read_text())["url"])
            return asyncio.run(asyncio.wait_for(_tool(url, token, verb, body), _ANSWER_SEC))
        except Exception as error:
            # Whatever the library makes of a server that dies: it is to be tried again.
            raise Away(repr(error)) from error

    def say(self, held: Held, verb: str, body: Body) -> Said:
        reply = self._call(held.token, verb, body)
        return Said("taken") if reply.get("ok") else Said("refused", str(reply.get("code")))

    def settle(self, held: Held) -> None:
        """It keeps nothing."""


async def _tool(url: str, token: str, verb: str, body: Body) -> Body:
    import httpx2
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=_ANSWER_SEC) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            answer = await client.call_tool(verb, body)
            return dict(answer.structured_content or {})


class Files:
    """A session that can only write files. Nobody answers it: its task is done when its desk is gone."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._counter, self._worker = folder / "counter", worker

    def next(self) -> Held | None:
        asked, brief = (self._counter / f"{name}-{self._worker}.json" for name in ("next", "brief"))
        if not asked.exists():
            # The answer to the last question lies there until the next one is asked.
            with suppress(FileNotFoundError):
                if (reply := _json(brief)) is not None and reply.get("task"):
                    brief.unlink()
                    return Held.of(reply)
            if not self._counter.is_dir():
                raise Away("there is no counter yet")
            _put(asked, {"worker_id": self._worker})
        _until(lambda: not asked.exists(), _WAIT_SEC)
        return None

    def say(self, held: Held, verb: str, body: Body) -> Said:
        if verb == "milestone":
            return Said("gone", "no file means that")
        content = body["result"] if verb == "report" else {key: body[key] for key in body if key != "id"}
        try:
            _put(Path(held.desk) / f"{'result' if verb == 'report' else verb}.json", content)
        except FileNotFoundError:
            return Said("refused", "ATTEMPT_OVER")
        return Said("kept")

    def settle(self, held: Held) -> None:
        """Until its desk is cleared away."""
        while Path(held.desk).is_dir():
            time.sleep(_LOOK_SEC)


def _json(file: Path) -> Body | None:
    found = json.loads(file.read_text())
    return found if isinstance(found, dict) else None


def _put(file: Path, content: Body) -> None:
    fresh = file.with_name(f".{file.name}.tmp")
    fresh.write_text(json.dumps(content))
    fresh.rename(file)


def _until(happened: Callable[[], bool], within_sec: float) -> None:
    end = time.monotonic() + within_sec
    while not happened() and time.monotonic() < end:
        time.sleep(_LOOK_SEC)


__all__ = ["Away", "Carrier", "Files", "Held", "Mcp", "Program", "Said", "Socket", "WorkerError"]

"""The worker's side against the endpoint as it is: both carriers, and MCP with a client that is not ours."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters, stdio_client
from mcp.client import Client

from ganger.contracts.worker import VERBS
from ganger.endpoint.server import ReportServer
from ganger.ports.endpoint import Reply, WorkerCall
from tests.worker.little_lead import KEY, ROOM, TOKEN

JOIN = "j1." + hmac.new(bytes.fromhex(KEY), b"join", hashlib.sha256).hexdigest()[:40]
MODES = ["legacy", "auto", "2026-07-28"]
Body = dict[str, Any]


@dataclass
class Scene:
    """A project with one run, the endpoint of its lead, and what that heard."""

    root: Path
    heard: list[WorkerCall] = field(default_factory=list)
    busy: bool = False
    server: ReportServer | None = None

    @property
    def folder(self) -> Path:
        return self.root / ".ganger" / "night"

    @property
    def desk(self) -> Path:
        return self.folder / "desks" / "one.1"

    def make(self) -> None:
        self.desk.mkdir(parents=True)
        (self.root / "ganger.toml").touch()
        (self.folder / "ganger.db").touch()
        (self.folder / "worker.key").write_text(KEY)

    async def hear(self, request: WorkerCall) -> Reply:
        if self.busy:
            return Reply(503, {"ok": False, "code": "LEAD_BUSY", "message": "later", "hint": ""})
        if request.token not in (TOKEN, JOIN):
            return Reply(401, {"ok": False, "code": "WORKER_UNKNOWN", "message": "nobody", "hint": ""})
        self.heard.append(request)
        if request.verb != "next":
            return Reply(200, {"ok": True, "messages": 0, "latest": 0})
        task = {"id": "one", "attempt": 1, "role": "worker", "prompt": "p", "workspace": str(self.root)}
        place = {"report": str(self.server.socket) if self.server else "", "url": "", "desk": str(self.desk)}
        body = request.body if isinstance(request.body, dict) else {}
        return Reply(200, {"ok": True, "task": task, "token": TOKEN, **place, "worker": body.get("worker", "")})

    @asynccontextmanager
    async def led(self) -> AsyncIterator[ReportServer]:
        self.server = ReportServer(self.folder, peers=frozenset())
        await self.server.open(self.hear)
        try:
            yield self.server
        finally:
            await self.server.close()
            with suppress(OSError):
                self.server.socket.parent.rmdir()

    def environ(self, **more: str) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], **more}

    async def say(self, *words: str, **environ: str) -> tuple[int, str]:
        argv = [sys.executable, "-I", "-S", str(ROOM / "__main__.py"), *words]
        call = await asyncio.create_subprocess_exec(
            *argv, cwd=self.root, env=self.environ(**environ), stdout=-1, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await call.communicate()
        return call.returncode or 0, out.decode()

    @asynccontextmanager
    async def client(self, mode: str = "legacy", **environ: str) -> AsyncIterator[Client]:
        words = ["-I", "-S", str(ROOM / "__main__.py"), "mcp"]
        server = StdioServerParameters(command=sys.executable, args=words, cwd=self.root, env=self.environ(**environ))
        async with Client(stdio_client(server), mode=mode) as made:
            yield made

    def said(self) -> list[str]:
        return [request.verb for request in self.heard if request.verb != "messages" or request.body]

    def spooled(self) -> list[str]:
        files = sorted((self.desk / "spool").glob("*.json"))
        return [json.loads(file.read_text())["verb"] for file in files]


def play(folder: Path, part: Callable[[Scene], Awaitable[None]]) -> Scene:
    scene = Scene(folder)
    scene.make()
    asyncio.run(asyncio.wait_for(part(scene), 60))
    return scene


@pytest.mark.parametrize("carrier", ["socket", "http"])
def test_a_worker_reports_over_either_carrier(tmp_path: Path, carrier: str) -> None:
    """G02: the environment says which."""

    async def part(scene: Scene) -> None:
        async with scene.led() as server:
            address = server.url if carrier == "http" else str(server.socket)
            place = {"GANGER_REPORT": address, "GANGER_TOKEN": TOKEN, "GANGER_DESK": str(scene.desk)}
            for words in (("heartbeat",), ("report", "--status", "DONE", "--summary", "s"), ("done",)):
                assert (await scene.say(*words, **place))[0] == 0
            stranger = await scene.say("heartbeat", **{**place, "GANGER_TOKEN": "w1.1." + "b" * 40})
            assert stranger[0] == 1 and "WORKER_UNKNOWN" in stranger[1]

    scene = play(tmp_path, part)
    assert scene.said() == ["heartbeat", "report", "done"] and not scene.spooled()


def test_a_session_pulls_a_task_from_the_run_it_finds(tmp_path: Path) -> None:
    """G02: nothing but the project folder is known to it."""

    async def part(scene: Scene) -> None:
        async with scene.led():
            assert (await scene.say("next", "--worker", "me"))[0] == 0
            for words in (("milestone", "half"), ("report", "--status", "DONE", "--summary", "s"), ("done",)):
                assert (await scene.say(*words))[0] == 0

    scene = play(tmp_path, part)
    assert [request.token for request in scene.heard] == [JOIN, TOKEN, TOKEN, TOKEN]
    assert scene.said() == ["next", "milestone", "report", "done"]


@pytest.mark.parametrize("mode", MODES)
def test_a_foreign_client_works_through_stdin_and_stdout(tmp_path: Path, mode: str) -> None:
    """G02: MCP; after next it is known by its claim, with or without the token."""

    async def part(scene: Scene) -> None:
        async with scene.led(), scene.client(mode) as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == list(VERBS)
            unknown = await session.call_tool("heartbeat", {})
            assert unknown.is_error
            given = await session.call_tool("next", {"worker": "me"})
            assert (given.structured_content or {})["task"]["id"] == "one"
            for verb, more in (("heartbeat", {"token": TOKEN}), ("progress", {"step": "x"}), ("done", {})):
                assert not (await session.call_tool(verb, more)).is_error

    scene = play(tmp_path, part)
    assert scene.said() == ["next", "heartbeat", "progress", "done"]
    assert json.loads((scene.folder / "workers" / "me.json").read_text())["token"] == TOKEN


@pytest.mark.parametrize("mode", MODES)
def test_while_the_lead_is_away_a_client_starts_and_nothing_it_says_is_lost(tmp_path: Path, mode: str) -> None:
    """H07: kept, and told so; what is of no use later is told to be in vain."""

    async def part(scene: Scene) -> None:
        async with scene.led() as server:
            address = str(server.socket)
        place = {"GANGER_REPORT": address, "GANGER_TOKEN": TOKEN, "GANGER_DESK": str(scene.desk)}
        async with scene.client(mode if mode != "2026-07-28" else "legacy", **place) as session:
            kept = await session.call_tool("milestone", {"name": "half"})
            assert not kept.is_error and (kept.structured_content or {})["kept"] is True
            assert (await session.call_tool("heartbeat", {})).is_error and scene.spooled() == ["milestone"]
            assert "milestone" in [tool.name for tool in (await session.list_tools()).tools]
            async with scene.led():
                assert not (await session.call_tool("heartbeat", {})).is_error

    scene = play(tmp_path, part)
    assert scene.said() == ["milestone", "heartbeat"] and not scene.spooled()


@pytest.mark.parametrize("line", ["frob", "[]", "7", '{"id": 1}', '{"method": "tools/call", "id": 1, "params": []}'])
def test_what_is_no_message_gets_an_answer_and_ends_nothing(tmp_path: Path, line: str) -> None:
    """G02: the bridge outlives a confused client."""

    async def part(scene: Scene) -> None:
        argv = [sys.executable, "-I", "-S", str(ROOM / "__main__.py"), "mcp"]
        ping = '{"jsonrpc": "2.0", "id": 9, "method": "ping"}'
        async with scene.led():
            call = await asyncio.create_subprocess_exec(
                *argv, cwd=scene.root, env=scene.environ(), stdin=-1, stdout=-1, stderr=-1
            )
            out, err = await call.communicate(f"{line}\n\n{ping}\n".encode())
        answers = [json.loads(each) for each in out.splitlines()]
        assert call.returncode == 0 and not err and answers[-1] == {"jsonrpc": "2.0", "id": 9, "result": {}}
        assert len(answers) == 2 and "error" in answers[0]

    play(tmp_path, part)

"""The examples of the workers' guide do tasks of one run beside agents that Ganger starts, all judged alike."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from ganger.core import events as ev
from ganger.core.vocabulary import TaskStatus
from ganger.worker.find_run import RunAddress
from tests.engine.asking_sessions import Session
from tests.engine.git_runs import GitProject, edits
from tests.engine.run_projects import ROOT, leading, task, until
from tests.patience import stretched

pytestmark = pytest.mark.whole

PAGE = (ROOT / "docs/guide/workers.md").read_text()
KINDS = ("sh", "stdio", "http")
CONFIG = '[agents.people]\nkind = "pull"\n' + "".join(f'[roles.{kind}]\nagent = "people"\n' for kind in KINDS)
CHECK = "import pathlib, sys\nsys.exit(any('WRONG' in p.read_text() for p in pathlib.Path().glob('*.txt')))\n"


def example(language: str) -> str:
    """The guide's only example in that language that asks for work."""
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if "next" in text]
    return str(found)


def of(kind: str, name: str) -> dict[str, object]:
    return task(name, metadata={"role": kind})


@contextmanager
def worker(*argv: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(argv, cwd=cwd, env={**os.environ, "PATH": path}, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        assert "Traceback" not in process.communicate()[1]


async def _over_http(project: GitProject) -> None:
    door = RunAddress(str(project.folder.path))
    url = f"{json.loads((project.folder.path / 'worker.json').read_text())['url']}/mcp"
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {door.token}"}, timeout=stretched(60)) as http:
        async with streamable_http_client(url, http_client=http) as (read, write), ClientSession(read, write) as me:
            await me.initialize()
            for _ in range(2):
                got = await _called(me, "next", worker="h", roles=["http"], wait_sec=30)
                name = got["task"]["id"]
                Path(got["task"]["workspace"], f"{name}.txt").write_text("over http\n")
                result = {"contract_version": "2.0", "task_id": name, "status": "DONE", "summary": "wrote it"}
                assert (await _called(me, "report", result=result, token=got["token"]))["accepted"]


async def _called(session: ClientSession, verb: str, **body: object) -> dict[str, Any]:
    answer = await session.call_tool(verb, body)
    assert isinstance(answer, CallToolResult) and not answer.is_error
    found: dict[str, Any] = answer.structured_content or {}
    return found


@pytest.mark.needs("git")
def test_a_shell_script_and_mcp_clients_do_tasks_beside_spawned_agents(tmp_path: Path) -> None:
    """G02 W03: sh, MCP over stdin and over HTTP, and an agent Ganger starts; every change is merged."""
    names = [f"{kind}-{number}" for kind in KINDS for number in (1, 2)]
    tasks = [*(of(name.partition("-")[0], name) for name in names), task("own-1"), task("own-2")]
    script = {name: edits({f"{name}.txt": "mine\n"}) for name in ("own-1", "own-2")}
    project = GitProject(tmp_path, tasks, script, more=CONFIG, check=CHECK).make()
    shell = example("sh").replace("--shell", "--shell --role sh")
    client = example("python").replace('{"wait_sec": 10}', '{"wait_sec": 10, "roles": ["stdio"]}')
    with leading(project) as lead:
        until(lambda: (project.folder.path / "worker.json").exists(), beside=lead)
        with worker("sh", "-c", shell, cwd=tmp_path), worker(sys.executable, "-c", client, cwd=tmp_path):
            asyncio.run(_over_http(project))
            assert lead.wait(60) == 0
    assert set(project.merged_files()) >= {f"{name}.txt" for name in (*names, "own-1", "own-2")}
    by = {e.task: e.worker for e in project.find(ev.AttemptStarted)}
    assert {by[name] for name in names} == {"shell-1", "mcp-1", "h"} and by["own-1"] == ""


@pytest.mark.needs("git")
def test_what_a_session_says_is_done_is_verified_like_anything_else(tmp_path: Path) -> None:
    """G02 T17: a wrong change is refused by verification, and the next one is taken."""
    project = GitProject(tmp_path, [of("sh", "a")], more=CONFIG, check=CHECK).make()
    with leading(project) as lead:
        assert Session(project).get().do(text="WRONG\n").taken
        again = Session(project).get()
        assert again.attempt == 2 and not project.find(ev.Merged)
        assert again.do(text="right\n").taken and lead.wait(30) == 0
    assert project.shown("a.txt") == "right" and project.status("a") is TaskStatus.DONE

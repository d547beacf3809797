"""A session that takes a task, is stopped for too long, comes back, and says by every carrier there is that it is done.

Run as `stale_session.py NOTES PYTHON` in the project's folder.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

NOTES, PYTHON = Path(sys.argv[1]), sys.argv[2]


def worker(*words: str) -> subprocess.CompletedProcess[str]:
    called = [PYTHON, "-m", "ganger", "worker", *words, "--worker", "sleepy"]
    return subprocess.run(called, capture_output=True, text=True)


def over_socket(address: str, token: str, body: bytes) -> str:
    head = f"POST /v1/report HTTP/1.1\r\nHost: lead\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)
        line.sendall(head.encode() + body)
        return line.makefile("rb").read().decode().split(" ", 2)[1]


def over_http(url: str, token: str, body: bytes) -> str:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        return str(urllib.request.urlopen(urllib.request.Request(f"{url}/v1/report", body, headers)).status)
    except urllib.error.HTTPError as refused:
        return str(refused.code)


def leave_files(desk: Path, token: str, body: dict[str, Any]) -> None:
    """Its desk is gone with its attempt; that does not keep it from making another in its place."""
    (desk / "spool").mkdir(parents=True, exist_ok=True)
    spooled = {"verb": "report", "token": token, "body": body}
    (desk / "spool" / "00000000000000000001-0.json").write_text(json.dumps(spooled))
    (desk / "result.json").write_text(json.dumps(body["result"]))
    (desk / "done.flag").touch()


def main() -> None:
    claim = json.loads(worker("next", "--json", "--wait", "60").stdout)
    (NOTES / "taken").write_text(str(claim["task"]["attempt"]))
    os.kill(os.getpid(), signal.SIGSTOP)
    result = {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "late"}
    body, token = {"id": "late-1", "result": result}, claim["token"]
    data = json.dumps(body).encode()
    said = worker("report", "--status", "DONE", "--summary", "late", "--json")
    outcomes = {
        "command": "ATTEMPT_OVER"
        if said.returncode == 1 and "ATTEMPT_OVER" in said.stdout + said.stderr
        else str(said),
        "socket": over_socket(claim["report"], token, data),
        "http": over_http(claim["url"], token, data),
    }
    leave_files(Path(claim["desk"]), token, body)
    (NOTES / "outcomes.tmp").write_text(json.dumps(outcomes))
    (NOTES / "outcomes.tmp").rename(NOTES / "outcomes")


if __name__ == "__main__":
    main()

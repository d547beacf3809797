"""An agent that hangs in its first attempt; in its second it first tries the token of the first, then does its work."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

NOTES = Path(sys.argv[1])
RESULT = {"contract_version": "2.0", "task_id": "a", "status": "DONE", "summary": "with an old token"}
BODIES: dict[str, dict[str, object]] = {
    "heartbeat": {"step": "still here"},
    "report": {"id": "late", "result": RESULT},
    "escalate": {"id": "late-question", "category": "ambiguous_spec", "message": "Am I still wanted?"},
    "messages": {},
}


def status(verb: str, token: str) -> int:
    data = json.dumps(BODIES[verb]).encode()
    head = f"POST /v1/{verb} HTTP/1.1\r\nHost: lead\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(os.environ["GANGER_REPORT"])
        line.sendall(head.encode() + data)
        return int(line.makefile("rb").read().split(b" ", 2)[1])


def refused(desk: Path, token: str) -> list[str]:
    """What became of a request in its own spool that carries the old token."""
    request = {"verb": "report", "token": token, "body": BODIES["report"]}
    (desk / "spool").mkdir(exist_ok=True)
    (desk / "spool" / "late.tmp").write_text(json.dumps(request))
    (desk / "spool" / "late.tmp").rename(desk / "spool" / "late.json")
    end = time.monotonic() + 10
    while os.listdir(desk / "spool") and time.monotonic() < end:
        print("waits", flush=True)
        time.sleep(0.1)
    return sorted(os.listdir(desk / "refused")) if (desk / "refused").exists() else []


def main() -> None:
    if os.environ["GANGER_ATTEMPT"] == "1":
        (NOTES / "token").write_text(os.environ["GANGER_TOKEN"])
        time.sleep(600)
    token = (NOTES / "token").read_text()
    said: dict[str, object] = {verb: status(verb, token) for verb in BODIES}
    said["refused"] = refused(Path(os.environ["GANGER_DESK"]), token)
    (NOTES / "said").write_text(json.dumps(said))
    own = json.dumps({**RESULT, "summary": "did it myself"})
    print(f"<<<TASK_RESULT_V2>>>\n{own}\n<<<END_TASK_RESULT_V2>>>", flush=True)


if __name__ == "__main__":
    main()

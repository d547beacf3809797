"""A stand-in for an agent program with sessions: plays what its plan says and writes down how it was called."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

RESULT = {"contract_version": "2.0", "status": "DONE", "summary": "did it"}


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def note_start(starts: Path) -> int:
    """How many times it was started before."""
    before = len(starts.read_text().splitlines()) if starts.exists() else 0
    call = {
        "argv": sys.argv[2:],
        "cwd": os.getcwd(),
        "home": os.environ["HOME"],
        "task": os.environ["GANGER_TASK_ID"],
        "files": sorted(os.listdir(".")),
        "at_home": sorted(os.listdir(os.environ["HOME"])),
        "prompt": sys.stdin.read(),
    }
    with open(starts, "a", encoding="utf-8") as file:
        file.write(json.dumps(call) + "\n")
    return before


def play(step: dict[str, Any]) -> None:
    for word, value in step.items():
        if word == "say":
            say(**value)
        elif word == "limit_for":
            say(type="limit", text="usage limit reached", reset_at=time.time() + value)
        elif word == "write":
            for name, text in value.items():
                Path(name).write_text(text)
        elif word == "home":
            for name, text in value.items():
                (Path(os.environ["HOME"]) / name).write_text(text)
        elif word == "done":
            result = json.dumps({**RESULT, "task_id": os.environ["GANGER_TASK_ID"]})
            say(type="said", text=f"<<<TASK_RESULT_V2>>>\n{result}\n<<<END_TASK_RESULT_V2>>>")
            say(type="over", how="success")
        elif word == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif word == "wait_for":
            while not Path(value).exists():
                time.sleep(0.02)
        elif word == "hang":
            time.sleep(600)
        elif word == "exit":
            sys.exit(value)


def main() -> None:
    plan = Path(sys.argv[1])
    before = note_start(plan.with_suffix(".starts"))
    attempts = json.loads(plan.read_text())
    resumed = sys.argv[sys.argv.index("--resume") + 1] if "--resume" in sys.argv else ""
    say(type="begin", session=resumed or f"s-{before + 1}", model="parrot-1")
    for step in attempts[min(before, len(attempts) - 1)]:
        play(step)


main()

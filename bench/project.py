"""Projects to measure on: a manifest of any size, one prompt, one check, one agent."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

_WIDTH = 100
_RESULT = '{"contract_version":"2.0","task_id":"%s","status":"DONE","summary":"done"}'
_WRITING = (
    '{"contract_version":"2.0","task_id":"%s","status":"DONE","summary":"done",'
    '"writes":[{"path":"out/%s.txt","op":"create","encoding":"utf8","content":"done\\\\n"}]}'
)
_SHELL = "printf '<<<TASK_RESULT_V2>>>\\n{body}\\n<<<END_TASK_RESULT_V2>>>\\n' \"$GANGER_TASK_ID\" {more}\n"
_PYTHON = f"""import os
print("<<<TASK_RESULT_V2>>>\\n" + {_RESULT!r} % os.environ["GANGER_TASK_ID"] + "\\n<<<END_TASK_RESULT_V2>>>")
"""
# The cheapest agent there is, one that has a file written, and one that starts as slowly as a script in Python.
AGENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "sh": (("/bin/sh", "agent"), _SHELL.format(body=_RESULT, more="")),
    "writing sh": (("/bin/sh", "agent"), _SHELL.format(body=_WRITING, more='"$GANGER_TASK_ID"')),
    "Python": ((sys.executable, "agent"), _PYTHON),
}


@dataclass(frozen=True, slots=True)
class Fleet:
    """A run to be timed."""

    tasks: int
    concurrency: int = 1
    agent: str = "sh"
    schedule: str = "off"
    linked: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        return AGENTS[self.agent][0]

    @property
    def names(self) -> list[str]:
        return [f"task-{number:06d}" for number in range(self.tasks)]


def build(root: Path, fleet: Fleet) -> None:
    """Writes the project: the same text for the same fleet."""
    files = {
        "agent": AGENTS[fleet.agent][1],
        "prompt.md": "Do the task.\n",
        "verify.json": json.dumps({"profiles": {"check": {"steps": [{"name": "check", "cmd": "true"}]}}}),
        "manifest.json": json.dumps({"manifest_version": "2.0", "run_id": "bench", "tasks": _tasks(fleet)}),
        "ganger.toml": _config(fleet),
    }
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")


def _tasks(fleet: Fleet) -> list[dict[str, object]]:
    names = fleet.names
    tasks: list[dict[str, object]] = []
    for place, name in enumerate(names):
        needs = [names[place - step] for step in (_WIDTH, _WIDTH + 1) if fleet.linked and place >= step]
        tasks.append(
            {
                "id": name,
                "prompt_ref": "prompt.md",
                "depends_on": needs,
                "timeout_sec": 600,
                "verify_profile": "check",
                "metadata": {"role": "worker", "files_create": [f"out/{name}.txt"]},
            }
        )
    return tasks


def _config(fleet: Fleet) -> str:
    return f"""manifest = "manifest.json"
[policy]
heal_schedule = "{fleet.schedule}"
concurrency = {fleet.concurrency}
[agents.measured]
kind = "command"
argv = {json.dumps(fleet.argv)}
[roles.worker]
agent = "measured"
[workspace]
mode = "direct"
[sandbox]
use = "off"
"""

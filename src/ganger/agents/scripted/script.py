"""Scripts for the scripted agent: what it does for which task in which attempt. Standard library only."""

from __future__ import annotations

import json
import signal
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEP_KEYS = (
    *("text", "error", "delay", "needs", "echo_prompt", "files", "garbage", "usage", "sign"),
    *("result", "heal", "block", "hang", "crash", "exit"),
)
_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "error": (str,),
    "delay": (int, float),
    "needs": (str,),
    "echo_prompt": (bool,),
    "files": (dict,),
    "garbage": (int, str),
    "usage": (dict,),
    "sign": (dict,),
    "result": (dict, str),
    "heal": (dict,),
    "block": (str,),
    "hang": (bool,),
    "crash": (bool, str),
    "exit": (int,),
}


_LONGEST_DELAY_SEC = 1_000_000


class ScriptProblem(Exception):
    """A script that cannot be played; the message says where and why."""


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One thing to do, such as `delay 0.5`."""

    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class AgentScript:
    tasks: dict[str, tuple[tuple[ScriptStep, ...], ...]]
    default: tuple[tuple[ScriptStep, ...], ...]

    @property
    def speaks(self) -> bool:
        """Whether it reports more than an answer: a session, a limit, a refusal."""
        every = [*self.tasks.values(), self.default]
        return any(step.key == "sign" for attempts in every for steps in attempts for step in steps)

    def steps(self, task_id: str, attempt: int) -> tuple[ScriptStep, ...]:
        """The behaviour of one attempt; the last one given is repeated."""
        attempts = self.tasks.get(task_id) or self.default
        return attempts[min(attempt, len(attempts)) - 1]


def load_script(path: Path) -> AgentScript:
    """Reads JSON or TOML. Every mistake is a ScriptProblem that names its place."""
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ScriptProblem(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ScriptProblem(f"{path}: not a valid script ({error})") from error
    if (
        not isinstance(data, dict)
        or not set(data) <= {"tasks", "default"}
        or not isinstance(data.get("tasks", {}), dict)
    ):
        raise ScriptProblem(f'{path}: a script is an object with "tasks" (by task id) and "default"')
    try:
        tasks = {name: _attempts(f"tasks.{name}", given) for name, given in data.get("tasks", {}).items()}
        default = _attempts("default", data.get("default", [{"result": "DONE"}]))
    except ScriptProblem as problem:
        raise ScriptProblem(f"{path}: {problem}") from None
    return AgentScript(tasks, default)


def _attempts(where: str, given: object) -> tuple[tuple[ScriptStep, ...], ...]:
    """A list has one entry per attempt; a single object is for every attempt."""
    entries = given if isinstance(given, list) else [given]
    if not entries:
        raise ScriptProblem(f"{where} is empty; give at least one attempt")
    return tuple(_steps(f"{where}[{index}]", entry) for index, entry in enumerate(entries))


def _steps(where: str, entry: object) -> tuple[ScriptStep, ...]:
    """An object's keys run in the order of STEP_KEYS; a list of objects runs in its own order."""
    if isinstance(entry, list):
        return tuple(step for index, part in enumerate(entry) for step in _steps(f"{where}[{index}]", part))
    if not isinstance(entry, dict):
        raise ScriptProblem(f'{where} must be an object such as {{"result": "DONE"}}')
    for key, value in entry.items():
        kinds = _KINDS.get(key)
        if kinds is None:
            raise ScriptProblem(f"{where}.{key}: unknown behaviour; known: {', '.join(STEP_KEYS)}")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise ScriptProblem(
                f"{where}.{key}: {value!r} does not fit; expected {' or '.join(k.__name__ for k in kinds)}"
            )
        if key == "delay" and isinstance(value, int | float) and not 0 <= value < _LONGEST_DELAY_SEC:
            raise ScriptProblem(f"{where}.delay: {value!r} does not fit; expected seconds")
        if key == "crash" and isinstance(value, str) and value not in signal.Signals.__members__:
            raise ScriptProblem(f"{where}.crash: {value!r} is not a signal; write one such as SIGKILL")
    return tuple(ScriptStep(key, entry[key]) for key in STEP_KEYS if key in entry)

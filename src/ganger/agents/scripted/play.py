"""The scripted agent's process: plays one attempt of a script. Run as `python -m ganger.agents.scripted.play SCRIPT`.

Standard library only, so that it starts as fast as the interpreter does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ganger.agents.scripted.script import ScriptProblem, ScriptStep, load_script


def main(arguments: list[str]) -> int:
    task, attempt = os.environ.get("GANGER_TASK_ID", ""), int(os.environ.get("GANGER_ATTEMPT", "1"))
    try:
        steps = load_script(Path(arguments[0])).steps(task, attempt)
    except ScriptProblem as problem:
        print(problem, file=sys.stderr)
        return 1
    for step in steps:
        code = _play(step, task)
        if code is not None:
            return code
    return 0


def _play(step: ScriptStep, task: str) -> int | None:
    """Plays one step; an integer ends the process with that code."""
    if step.key == "exit":
        return int(step.value)
    if step.key == "needs" and step.value not in _prompt():
        lacking = {"status": "FAILED", "failure_class": "prompt_gap", "summary": f"nobody told me: {step.value}"}
        _result(lacking, task)
        return 0
    _ACTIONS[step.key](step.value, task)
    sys.stdout.flush()
    return None


@cache
def _prompt() -> str:
    return sys.stdin.read()


def _needs(_value: str, _task: str) -> None:
    """Handled before."""


def _usage(value: dict[str, Any], _task: str) -> None:
    print(f"GANGER_USAGE {json.dumps(value)}")


def _sign(value: dict[str, Any], _task: str) -> None:
    """`reset_in` are seconds from now, because a script does not know when it is played."""
    told = {name: told for name, told in value.items() if name != "reset_in"}
    if "reset_in" in value:
        told["reset_at"] = time.time() + float(value["reset_in"])
    print(json.dumps({"ganger": "sign", **told}))


def _heal(value: dict[str, Any], _task: str) -> None:
    said = {"failure_class": "prompt_gap", "root_cause": "played by script", "patches": []}
    full = {"contract_version": "2.0", "scope": "batch", "decision": "RETRY"} | said | value
    print(f"<<<HEAL_DECISION_V2>>>\n{json.dumps(full, ensure_ascii=False)}\n<<<END_HEAL_DECISION_V2>>>")


def _text(value: str, _task: str) -> None:
    print(value)


def _error(value: str, _task: str) -> None:
    print(value, file=sys.stderr, flush=True)


def _delay(value: float, _task: str) -> None:
    time.sleep(value)


def _echo(value: bool, _task: str) -> None:
    if value:
        sys.stdout.write(_prompt())


def _files(value: dict[str, str], _task: str) -> None:
    for name, content in value.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _garbage(value: int | str, task: str) -> None:
    noise = value if isinstance(value, str) else random.Random(task).randbytes(value).decode("latin-1")  # noqa: S311
    print(noise)


def _result(value: dict[str, Any] | str, task: str) -> None:
    given = {"status": value} if isinstance(value, str) else dict(value)
    full = {"contract_version": "2.0", "task_id": task, "summary": "played by script"} | given
    _block(json.dumps(full, ensure_ascii=False), task)


def _block(value: str, _task: str) -> None:
    print(f"<<<TASK_RESULT_V2>>>\n{value}\n<<<END_TASK_RESULT_V2>>>")


def _hang(value: bool, _task: str) -> None:
    while value:
        time.sleep(3600)


def _crash(value: bool | str, _task: str) -> None:
    if value:
        os.kill(os.getpid(), signal.Signals[value] if isinstance(value, str) else signal.SIGSEGV)


_ACTIONS: dict[str, Callable[[Any, str], None]] = {
    "text": _text,
    "error": _error,
    "delay": _delay,
    "needs": _needs,
    "echo_prompt": _echo,
    "files": _files,
    "garbage": _garbage,
    "usage": _usage,
    "sign": _sign,
    "result": _result,
    "heal": _heal,
    "block": _block,
    "hang": _hang,
    "crash": _crash,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

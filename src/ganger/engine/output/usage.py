"""The estimated tokens of prompts beside the counts of their agents: kept in each run's folder, only ever shown."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from ganger.core.model.run_state import RunState
from ganger.core.names import prompt_file
from ganger.core.prompts.tokens import TokenSample, estimate
from ganger.local.run_folder import RunFolder, replace_file

FILE = "usage.json"
_MOST = 50
_MOST_BYTES = 1024 * 1024


def write_usage(folder: RunFolder, state: RunState) -> None:
    """From tasks that needed one attempt: only then do the counted tokens belong to one known prompt."""
    once = [
        name
        for name, task in state.tasks.items()
        if task.attempts == 1 and task.agent.totals and task.agent.totals.input_tokens
    ]
    samples = [found for name in once[-_MOST:] if (found := _sample(folder, state, name)) is not None]
    if samples:
        rows = [{"agent": s.agent, "estimated": s.estimated, "counted": s.counted} for s in samples]
        replace_file(folder.path / FILE, json.dumps({"prompts": rows}, ensure_ascii=False) + "\n")


def _sample(folder: RunFolder, state: RunState, name: str) -> TokenSample | None:
    task, path = state.tasks[name], folder.path / prompt_file(name, 1)
    try:
        text = path.read_text(encoding="utf-8") if path.stat().st_size <= _MOST_BYTES else ""
    except (OSError, ValueError):
        return None
    counted = task.agent.totals.input_tokens if task.agent.totals is not None else None
    return TokenSample(task.agent.used, estimate(text), counted) if text and counted else None


def usage_of_runs(state_path: Path) -> tuple[TokenSample, ...]:
    """From every run of the project, oldest first; damaged files are skipped."""
    found: list[TokenSample] = []
    for path in sorted(state_path.glob(f"*/{FILE}"), key=lambda path: path.stat().st_mtime):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            rows = json.loads(path.read_bytes())["prompts"]
            found += [TokenSample(str(row["agent"]), int(row["estimated"]), int(row["counted"])) for row in rows]
    return tuple(found)

"""What each kind of agent takes of its settings is what the table of them says."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.settings import AgentSettings, TerminalSettings
from ganger.agents.table import KINDS, TAKES, WITHOUT_SANDBOX, make_agent
from ganger.errors import InputError
from ganger.ports.agents import AttemptContext

# Read by Ganger itself, or what the table is about.
NOT_JUDGED = {"kind", "context_tokens"}
OTHER: dict[str, object] = {
    "argv": ("other-program", "--flag"),
    "prompt": "file",
    "env": ("MY_VARIABLE",),
    "model": "provider/other",
    "script": "other.json",
    "effort": "high",
    "max_turns": 7,
    "args": ("--more",),
    "base_url": "http://127.0.0.1:9/v1",
    "key_env": "MY_KEY",
    "permissions": "edit",
    "home_files": (".mine",),
    "answer_schema": True,
    "profile": "codex-acp",
    "retries": 5,
    "terminal": TerminalSettings(idle_sec=3),
}
USUAL: dict[str, dict[str, object]] = {
    "acp": {"profile": "gemini"},
    "pty": {"argv": ("talker",)},
    "scripted": {"script": "script.json"},
}
# Some settings count only beside others: a provider's address, and the model that is behind it.
BESIDE: dict[tuple[str, str], dict[str, object]] = {
    ("codex", "retries"): {"base_url": "http://127.0.0.1:9/v1"},
    ("opencode", "base_url"): {"model": "provider/model"},
    ("acp", "effort"): {"profile": "codex-acp"},
    ("acp", "base_url"): {"profile": "codex-acp"},
}


def call(kind: str, root: Path, *, walled: bool = True, **given: object) -> object:
    """All that an agent of this kind is called and furnished with; its refusal, where it takes a thing to refuse it."""
    (root / "prompt.md").write_text("Do it.")
    (root / ".mine").write_text("mine")
    for name in ("script.json", "other.json"):
        (root / name).write_text('{"default": {"text": "x", "result": "DONE"}}')
    environ = {"PATH": os.environ["PATH"], "HOME": str(root), "MY_VARIABLE": "v", "MY_KEY": "k", "OPENAI_API_KEY": "o"}
    environ |= {"ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g", "CURSOR_API_KEY": "c"}
    argv = {} if kind in ("acp", "pty", "scripted", "pull") else {"argv": (kind,)}
    context = AttemptContext(
        run_id="r", task_id="a", attempt=1, role="worker", workspace=root, prompt_file=root / "prompt.md",
        log_path=root / "a.log", timeout_sec=5, home=root / "home", walled=walled,
    )  # fmt: skip
    try:
        words: dict[str, Any] = {**argv, **USUAL.get(kind, {}), **given}
        agent = make_agent("x", AgentSettings(kind, **words), root, environ)
        launch = agent.prepare(context)
        return launch.argv, launch.env, launch.stdin_path, agent.furnish(context)
    except InputError as refused:
        return [fault.message for fault in refused.faults]


def is_taken(kind: str, root: Path, key: str, *, walled: bool) -> bool:
    beside, value = BESIDE.get((kind, key), {}), OTHER[key]
    if key == "permissions" and not walled:
        value = "full"
    usual = call(kind, root, walled=walled, **beside)
    return usual != call(kind, root, walled=walled, **{**beside, key: value})


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pull"])
def test_a_kind_takes_what_its_row_says_and_nothing_else(kind: str, tmp_path: Path) -> None:
    """G24 T24: a setting changes how a program is called exactly where the table says that it is taken."""
    judged = {field.name for field in fields(AgentSettings)} - NOT_JUDGED
    assert judged == set(OTHER)
    walled, bare = ({key for key in judged if is_taken(kind, tmp_path, key, walled=walls)} for walls in (True, False))
    assert walled | bare == TAKES[kind] & judged
    assert (TAKES[kind] & judged) - walled == WITHOUT_SANDBOX.get(kind, frozenset())


def test_every_kind_has_its_row() -> None:
    """G24: a kind that is added says what it takes."""
    assert set(TAKES) == set(KINDS)

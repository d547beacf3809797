"""Which settings of [agents.NAME] each kind of agent reads."""

from __future__ import annotations

_PROGRAM = frozenset({"argv", "args", "env", "key_env", "home_files"})
_MODEL = _PROGRAM | {"model", "permissions"}
# Besides what Ganger itself reads: kind, account, context_tokens, in_place. A kind of another package reads what it
# likes.
TAKES: dict[str, frozenset[str]] = {
    "command": frozenset({"argv", "env", "prompt"}),
    "scripted": frozenset({"env", "script"}),
    "claude": _MODEL | {"base_url", "effort", "max_turns", "answer_schema", "retries"},
    "codex": _MODEL | {"base_url", "effort", "answer_schema", "retries"},
    "opencode": _MODEL | {"base_url", "effort", "max_turns"},
    "agent": _MODEL | {"base_url"},
    "gemini": _MODEL | {"base_url", "max_turns", "retries"},
    "qwen": _MODEL | {"base_url", "effort", "max_turns"},
    "copilot": _MODEL | {"base_url", "effort"},
    # What the agent behind it takes, where that is not an argument.
    "acp": _MODEL | {"base_url", "effort", "max_turns", "retries", "profile"},
    "pty": _PROGRAM | {"terminal"},
    "pull": frozenset(),
}
# What a kind reads only where it works without a sandbox of Ganger's: inside one codex edits through its shell alone.
UNWALLED: dict[str, frozenset[str]] = {"codex": frozenset({"permissions"})}

"""What differs between agents that speak the Agent Client Protocol: one row each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ganger.agents.claude import ClaudeAgent
from ganger.agents.cli import CliAgent
from ganger.agents.copilot import CopilotAgent
from ganger.agents.gemini import GeminiAgent
from ganger.agents.opencode import OpencodeAgent
from ganger.agents.qwen import QwenAgent


class _Codex(CliAgent):
    keys = ("OPENAI_API_KEY", "CODEX_API_KEY")
    logins = (".codex/auth.json",)
    login_hint = "set OPENAI_API_KEY, or run `codex login`"


def _codex_files(agent: CliAgent) -> Mapping[str, bytes]:
    """It takes another endpoint from this file alone."""
    given, environ = agent.given, agent.environ
    url = given.base_url or environ.get("OPENAI_BASE_URL", "")
    lines = ["check_for_update_on_startup = false", "[analytics]", "enabled = false"]
    if url:
        provider = {
            "name": "ganger",
            "base_url": url,
            "env_key": agent.key() or "OPENAI_API_KEY",
            "wire_api": "responses",
        }
        retries = [f"{name} = {given.retries}" for name in ("request_max_retries", "stream_max_retries")]
        lines = [
            'model_provider = "ganger"',
            *lines,
            "[model_providers.ganger]",
            *(f"{name} = {json.dumps(value)}" for name, value in provider.items()),
            *retries,
        ]
    model = [f"model = {json.dumps(given.model)}"] if given.model else []
    effort = [f"model_reasoning_effort = {json.dumps(given.effort)}"] if given.effort else []
    return {".codex/config.toml": "\n".join([*model, *effort, *lines, ""]).encode()}


@dataclass(frozen=True, slots=True)
class Profile:
    """`like` is the agent of the same vendor whose settings, keys and files hold for this one too.

    `arguments` follow the program. A model is named by `model_flag` or `model_variable`. `variables` are always set,
    `files` are further ones for its home. `modes` are its own names for what it may do, by Ganger's: "all" or "edit".
    `auth` is the way it is to log in where it offers that. The rest is explained at `Errand`.
    """

    program: str = ""
    tried: str = ""
    like: type[CliAgent] | None = None
    arguments: tuple[str, ...] = ()
    model_flag: str = ""
    model_variable: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Callable[[CliAgent], Mapping[str, bytes]] | None = None
    modes: Mapping[str, str] = field(default_factory=dict)
    auth: str = ""
    errors: str = ""
    retrying: str = ""
    usage: str = "prompt"


UNKNOWN = Profile()

PROFILES: dict[str, Profile] = {
    "claude-acp": Profile(
        program="claude-agent-acp",
        tried="0.99.0",
        like=ClaudeAgent,
        model_variable="ANTHROPIC_MODEL",
        variables={"CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false"},
        modes={"all": "bypassPermissions", "edit": "acceptEdits"},
    ),
    "codex-acp": Profile(
        program="codex-acp",
        tried="2.6.0",
        like=_Codex,
        files=_codex_files,
        modes={"all": "agent-full-access", "edit": "workspace-write"},
        errors=r"(?:\A|\n)(?:stream disconnected|unexpected status|exceeded retry|Quota exceeded|You.ve hit|We.re currently|Error:).*",
    ),
    "gemini": Profile(
        program="gemini",
        tried="0.61.0",
        like=GeminiAgent,
        arguments=("--acp",),
        model_flag="-m",
        modes={"all": "yolo", "edit": "autoEdit"},
        retrying=r"\AAttempt \d+ failed|Retrying after \d+ms",
    ),
    "qwen": Profile(
        program="qwen",
        tried="0.24.4",
        like=QwenAgent,
        arguments=("--acp", "--auth-type", "openai"),
        model_flag="--model",
        modes={"all": "yolo", "edit": "auto-edit"},
        errors=r"\[API Error: .*",
    ),
    "copilot": Profile(
        program="copilot",
        tried="1.0.102",
        like=CopilotAgent,
        arguments=("--acp", "--no-auto-update"),
        model_flag="--model",
        errors=r"\bError: .*",
        retrying=r"\AInfo: Request failed .* Retrying",
        usage="session",
    ),
    "opencode": Profile(
        program="opencode",
        tried="1.18.33",
        like=OpencodeAgent,
        arguments=("acp",),
        usage="last",
    ),
}


def profile_of(name: str, program: str) -> Profile:
    """By name; else by the program's."""
    return PROFILES.get(name) or next((row for row in PROFILES.values() if row.program == program), UNKNOWN)

"""What differs between agents that speak the Agent Client Protocol: one row each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ganger.agents.cli import CliAgent
from ganger.agents.programs.claude import ClaudeAgent
from ganger.agents.programs.codex import CodexAgent
from ganger.agents.programs.copilot import KEPT_BACK, CopilotAgent
from ganger.agents.programs.gemini import GeminiAgent
from ganger.agents.programs.opencode import OpencodeAgent
from ganger.agents.programs.qwen import QwenAgent


def _codex_files(agent: CliAgent) -> Mapping[str, bytes]:
    """As a file, the settings that codex itself takes as arguments."""
    given = agent.given
    url = given.base_url or agent.passed.get("OPENAI_BASE_URL", "")
    secrets = sorted({*agent.keys, *((given.key_env,) if given.key_env else ())})
    lines = [f"model = {json.dumps(given.model)}"] if given.model else []
    lines += [f"model_reasoning_effort = {json.dumps(given.effort)}"] if given.effort else []
    lines += ['model_provider = "ganger"'] if url else []
    lines += ["check_for_update_on_startup = false", "[analytics]", "enabled = false"]
    lines += ["[shell_environment_policy]", f"exclude = {json.dumps(secrets)}"]
    if url:
        lines += ["[model_providers.ganger]", 'name = "ganger"', f"base_url = {json.dumps(url)}"]
        lines += ['wire_api = "responses"', *([f"env_key = {json.dumps(agent.key())}"] if agent.key() else [])]
        lines += [f"{name} = {given.retries}" for name in ("request_max_retries", "stream_max_retries")]
    return {".codex/config.toml": "\n".join([*lines, ""]).encode()}


@dataclass(frozen=True, slots=True)
class AcpProfile:
    """`like` is the agent of the same vendor whose settings, keys and files are used for this one too.

    `arguments` follow the program. A model is named by `model_flag` or `model_variable`. `variables` are always set,
    `files` are further ones for its home. `modes` are its own names for what it may do, by Ganger's: "all" or "edit".
    `auth` is the login method to use if it offers that. `usd`: it reports its cost. `Errand` explains the rest.
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
    usd: bool = False


UNKNOWN = AcpProfile()

PROFILES: dict[str, AcpProfile] = {
    "claude-acp": AcpProfile(
        program="claude-agent-acp",
        tried="0.99.0",
        like=ClaudeAgent,
        model_variable="ANTHROPIC_MODEL",
        variables={"CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false"},
        modes={"all": "bypassPermissions", "edit": "acceptEdits"},
        usd=True,
    ),
    "codex-acp": AcpProfile(
        program="codex-acp",
        tried="2.6.0",
        like=CodexAgent,
        files=_codex_files,
        modes={"all": "agent-full-access", "edit": "workspace-write"},
        errors=r"(?:\A|\n)(?:stream disc|unexpected status|exceeded retry|Quota ex|You.ve hit|We.re curr|Error:).*",
    ),
    "gemini": AcpProfile(
        program="gemini",
        tried="0.61.0",
        like=GeminiAgent,
        arguments=("--acp",),
        model_flag="-m",
        modes={"all": "yolo", "edit": "autoEdit"},
        retrying=r"\AAttempt \d+ failed|Retrying after \d+ms",
    ),
    "qwen": AcpProfile(
        program="qwen",
        tried="0.24.4",
        like=QwenAgent,
        arguments=("--acp", "--auth-type", "openai"),
        model_flag="--model",
        modes={"all": "yolo", "edit": "auto-edit"},
        errors=r"\[API Error: .*",
        usage="none",
    ),
    "copilot": AcpProfile(
        program="copilot",
        tried="1.0.102",
        like=CopilotAgent,
        arguments=("--acp", "--no-auto-update", KEPT_BACK),
        model_flag="--model",
        errors=r"\bError: .*",
        retrying=r"\AInfo: Request failed .* Retrying",
        usage="session",
    ),
    "opencode": AcpProfile(
        program="opencode",
        tried="1.18.33",
        like=OpencodeAgent,
        arguments=("acp",),
        usage="none",
    ),
}


def profile_of(name: str, program: str) -> AcpProfile:
    """The profile by its name, else by the program's name."""
    return PROFILES.get(name) or next((row for row in PROFILES.values() if row.program == program), UNKNOWN)

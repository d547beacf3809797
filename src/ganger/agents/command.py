"""The `command` agent: any program that takes a prompt (stdin, argument or file) and prints a result block."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from ganger.agents.settings import AgentSettings
from ganger.agents.usage import read_usage
from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.parser import Parsed, Refused, parse_heal, parse_result
from ganger.contracts.task_result import TaskResult
from ganger.core.signs import Heard
from ganger.core.verify.environment import child_environment
from ganger.errors import Fault, GangerError, InputError
from ganger.ports.agents import AgentHealth, AttemptContext, Capabilities, Reader
from ganger.ports.processes import Launch, Launcher, Running

# The kernel refuses a single argument of 128 KiB or more.
_LONGEST_ARGUMENT = 128 * 1024 - 1


class CommandAgent:
    kind = "command"
    model = ""

    def __init__(
        self,
        name: str,
        *,
        argv: tuple[str, ...],
        prompt: str,
        passed: tuple[str, ...],
        environ: Mapping[str, str],
        root: Path,
    ) -> None:
        self.name = name
        self.argv, self.prompt, self.root = argv, prompt, root
        self._search_path = environ.get("PATH")
        self._environment = child_environment(environ, passed=passed, extra={})
        self._secrets = {name: environ[name] for name in passed if name in environ}
        self.capabilities = Capabilities(
            stdin_prompt=prompt == "stdin", arg_prompt=prompt == "argument", file_prompt=prompt == "file"
        )

    def secrets(self) -> Mapping[str, str]:
        """The values it was given deliberately, by name."""
        return self._secrets

    def prepare(self, context: AttemptContext) -> Launch:
        # The log's full path identifies this attempt on the whole machine, even next to another run of the same name.
        return Launch(
            key=str(context.log_path),
            argv=self._arguments(context),
            cwd=context.workspace,
            env={**self._environment, **identity(context), **context.environment},
            stdin_path=context.prompt_file if self.prompt == "stdin" else None,
            log_path=context.log_path,
            timeout_sec=context.timeout_sec,
        )

    def _arguments(self, context: AttemptContext) -> tuple[str, ...]:
        argv = words_of(self.argv, context, self.root)
        if self.prompt == "argument":
            text = context.prompt_file.read_text(encoding="utf-8")
            if len(text.encode()) > _LONGEST_ARGUMENT:
                raise GangerError(
                    f"agent {self.name}: the prompt of {context.task_id} is too long for an argument",
                    hint='use prompt = "stdin" or "file" for this agent',
                    code="PROMPT_TOO_LONG",
                )
            argv.append(text)
        elif self.prompt == "file" and not any("{prompt_file}" in word for word in self.argv):
            argv.append(str(context.prompt_file))
        return tuple(argv)

    async def execute(self, launch: Launch, launcher: Launcher) -> Running:
        return await launcher.start(launch)

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused:
        return parse_result(log, task_id=task_id)

    def extract_heal(self, log: Path) -> Parsed[HealDecision] | Refused:
        return parse_heal(log)

    def furnish(self, context: AttemptContext) -> Mapping[str, bytes]:
        return {}

    def reader(self) -> Reader | None:
        return None

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        return Heard(tokens=read_usage(log))

    def healthcheck(self) -> AgentHealth:
        program = self.argv[0]
        place = str(self.root / program) if "/" in program else program
        if shutil.which(place, path=self._search_path) is not None:
            return AgentHealth(True, details=(f"runs {' '.join(self.argv)}",))
        if "/" in program and Path(place).is_file():
            return AgentHealth(False, details=(f"program {program!r} is not executable; set its mode with chmod +x",))
        return AgentHealth(False, details=(f"program {program!r} was not found; install it or correct argv",))


def words_of(argv: Iterable[str], context: AttemptContext, root: Path) -> list[str]:
    """The operator's command line with its placeholders filled."""
    values = {
        "{task_id}": context.task_id,
        "{attempt}": str(context.attempt),
        "{prompt_file}": str(context.prompt_file),
        "{workspace}": str(context.workspace),
    }
    return [fill(_at_home(word, root, context.workspace), values) for word in argv]


def _at_home(word: str, root: Path, workspace: Path) -> str:
    """The full path of an operator's file, because a workspace may hold another file of that name."""
    own = root / word
    relative = bool(word) and not word.startswith(("/", "-")) and "{" not in word
    return str(own) if relative and workspace != root and own.is_file() else word


def fill(word: str, values: Mapping[str, str]) -> str:
    """Replaces the known placeholders in one pass, so that a value cannot smuggle in another placeholder."""
    parts: list[str] = []
    rest = word
    while rest:
        hits = [(rest.find(mark), mark) for mark in values if mark in rest]
        if not hits:
            break
        at, mark = min(hits)
        parts += [rest[:at], values[mark]]
        rest = rest[at + len(mark) :]
    return "".join([*parts, rest])


def identity(context: AttemptContext) -> dict[str, str]:
    """The variables that tell an agent process what it works on."""
    return {
        "GANGER_RUN_ID": context.run_id,
        "GANGER_TASK_ID": context.task_id,
        "GANGER_ATTEMPT": str(context.attempt),
        "GANGER_ROLE": context.role,
        "GANGER_WORKSPACE": str(context.workspace),
    }


def make(name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> CommandAgent:
    if not given.argv:
        fault = Fault(f"agents.{name}.argv", "MISSING_REQUIRED_FIELD", "name the program to run")
        raise InputError("ganger.toml", [fault])
    made = CommandAgent(name, argv=given.argv, prompt=given.prompt, passed=given.env, environ=environ, root=root)
    made.model = given.model
    return made

"""The common part of all real agent programs: finding, calling, equipping, watching, reading and checking them.

One kind is one file: a subclass that names its program, its variables and its arguments, and a reader of its output.
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ganger.agents.command import identity
from ganger.agents.settings import AgentSettings
from ganger.agents.streams import LastHeard
from ganger.agents.versions import cache_in, is_other_major, version_of
from ganger.contracts.heal_decision import HealDecision
from ganger.contracts.parser import Parsed, Refused, parse_heal, parse_result
from ganger.contracts.task_result import TaskResult
from ganger.core.signs import Heard, Sign
from ganger.core.verify.environment import tokens_in, tool_environment
from ganger.errors import GangerError
from ganger.ports.agents import AgentHealth, AttemptContext, Capabilities, Reader
from ganger.ports.processes import Launch, Launcher, Running

_NAMES = uuid.UUID("6f1f2f0e-6a57-4d0c-9a3e-3f1f6f0a9d11")


class CliAgent(ABC):
    """`variables` are settings the program itself reads, none of them secret; those the operator has set are passed on.

    `keys` are variables that may hold its key, the best first: one of them is passed on, or none if `key_env` names
    another. `headers` are other settings that may hold a secret. `logins` are files of the operator's home that hold
    a login, copied into the agent's own home if no key is set. `tried` is the version this adapter was tried with.
    """

    kind = ""
    program = ""
    tried = ""
    capabilities = Capabilities(stdin_prompt=True, stream=True)
    variables: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    login_hint = ""
    install_hint = ""

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        self.name, self.given, self.root = name, given, root
        self.environ = environ
        self.argv = given.argv or (self.program,)
        names = (given.key_env,) if given.key_env else self.usable_keys()
        chosen = next(((name,) for name in names if environ.get(name)), ())
        wanted = (*self.usable_variables(), *self.headers, *chosen, *given.env)
        self.passed = {name: environ[name] for name in wanted if name in environ}
        self._heard = LastHeard()
        self._completed: Heard | None = None

    # --- what a kind defines ----------------------------------------------------------------------------------------

    def usable_variables(self) -> tuple[str, ...]:
        """The `variables` that matter with these settings."""
        return self.variables

    def usable_keys(self) -> tuple[str, ...]:
        """The `keys` that fit these settings."""
        return self.keys

    @abstractmethod
    def arguments(self, context: AttemptContext) -> list[str]:
        """Everything after the program's name, but for the operator's own arguments."""

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        """Variables that are always set: no telemetry, no self-update, few retries."""
        return {}

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        """The program's own settings files, by their path in its home."""
        return {}

    @abstractmethod
    def reader(self) -> Reader:
        """A reader of this program's output."""

    # --- the port -----------------------------------------------------------------------------------------------------

    def furnish(self, context: AttemptContext) -> Mapping[str, bytes]:
        return {**self._copied(), **self.files(context)}

    def repaired(self, home: Path, session: str) -> Mapping[str, bytes]:
        """Corrected files of a session, without which it cannot continue, by their path in the home."""
        return {}

    def prepare(self, context: AttemptContext) -> Launch:
        return Launch(
            key=str(context.log_path),
            argv=(*self._program(), *self.arguments(context), *self.given.args),
            cwd=context.workspace,
            env=self._environment(context),
            stdin_path=context.prompt_file,
            log_path=context.log_path,
            timeout_sec=context.timeout_sec,
            programs=tuple(filter(None, (self._found(),))),
        )

    async def execute(self, launch: Launch, launcher: Launcher) -> Running:
        return await launcher.start(launch)

    def hear(self, log: Path, home: Path | None = None) -> Heard:
        """`home` is the agent's home: some programs record their usage, or their session's name, only there."""
        try:
            heard = self._heard.get(self.reader(), log)
            if home is not None and heard is not self._completed:
                heard.add(self.kept(home, log, heard))
                self._completed = heard
        except (OSError, GangerError):
            raise
        except Exception as error:
            message = f"the adapter for {self.kind!r} failed on its agent's output: {type(error).__name__}: {error}"
            raise GangerError(message, hint=f"ganger parse events --agent {self.kind} LOG shows where") from error
        return heard

    def kept(self, home: Path, log: Path, heard: Heard) -> Iterable[Sign]:
        """Signals that the process left in its home and not in its output."""
        return ()

    def extract_result(self, log: Path, task_id: str) -> Parsed[TaskResult] | Refused:
        return parse_result(self.hear(log).answer.encode("utf-8", "replace"), task_id=task_id)

    def extract_heal(self, log: Path) -> Parsed[HealDecision] | Refused:
        return parse_heal(self.hear(log).answer.encode("utf-8", "replace"))

    def healthcheck(self) -> AgentHealth:
        found = self._found()
        if found is None:
            return AgentHealth(False, details=(f"program {self.argv[0]!r} was not found; {self.install_hint}",))
        version, login = self.version(), self.has_login()
        notes = [f"tried with {self.tried}; this is another generation"] if is_other_major(version, self.tried) else []
        if login is False:
            return AgentHealth(False, version, (f"not logged in: {self.login_hint}", *notes), login=False)
        return AgentHealth(True, version, (found, *notes), login=login)

    # --- parts --------------------------------------------------------------------------------------------------------

    @property
    def model(self) -> str:
        return self.given.model

    @property
    def permissions(self) -> str:
        return self.given.permissions

    def may_all(self, context: AttemptContext) -> bool:
        """Whether the program's own questions are switched off: inside Ganger's sandbox, or if the operator says so."""
        return self.permissions == "full" or (self.permissions == "auto" and context.walled)

    def key(self) -> str:
        """The variable that holds the key; empty if none is set."""
        names = (self.given.key_env,) if self.given.key_env else self.keys
        return next((name for name in names if self.passed.get(name)), "")

    def credentials(self) -> str:
        """A description of the credentials; never the key itself."""
        if variable := self.given.key_env or self.key():
            return f"the key in {variable}"
        files = ", ".join(f"~/{name}" for name, _ in self._login_files())
        return f"the login in {files}" if files else "no key and no login"

    def secrets(self) -> Mapping[str, str]:
        """The values it was given deliberately, by name: named in the settings, its key, the tokens of its login."""
        handed = {name: value for name, value in self.passed.items() if name not in self.variables}
        tokens = {f"{name} {place}": text for name, data in self._copied().items() for place, text in tokens_in(data)}
        return handed | tokens

    def has_login(self) -> bool | None:
        """None if the operator's own settings may hold one that cannot be seen from here."""
        if self.key() or any(True for _ in self._login_files()):
            return True
        given = self.given
        return None if given.args or given.env or given.home_files is not None or sys.platform == "darwin" else False

    def version(self) -> str:
        """The version the program prints; empty if it prints none."""
        env = {**tool_environment(self.environ), **self._quiet()}
        return version_of(self._program(), env, cache_in(self.environ))

    def _quiet(self) -> Mapping[str, str]:
        return {"NO_COLOR": "1", "CI": "1"}

    def fresh_session(self, context: AttemptContext) -> str:
        """An id for a new session, chosen by Ganger: always the same for one attempt, and different for every other."""
        return str(uuid.uuid5(_NAMES, f"{context.log_path}#{context.attempt}"))

    def _found(self) -> str | None:
        program = self.argv[0]
        place = str(self.root / program) if "/" in program else program
        return shutil.which(place, path=self.environ.get("PATH"))

    def _program(self) -> tuple[str, ...]:
        """The program's path: always the operator's file, never one of the same name in the agent's working folder."""
        return (self._found() or self.argv[0], *self.argv[1:])

    def _environment(self, context: AttemptContext) -> dict[str, str]:
        home = {"HOME": str(context.home)} if context.home is not None else {}
        return {
            **tool_environment(self.environ),
            "NO_COLOR": "1",
            **home,
            **self.settings(context),
            **self.passed,
            **identity(context),
            **context.environment,
        }

    def _login_files(self) -> Iterator[tuple[str, Path]]:
        own = Path(self.environ.get("HOME") or "/")
        for name in self.given.home_files if self.given.home_files is not None else self.logins:
            path = own / name
            if path.is_file() and os.access(path, os.R_OK):
                yield name, path

    def _copied(self) -> dict[str, bytes]:
        """The copied files: a login only if there is no key; files named by the operator always."""
        if self.given.home_files is None and self.key():
            return {}
        return {name: path.read_bytes() for name, path in self._login_files()}

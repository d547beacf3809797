"""The `acp` agent: any program that speaks the Agent Client Protocol over its stdin and stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ganger.agents.acp.client import Errand
from ganger.agents.acp.profiles import PROFILES, profile_of
from ganger.agents.cli import CliAgent
from ganger.agents.settings import AgentSettings
from ganger.agents.sign_lines import decode
from ganger.core.signs import Heard, Sign
from ganger.errors import Fault, InputError
from ganger.ports.agents import AttemptContext, Capabilities
from ganger.ports.processes import Launch


class AcpAgent(CliAgent):
    """`profile` names the agent, or `argv` the program; a program without a profile gets the plain protocol."""

    kind = "acp"
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True)
    install_hint = "install it or correct argv"
    login_hint = "log in with the program itself, or set its key"

    def __init__(self, name: str, given: AgentSettings, root: Path, environ: Mapping[str, str]) -> None:
        if given.profile and given.profile not in PROFILES:
            message = f"there is no profile {given.profile!r}; known: {', '.join(PROFILES)}; for another agent set argv"
            raise InputError("ganger.toml", [Fault(f"agents.{name}.profile", "SCHEMA_VIOLATION", message)])
        if not given.profile and not given.argv:
            message = f"name a profile ({', '.join(PROFILES)}) or the program with argv"
            raise InputError("ganger.toml", [Fault(f"agents.{name}.profile", "MISSING_REQUIRED_FIELD", message)])
        self.profile = profile_of(given.profile, Path(given.argv[0]).name if given.argv else "")
        self.program, self.tried = self.profile.program, self.profile.tried
        self.capabilities = replace(self.capabilities, tokens=self.profile.usage != "none", usd=self.profile.usd)
        super().__init__(name, given, root, environ)
        self.like = self.profile.like(name, replace(given, args=()), root, environ) if self.profile.like else None
        if self.like is not None:
            self.passed, self.logins = self.like.passed, self.like.logins
            self.keys, self.login_hint = self.like.keys, self.like.login_hint

    def prepare(self, context: AttemptContext) -> Launch:
        # Modules come from where Ganger is installed, never from the folder the agent works in.
        talk = (sys.executable, "-P", "-X", "utf8", "-m", "ganger.agents.acp.client")
        errand = self.errand(context)
        # Its own arguments are repeated here, so that the sandbox shows the files they name.
        return replace(super().prepare(context), argv=(*talk, errand.written(), *errand.argv))

    def errand(self, context: AttemptContext) -> Errand:
        profile, allow = self.profile, "all" if self.may_all(context) else "edit"
        return Errand(
            (*self._program(), *self.arguments(context), *self.given.args),
            session=context.session,
            allow=allow,
            mode=profile.modes.get(allow, ""),
            model=self.given.model,
            auth=profile.auth,
            errors=profile.errors,
            retrying=profile.retrying,
            usage=profile.usage,
        )

    def arguments(self, context: AttemptContext) -> list[str]:
        flag = [self.profile.model_flag, self.given.model] if self.profile.model_flag and self.given.model else []
        return [*(word for word in self.profile.arguments if word not in self.argv), *flag]

    def settings(self, context: AttemptContext) -> Mapping[str, str]:
        profile, own = self.profile, self.like.settings(context) if self.like is not None else {}
        model = {profile.model_variable: self.given.model} if profile.model_variable and self.given.model else {}
        return {**own, **profile.variables, **model}

    def files(self, context: AttemptContext) -> Mapping[str, bytes]:
        own = self.like.files(context) if self.like is not None else {}
        return {**own, **(self.profile.files(self) if self.profile.files is not None else {})}

    def has_login(self) -> bool | None:
        return self.like is None or self.like.has_login()

    def repaired(self, home: Path, session: str) -> Mapping[str, bytes]:
        return self.like.repaired(home, session) if self.like is not None else {}

    def credentials(self) -> str:
        return self.like.credentials() if self.like is not None else super().credentials()

    def kept(self, home: Path, log: Path, heard: Heard) -> Iterable[Sign]:
        return self.like.kept(home, log, heard) if self.like is not None and heard.over is None else ()

    def reader(self) -> AcpReader:
        return AcpReader()


class AcpReader:
    """What `acp_talk` printed; everything else in the log is the program's stderr."""

    def line(self, line: bytes) -> Iterable[Sign]:
        sign = decode(line)
        return () if sign is None else (sign,)

    def end(self) -> Iterable[Sign]:
        return ()

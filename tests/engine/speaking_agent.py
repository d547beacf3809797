"""The adapter of the stand-in, and how a package that is not Ganger's makes it known."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganger.agents.cli import CliAgent
from ganger.agents.streams import amount, number, read_json, text
from ganger.core.signs import Denied, Limited, LoginMissing, Model, Over, Said, Session, Sign, Tokens
from ganger.ports import AttemptContext, Capabilities

PROGRAM = Path(__file__).with_name("speaker.py")


class SpeakingReader:
    def line(self, line: bytes) -> Iterator[Sign]:
        data = read_json(line)
        match text(data, "type"):
            case "begin":
                yield Session(text(data, "session"))
                yield Model(text(data, "model"))
            case "said":
                yield Said(text(data, "text"))
            case "denied":
                yield Denied(text(data, "tool"), text(data, "about"))
            case "limit":
                yield Limited(text(data, "text"), reset_at=amount(data, "reset_at"))
            case "login":
                yield LoginMissing(text(data, "text"))
            case "tokens":
                yield self._tokens(data)
            case "over":
                yield Over("no_session" if text(data, "how") == "no_session" else "success")

    def _tokens(self, data: object) -> Tokens:
        return Tokens(
            number(data, "input"),
            number(data, "output"),
            usd=amount(data, "usd"),
            session_tokens=bool(number(data, "running")),
            session_usd=bool(number(data, "running")),
        )

    def end(self) -> Iterator[Sign]:
        yield from ()


class SpeakingAgent(CliAgent):
    kind = "speaker"
    program = sys.executable
    capabilities = Capabilities(stdin_prompt=True, stream=True, resume=True, tokens=True, usd=True)

    def arguments(self, context: AttemptContext) -> list[str]:
        words = ["--resume", context.session] if context.session else []
        return words + (["--model", self.given.model] if self.given.model else [])

    def has_login(self) -> bool | None:
        return None

    def reader(self) -> SpeakingReader:
        return SpeakingReader()


def advertise(site: Path, kind: str, target: str) -> Path:
    """What installing such a package leaves behind: a folder that names its entry point."""
    info = site / f"{kind}_for_ganger-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {kind}-for-ganger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ganger.agents]\n{kind} = {target}\n")
    return site


@dataclass(frozen=True)
class Speech:
    """What the program does at each start, and how it was called so far."""

    plan: Path

    def write(self, *attempts: Sequence[dict[str, Any]]) -> str:
        """The section of the config for it."""
        self.plan.write_text(json.dumps(attempts))
        return f'kind = "speaker"\nargv = ["{sys.executable}", "{PROGRAM}", "{self.plan}"]'

    def starts(self) -> list[dict[str, Any]]:
        text = self.plan.with_suffix(".starts").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def sessions(self) -> list[str]:
        """The session each start was told to continue."""
        return [call["argv"][-1] if "--resume" in call["argv"] else "" for call in self.starts()]

"""The adapter of the stand-in, and how a package that is not Ganger's makes it known."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ganger.agents.cli import CliAgent
from ganger.agents.streams import amount, number, read_json, text
from ganger.core.signs import Denied, Limited, LoginMissing, Model, Over, Said, Session, Sign, Tokens
from ganger.ports.agents import AttemptContext, Capabilities

PROGRAM = Path(__file__).with_name("speaker.py")
ENDS: dict[str, Over] = {"no_session": Over("no_session"), "network": Over("network", "HTTP 500")}


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
                yield ENDS.get(text(data, "how"), Over("success"))

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


class DeafReader:
    def line(self, _line: bytes) -> Iterator[Sign]:
        yield from ()

    def end(self) -> Iterator[Sign]:
        yield from ()


class StrangeAgent(SpeakingAgent):
    """Another kind, which understands nothing of what the first one prints."""

    kind = "stranger"

    def reader(self) -> DeafReader:  # type: ignore[override]
        return DeafReader()


def speaking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Speech:
    """The stand-in's kinds are there as if a package had brought them, in this process and in others."""
    site = advertise(folder / "site", "speaker", "tests.engine.speaking_agent:SpeakingAgent")
    advertise(site, "stranger", "tests.engine.speaking_agent:StrangeAgent")
    monkeypatch.syspath_prepend(site)
    given = filter(None, (str(site), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(given))
    return Speech(folder / "plan.json")


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

    def sibling(self, name: str) -> Speech:
        """Another program with a plan of its own."""
        return Speech(self.plan.with_name(f"{name}.json"))

    def starts(self) -> list[dict[str, Any]]:
        path = self.plan.with_suffix(".starts")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def sessions(self) -> list[str]:
        """The session each start was told to continue."""
        return [call["argv"][-1] if "--resume" in call["argv"] else "" for call in self.starts()]

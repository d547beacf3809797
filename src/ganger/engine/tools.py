"""What every attempt of a run uses, put together once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ganger.core.records import TaskSpec
from ganger.engine.files import RunFolder
from ganger.engine.journal import Journal
from ganger.engine.overlay import Overlay
from ganger.engine.turns import Turns
from ganger.engine.verification import Checks
from ganger.ports import Agent, Clock, Launcher, Repository, RoleRules, Sandbox, Watch, Workspace


@dataclass(frozen=True)
class Tools:
    """`repository` is there in the git modes, `watch` in direct mode."""

    journal: Journal
    folder: RunFolder
    workspace: Workspace
    launcher: Launcher
    clock: Clock
    agents: dict[str, Agent]
    checks: Checks
    turns: Turns
    overlay: Overlay
    sandbox: Sandbox
    repository: Repository | None = None
    watch: Watch | None = None
    roles: Mapping[str, RoleRules] = field(default_factory=dict)
    expected_must_come: bool = False
    merge_batch: int = 8
    own_gates_only: bool = False
    output_limit_bytes: int | None = None
    rules: tuple[str, ...] = ()
    heal_in_place: bool = False
    contents: Callable[[Sequence[TaskSpec]], dict[str, str]] = lambda _specs: {}
    heal_timeout_sec: float = 900.0


def one_line(text: str, longest: int = 500) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())[:longest]

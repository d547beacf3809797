"""What all attempts of a run use, put together once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ganger.core.events import Recorded
from ganger.core.failures.retries import is_reassigned
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.task_state import TaskState
from ganger.core.money.pricing import Price
from ganger.core.scheduling.health import HealthPolicy
from ganger.engine.journal import Journal
from ganger.engine.prompts.patched_prompts import PatchedPrompts
from ganger.engine.resources.agent_homes import Homes
from ganger.engine.resources.delivery_target import DeliveryTarget
from ganger.engine.resources.folder_lock import FolderLock
from ganger.engine.resources.live_attempts import FolderActivity, LiveAttempts
from ganger.engine.resources.worker_tokens import WorkerTokens
from ganger.engine.verification.checks import Checks
from ganger.local.run_folder import RunFolder
from ganger.ports.agents import Agent
from ganger.ports.changes import RoleRules
from ganger.ports.clock import Clock
from ganger.ports.copies import Copies
from ganger.ports.endpoint import Endpoint
from ganger.ports.fixed import Fixed
from ganger.ports.processes import Launcher
from ganger.ports.repository import Repository
from ganger.ports.sandbox import Sandbox
from ganger.ports.workspace import Watch, Workspace


@dataclass(frozen=True, slots=True)
class Stronger:
    """A role's agent with a stronger model, and which of a task's marks ask for it."""

    agent: Agent
    when: frozenset[str]


class Outside(Protocol):
    """Tells outside programs and people what happens; never delays the run."""

    def on_event(self, recorded: Recorded) -> None: ...

    async def close(self) -> None: ...


class Doorbell(Protocol):
    """Where a forge announces news."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WorkerProgram:
    """How a sandboxed agent calls `ganger worker`: a folder with a small program, and what that needs to read."""

    folder: Path
    needs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class RunResources:
    """`repositories` are set in the git modes, by the names that tasks use; `outlets` are how their changes leave the
    machine; `watch` and `fixed` are set in direct mode. `agents` are by role; `strong` are those a role
    has for tasks that need a stronger model, `fallback` those that take over if the usual one stalls. `reading`
    gives the agent that reads the output of another `NAME/KIND`. `shown` removes secrets from what agents say."""

    journal: Journal
    folder: RunFolder
    workspace: Workspace
    launcher: Launcher
    clock: Clock
    agents: dict[str, Agent]
    checks: Checks
    turns: FolderLock
    overlay: PatchedPrompts
    sandbox: Sandbox
    homes: Homes
    repositories: Mapping[str, Repository] = field(default_factory=dict)
    outlets: Mapping[str, DeliveryTarget] = field(default_factory=dict)
    webhooks: Callable[[Callable[[str], None]], Doorbell | None] = lambda _nudge: None
    warned: set[tuple[str, str, str, str]] = field(default_factory=set)
    watch: Watch | None = None
    copies: Copies | None = None
    fixed: Fixed | None = None
    roles: Mapping[str, RoleRules] = field(default_factory=dict)
    expected_must_come: bool = False
    merge_batch: int = 8
    own_gates_only: bool = False
    output_limit_bytes: int | None = None
    rules: tuple[str, ...] = ()
    prompt_budget: int = 0
    heal_in_place: bool = False
    contents: Callable[[Sequence[TaskSpec]], dict[str, str]] = lambda _specs: {}
    heal_timeout_sec: float = 900.0
    strong: Mapping[str, Stronger] = field(default_factory=dict)
    prices: Mapping[str, Price] = field(default_factory=dict)
    fallback: Mapping[str, Agent] = field(default_factory=dict)
    health: HealthPolicy = field(default_factory=HealthPolicy)
    posts: LiveAttempts = field(default_factory=LiveAttempts)
    look_every_sec: float = 1.0
    notices: Outside | None = None
    badges: WorkerTokens | None = None
    endpoint: Endpoint | None = None
    tell_protocol: bool = True
    remind_sec: float = 4 * 3600.0
    eye: Callable[[Path], FolderActivity] | None = None
    worker_program: WorkerProgram | None = None
    windows_tokens: Mapping[str, int] = field(default_factory=dict)
    co_authors: Mapping[str, str] = field(default_factory=dict)

    reading: Callable[[str], Agent | None] = lambda _worked_by: None
    shown: Callable[[str], str] = lambda text: text

    @property
    def masked(self) -> Callable[[str], str]:
        """A text without what was passed to agents and checks."""
        return self.journal.masker.text

    def agent_of(self, spec: TaskSpec, task: TaskState | None = None, policy: Policy | None = None) -> Agent:
        """The agent that works on a task: the role's, a stronger one, or another one if that stalled too often."""
        if task is not None and policy is not None and spec.role in self.fallback and is_reassigned(task, policy):
            return self.fallback[spec.role]
        strong = self.strong.get(spec.role)
        return strong.agent if strong is not None and strong.when.intersection(spec.strong) else self.agents[spec.role]


def one_line(text: str, longest: int = 500) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())[:longest]

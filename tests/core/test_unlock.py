"""A halt that a person lifts: which deliveries go on with it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from ganger.core import events as ev
from ganger.core.control.commands import SKIPPED, act
from ganger.core.model.ledger import Delivery, RepoRules
from ganger.core.model.records import Policy, TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.state.apply import apply
from ganger.core.vocabulary import BlockReason, Mode, TaskStatus

AT = "2026-01-01T00:00:00.000Z"
ALL = ("verified", "committed", "pushed", "ci")
REPOS = (RepoRules("", completion=ALL), RepoRules("core", locks="shared"), RepoRules("app", ("core",), "shared"))


@dataclass(frozen=True)
class Asked:
    number: int
    kind: str
    data: dict[str, object]


def halted(*repos: str, detail: str = "it is halted") -> RunState:
    """A task in each repository, merged, and stopped before its push."""
    state, policy = RunState(), Policy()
    specs = tuple(TaskSpec(rules.name or "own", repo=rules.name) for rules in REPOS)
    events: list[ev.Event] = [
        ev.RunStarted("run", "digest", policy, specs),
        ev.LeadStarted(1, policy=policy, mode=Mode.LOCAL_GIT, repos=REPOS),
    ]
    events += [ev.ChainHalted(repo, "own", "a key") for repo in repos]
    for seq, event in enumerate(events, 1):
        apply(state, ev.Recorded(seq, AT, event))
    for name in state.tasks:
        apply(state, ev.Recorded(9, AT, ev.TaskSettled(name, TaskStatus.BLOCKED, detail, BlockReason.PAUSED)))
        state.tasks[name] = replace(state.tasks[name], delivery=Delivery(commit="a" * 40, pending=True))
    return state


def back(state: RunState, repo: str) -> list[str]:
    found = act(state, Asked(1, "unlock", {"repo": repo, "why": "replaced"}), 0.0)
    return [event.task for event in found if isinstance(event, ev.TaskRequeued)]


@pytest.mark.parametrize(
    ("halts", "freed", "go_on"),
    [
        ([""], ".", ["own"]),
        (["core"], "core", ["core", "app"]),
        (["core", "app"], "core", []),
        (["core", ""], ".", ["own"]),
    ],
)
def test_what_a_halt_stopped_goes_on_when_it_is_lifted(halts: list[str], freed: str, go_on: list[str]) -> None:
    """D12 D09: nobody has to retry each; what another halt of its chain stops stays."""
    assert back(halted(*halts), freed) == go_on


def test_what_a_person_left_out_stays_so() -> None:
    """G12: only a retry includes it again."""
    assert back(halted("", detail=SKIPPED), ".") == []

"""Which upstream commit broke what builds on it: histories of verdicts, bisected."""

from __future__ import annotations

import random

import pytest

from ganger.core.delivery.upstream import question, suspects
from ganger.core.model.ledger import RepoRules, RepoVerdict
from ganger.core.model.run_state import Chains, RunState
from ganger.core.model.task_state import TaskState

NEEDS = {"core": (), "lib": ("core",), "app": ("lib",), "tool": ("lib",)}
REPOS = {name: RepoRules(name, needs, "exclusive") for name, needs in NEEDS.items()}


def ledger(*lines: str) -> RunState:
    """A line is `repo commit +|- upstream=commit…`; the task is named after the commit."""
    state = RunState(chains=Chains(rules=dict(REPOS)))
    for number, line in enumerate(lines):
        repo, commit, word, *heads = line.split()
        built_on = tuple((name, sha) for name, _, sha in (head.partition("=") for head in heads))
        state.pushes.verdicts.append(RepoVerdict(repo, commit, f"t-{commit}", word == "+", f"at{number}", built_on))
    return state


# What happened, who is red at which commit, and the suspects in order.
HISTORIES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "one commit upstream since the last green": (("app a1 + lib=", "lib l1 +", "app a2 - lib=l1"), "app a2", "l1"),
    "nothing moved upstream: it broke by itself": (("lib l1 +", "app a1 + lib=l1", "app a2 - lib=l1"), "app a2", ""),
    "the newest of several": (("lib l1 +", "lib l2 +", "app a1 - lib=l2"), "app a1", "l2 l1"),
    "what it was green on is not it": (
        ("lib l1 +", "app a1 + lib=l1", "lib l2 +", "lib l3 +", "app a2 - lib=l3"),
        "app a2",
        "l3 l2",
    ),
    "what came after the redness began comes last": (
        ("lib l1 +", "app a1 - lib=l1", "lib l2 +", "app a2 - lib=l2"),
        "app a2",
        "l1 l2",
    ),
    "an own fault first, then one of upstream": (
        ("app a1 + lib=", "app a2 - lib=", "lib l1 +", "app a3 - lib=l1"),
        "app a3",
        "l1",
    ),
    "a green verdict in between starts anew": (
        ("lib l1 +", "app a1 - lib=l1", "lib l2 +", "app a2 + lib=l2", "lib l3 +", "app a3 - lib=l3"),
        "app a3",
        "l3",
    ),
    "the nearer repository before the farther": (
        ("core c1 +", "lib l1 + core=c1", "app a1 - lib=l1 core=c1"),
        "app a1",
        "l1 c1",
    ),
    "another repository that broke with it says so": (
        ("lib l1 +", "tool t1 - lib=l1", "lib l2 +", "app a1 - lib=l2"),
        "app a1",
        "l1 l2",
    ),
    "another one that was green with it speaks for it": (
        ("lib l1 +", "lib l2 +", "tool t1 + lib=l2", "lib l3 +", "app a1 - lib=l3"),
        "app a1",
        "l3 l2 l1",
    ),
    "it speaks for a near one against a far one": (
        ("core c1 +", "lib l1 + core=c0", "tool t1 + lib=l1 core=c0", "app a1 - lib=l1 core=c1"),
        "app a1",
        "c1 l1",
    ),
    "a red commit upstream was never built on": (("lib l1 -", "lib l2 +", "app a1 - lib=l2"), "app a1", "l2"),
    "what was proved after the verdict is not it": (("lib l1 +", "app a1 - lib=l1", "lib l2 +"), "app a1", "l1"),
    "a verdict nobody gave": (("lib l1 +", "app a1 + lib=l1"), "app a1", ""),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_the_ledger_names_who_can_have_broken_it(case: str) -> None:
    """D13: repos, tasks and commits, the likeliest first."""
    lines, red, expected = HISTORIES[case]
    found = suspects(ledger(*lines), *red.split())
    assert [suspect.commit for suspect in found] == expected.split()
    assert all(suspect.task == f"t-{suspect.commit}" for suspect in found)


@pytest.mark.parametrize("seed", range(200))
def test_the_culprit_is_always_among_the_suspects_and_first_when_it_is_alone(seed: int) -> None:
    """D13: random histories in which one commit of lib breaks app from then on."""
    chance = random.Random(seed)
    culprit, lines, head = chance.randrange(1, 9), list[str](), 0
    for number in range(60):
        if chance.random() < 0.4 and head < 10:
            head += 1
            lines.append(f"lib l{head} +")
            continue
        red = head >= culprit
        lines.append(f"app a{number} {'-' if red else '+'} lib=l{head}")
        if red:
            break
    else:
        return
    found = suspects(ledger(*lines), "app", lines[-1].split()[1])
    green = max((int(line.rpartition("l")[2]) for line in lines if " + lib=" in line), default=0)
    assert [s.commit for s in found] == [f"l{n}" for n in range(head, green, -1)]
    assert f"l{culprit}" in {s.commit for s in found}


def test_the_question_names_the_commit_and_offers_the_three_ways() -> None:
    """D13: revert, fix below, or both together."""
    state = ledger("lib l1 +", "lib l2 +", "app a1 - lib=l2")
    state.tasks["t-l2"] = TaskState()
    asked = question(state, "app", "a1")
    assert asked is not None and "app is red at a1" in asked.text and "lib l2 (task t-l2)" in asked.text
    assert [option.split()[0] for option in asked.options] == ["revert", "fix", "both"]
    assert "lib l2 (task t-l2)" in asked.options[0]


def test_nobody_is_asked_about_what_broke_by_itself() -> None:
    """D13"""
    assert question(ledger("app a1 + lib=l0", "app a2 - lib=l0"), "app", "a2") is None

"""Repositories by name: chains, phases, faults of the graph; the seed's ten and all their pairs."""

from __future__ import annotations

import itertools

import pytest

from ganger.core.model.records import TaskSpec
from ganger.core.planning.plan import make_plan
from ganger.core.planning.repos import can_spawn, graph_faults, make_graph

TEN: dict[str, tuple[str, ...]] = {
    "acdc-core": (),
    "alphavm": ("acdc-core",),
    "deltavm": ("acdc-core",),
    "adnet": ("alphavm", "deltavm", "acdc-core"),
    "alphaos": ("alphavm", "acdc-core"),
    "deltaos": ("deltavm", "acdc-core"),
    "ac-dc": ("adnet",),
    "adl": ("acdc-core",),
    "adl-examples": ("adl",),
    "sdk": (),
}
SIDE_BY_SIDE = [("alphavm", "deltavm"), ("alphavm", "adl"), ("deltavm", "adl"), ("alphaos", "deltaos")]
SIDE_BY_SIDE += [("sdk", other) for other in TEN if other != "sdk"]
APART = [
    ("alphavm", "adnet"),
    ("alphavm", "alphaos"),
    ("deltavm", "adnet"),
    ("deltavm", "deltaos"),
    ("acdc-core", "alphavm"),
    ("acdc-core", "deltavm"),
    ("adnet", "ac-dc"),
]


@pytest.mark.parametrize(("one", "other"), SIDE_BY_SIDE)
def test_siblings_and_the_independent_run_side_by_side(one: str, other: str) -> None:
    """D08: the seed's parallel pairs, either way round."""
    assert can_spawn(TEN, {one}, other) and can_spawn(TEN, {other}, one)


@pytest.mark.parametrize(("one", "other"), APART)
def test_nobody_works_above_or_below_an_active_one(one: str, other: str) -> None:
    """D08: the seed's pairs that may not run together; the answer names who is in the way."""
    for active, wanted in ((one, other), (other, one)):
        answer = can_spawn(TEN, {active}, wanted)
        assert not answer and active in answer.why and wanted in answer.why


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(TEN, 2)))
def test_each_pair_is_apart_exactly_when_one_reaches_the_other(one: str, other: str) -> None:
    """D08: transitively, over all 45 pairs."""

    def reaches(start: str, end: str) -> bool:
        return any(need == end or reaches(need, end) for need in TEN[start])

    assert bool(can_spawn(TEN, {one}, other)) is not (reaches(one, other) or reaches(other, one))


def test_one_repository_has_one_worker_and_an_unknown_one_none() -> None:
    """D08"""
    assert not can_spawn(TEN, {"sdk"}, "sdk") and can_spawn(TEN, (), "sdk")
    assert "no repository nope" in can_spawn(TEN, (), "nope").why


def test_phases_go_from_the_roots_to_what_builds_on_them() -> None:
    """D10: the seed's four."""
    assert [set(row) for row in make_graph(TEN).phases] == [
        {"acdc-core", "sdk"},
        {"alphavm", "deltavm", "adl"},
        {"adnet", "alphaos", "deltaos", "adl-examples"},
        {"ac-dc"},
    ]


def test_chains_are_transitive_and_the_nearest_comes_first() -> None:
    """D08"""
    graph = make_graph(TEN)
    assert graph.upstream["ac-dc"] == ("adnet", "alphavm", "deltavm", "acdc-core")
    assert set(graph.downstream["alphavm"]) == {"adnet", "alphaos", "ac-dc"} and graph.chain("sdk") == ()


def test_roots_come_first_then_depth_priority_and_place() -> None:
    """D10 T02: a task that needs one of a later phase belongs to that phase too."""
    specs = (
        TaskSpec("top", repo="ac-dc", priority=0),
        TaskSpec("mid", repo="alphavm"),
        TaskSpec("late-root", ("mid",), repo="acdc-core"),
        TaskSpec("root-2", ("root",), repo="acdc-core"),
        TaskSpec("root", repo="acdc-core"),
        TaskSpec("here", priority=1),
    )
    assert make_plan(specs, make_graph(TEN).phase).order == ("here", "root", "root-2", "mid", "late-root", "top")


def test_without_phases_the_order_is_as_ever() -> None:
    """T02 D10"""
    specs = (TaskSpec("a", repo="x"), TaskSpec("b", priority=1, repo="y"))
    assert make_plan(specs).order == make_plan(specs, {}).order == ("b", "a")


def test_one_name_in_two_repositories_is_two_files() -> None:
    """T02 D08: only tasks of one repository can clash."""
    specs = (TaskSpec("a", writes=("x",), repo="one"), TaskSpec("b", writes=("x", "*"), repo="two"))
    assert make_plan(specs).clashes == ()
    assert make_plan((*specs, TaskSpec("c", writes=("X",), repo="two"))).clashes[0].tasks == ("b", "c")


FAULTS: dict[str, tuple[dict[str, tuple[str, ...]], list[tuple[str, str]]]] = {
    "sound": (TEN, []),
    "unknown": ({"a": ("b", "c"), "b": ()}, [("repos.a.depends_on[1]", "UNKNOWN_REPO")]),
    "itself": ({"a": ("a",)}, [("repos.a.depends_on[0]", "REPO_CYCLE")]),
    "circle": (
        {"a": ("b",), "b": ("x", "c"), "c": ("a",)},
        [("repos.b.depends_on[0]", "UNKNOWN_REPO"), ("repos.a.depends_on[0]", "REPO_CYCLE")],
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_every_fault_of_the_graph_is_named_at_its_place(case: str) -> None:
    """D08: all of them at once, each with its code."""
    needs, expected = FAULTS[case]
    assert [(fault.path, fault.code) for fault in graph_faults(needs)] == expected

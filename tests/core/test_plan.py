"""The plan: order, levels, clashes, and every fault of a task graph named at its place."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hypothesis import given, strategies as st

from ganger.core.model.records import TaskSpec
from ganger.core.planning.plan import Clash, GraphEntry, graph_faults, make_plan
from ganger.core.planning.specs import graph_entries


def order(*specs: TaskSpec) -> list[str]:
    return list(make_plan(specs).order)


def faults(*tasks: tuple[str, Sequence[str]]) -> list[tuple[str, str]]:
    found = graph_faults(GraphEntry(n, name, tuple(needs)) for n, (name, needs) in enumerate(tasks))
    return [(fault.path, fault.code) for fault in found]


def messages(*tasks: tuple[str, Sequence[str]]) -> list[str]:
    found = graph_faults(GraphEntry(n, name, tuple(needs)) for n, (name, needs) in enumerate(tasks))
    return [fault.message for fault in found]


def test_depth_comes_before_priority_and_priority_before_the_place_in_the_manifest() -> None:
    """T02: order is dependency depth, then lower priority, then manifest index."""
    specs = (
        TaskSpec("deep", ("first",), priority=-100),
        TaskSpec("second"),
        TaskSpec("first", priority=1),
        TaskSpec("third"),
    )
    assert order(*specs) == ["first", "second", "third", "deep"]


def test_no_priority_is_last_and_negative_zero_and_fractions_are_numbers() -> None:
    """T02: lower goes first; none is last, also behind large numbers."""
    given_priorities = {"none": None, "big": 10**9, "zero": 0, "minus": -1, "half": 0.5, "minus-half": -0.5}
    specs = [TaskSpec(name, priority=number) for name, number in given_priorities.items()]
    assert order(*specs) == ["minus", "minus-half", "zero", "half", "big", "none"]


def test_levels_hold_the_tasks_of_one_depth_in_order() -> None:
    """T02 Z08: the longest chain of dependencies counts."""
    specs = (TaskSpec("d", ("a", "c")), TaskSpec("a"), TaskSpec("b"), TaskSpec("c", ("b",)))
    assert make_plan(specs).levels == (("a", "b"), ("c",), ("d",))


def test_a_dependency_named_twice_counts_once() -> None:
    """T02: repeated entries neither delay a task nor raise its depth."""
    assert make_plan((TaskSpec("b", ("a", "a")), TaskSpec("a"))).levels == (("a",), ("b",))


def test_two_tasks_of_one_level_that_write_one_file_clash() -> None:
    """Z08: the clash names file, level and tasks; other levels do not count."""
    specs = (
        TaskSpec("a", writes=("x", "y")),
        TaskSpec("b", writes=("x",)),
        TaskSpec("c", ("a",), writes=("x", "y")),
    )
    assert make_plan(specs).clashes == (Clash("x", 0, ("a", "b")),)


def test_an_empty_plan_is_a_plan() -> None:
    """T02: no tasks, no levels."""
    assert make_plan(()).order == () and make_plan(()).levels == ()


def test_every_fault_of_a_graph_is_reported_at_once_with_its_place() -> None:
    """T02: duplicate, unknown, self and cycle together."""
    found = faults(("a", ["ghost", "b"]), ("b", ["a"]), ("c", ["c"]), ("a", []), ("d", ["b", "gone"]))
    assert sorted(found) == [
        ("tasks[0].depends_on[0]", "UNKNOWN_DEPENDENCY"),
        ("tasks[0].depends_on[1]", "CYCLE"),
        ("tasks[2].depends_on[0]", "SELF_DEPENDENCY"),
        ("tasks[3].id", "DUPLICATE_ID"),
        ("tasks[4].depends_on[1]", "UNKNOWN_DEPENDENCY"),
    ]


def test_a_cycle_is_printed_as_a_path_that_closes() -> None:
    """T02: the path leads back to where it began; tasks behind the cycle are not part of it."""
    (message,) = messages(("behind", ["b"]), ("a", ["c"]), ("b", ["a"]), ("c", ["b"]))
    assert "b -> a -> c -> b" in message


def test_each_of_several_cycles_is_printed() -> None:
    """T02: two separate cycles, two paths."""
    found = messages(("a", ["b"]), ("b", ["a"]), ("x", ["y"]), ("y", ["z"]), ("z", ["x"]), ("free", []))
    assert len(found) == 2 and "a -> b -> a" in found[0] and "x -> y -> z -> x" in found[1]


def test_a_long_cycle_is_shown_shortened_with_both_ends() -> None:
    """T02: 5,000 tasks in one ring, no recursion error, a readable message."""
    ring = [(f"t{n}", [f"t{(n + 1) % 5000}"]) for n in range(5000)]
    (message,) = messages(*ring)
    assert message.startswith("dependency cycle: t0 -> t1 -> ") and "more …" in message and len(message) < 400
    assert message.split(";")[0].endswith("t0")


def test_a_misspelt_dependency_gets_a_suggestion() -> None:
    """T02: the message helps to mend it."""
    (message,) = messages(("build-api", []), ("deploy", ["build-apj"]))
    assert "did you mean 'build-api'?" in message


def test_thousands_of_unknown_dependencies_are_named_quickly() -> None:
    """T02: a manifest whose ids were all renamed is refused in well under a second."""
    began = time.process_time()
    found = faults(*[(f"task-{n}", [f"tusk-{n}"]) for n in range(2000)])
    assert len(found) == 2000 and time.process_time() - began < 5


def test_entries_of_a_faulty_manifest_take_part_as_far_as_they_can() -> None:
    """T01 T02: whatever has an id is checked, whatever has none is left to the schema."""
    data = {"tasks": [{"id": "a", "depends_on": ["b", 3]}, 7, {"id": ""}, {"id": "b", "depends_on": "a"}]}
    assert [(e.index, e.id, e.depends_on) for e in graph_entries(data)] == [(0, "a", ("b",)), (3, "b", ())]
    assert list(graph_entries(["no", "manifest"])) == []


@st.composite
def graphs(draw: st.DrawFn) -> list[TaskSpec]:
    """Random acyclic graphs in random manifest order."""
    size = draw(st.integers(1, 25))
    names = [f"t{n}" for n in range(size)]
    specs = []
    for place, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:place]), max_size=4)) if place else []
        priority = draw(st.none() | st.integers(-3, 3) | st.floats(-2, 2))
        specs.append(TaskSpec(name, tuple(needs), priority))
    return draw(st.permutations(specs))


@given(graphs())
def test_the_order_is_topological_and_sorted_inside_each_level(specs: list[TaskSpec]) -> None:
    """T02: no task before what it needs; inside a level by priority, then place."""
    plan = make_plan(specs)
    rank = {name: n for n, name in enumerate(plan.order)}
    by_id = {spec.id: spec for spec in specs}
    place = {spec.id: n for n, spec in enumerate(specs)}
    assert all(rank[need] < rank[spec.id] for spec in specs for need in spec.depends_on)
    assert [name for level in plan.levels for name in level] == list(plan.order)
    for level in plan.levels:
        keys = [(by_id[n].priority is None, by_id[n].priority or 0, place[n]) for n in level]
        assert keys == sorted(keys)


@given(st.lists(st.tuples(st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefgh"), max_size=3)), max_size=9))
def test_graph_faults_are_empty_exactly_when_a_plan_can_be_made(tasks: list[tuple[str, list[str]]]) -> None:
    """T02: any graph, however broken, is judged without an error."""
    names = [name for name, _ in tasks]
    known = len(set(names)) == len(names) and all(set(needs) <= set(names) for _, needs in tasks)
    sound = known and _acyclic(dict(tasks))
    assert (faults(*tasks) == []) == sound


def _acyclic(graph: dict[str, list[str]]) -> bool:
    left = dict(graph)
    while free := [name for name, needs in left.items() if not set(needs) & set(left)]:
        for name in free:
            del left[name]
    return not left


def seconds_for(count: int) -> float:
    specs = [TaskSpec(f"t{n}", tuple({f"t{n // 2}", f"t{n - 1}"}) if n > 1 else ()) for n in range(count)]
    entries = [GraphEntry(n, s.id, s.depends_on) for n, s in enumerate(specs)]
    began = time.process_time()
    assert graph_faults(entries) == []
    assert len(make_plan(specs).order) == count
    return time.process_time() - began


def test_ten_thousand_tasks_in_one_chain_are_planned_at_once() -> None:
    """T02: depth costs no recursion and no time worth naming; `make bench` has the figures."""
    assert min(seconds_for(10_000) for _ in range(3)) < 2


def test_a_clash_is_seen_through_case_and_patterns() -> None:
    """Z08: what is one file on some systems, or covered by a pattern, is written by both."""
    specs = (TaskSpec("a", writes=("X/a.py",)), TaskSpec("b", writes=("x/*",)), TaskSpec("c", writes=("x/A.py",)))
    clashes = {frozenset(clash.tasks) for clash in make_plan(specs).clashes}
    assert frozenset({"a", "c"}) in clashes and any("b" in names for names in clashes)

"""The plan: the order of tasks, their levels, cycles as paths, and files that two tasks both write."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ganger.core.model.records import TaskSpec
from ganger.errors import Fault


@dataclass(frozen=True, slots=True)
class Clash:
    """A file that several tasks of one level declare they write."""

    file: str
    level: int
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    order: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    clashes: tuple[Clash, ...]


_NO_PHASES: Mapping[str, int] = {}


def make_plan(specs: Sequence[TaskSpec], phases: Mapping[str, int] = _NO_PHASES) -> Plan:
    """Order: dependency depth, lower priority (none is last), place in the manifest (T02). Needs a valid graph.

    `phases` are those of repositories: roots and repositories without dependencies come first (D10).
    """
    plan = plan_if_sound(specs, phases)
    if plan is None:
        raise ValueError("the graph has faults; ask graph_faults first")
    return plan


def plan_if_sound(specs: Sequence[TaskSpec], phases: Mapping[str, int] = _NO_PHASES) -> Plan | None:
    """The plan; None if ids are used twice, a dependency is unknown, or tasks depend on each other in a circle."""
    graph = {spec.id: spec.depends_on for spec in specs}
    depth = depths(graph)
    if len(graph) != len(specs) or len(depth) != len(graph):
        return None
    keyed = sorted(
        (depth[spec.id], spec.priority is None, spec.priority or 0, index, spec.id) for index, spec in enumerate(specs)
    )
    levels: list[list[str]] = [[] for _ in range(keyed[-1][0] + 1)] if keyed else []
    for level, _, _, _, task in keyed:
        levels[level].append(task)
    order = [k[-1] for k in keyed]
    if phases:
        # Sorting is stable, and no task's phase is lower than that of its dependencies.
        order.sort(key=_task_phases(order, {spec.id: spec for spec in specs}, phases).__getitem__)
    return Plan(tuple(order), tuple(map(tuple, levels)), _clashes(specs, depth))


def _task_phases(order: Sequence[str], specs: Mapping[str, TaskSpec], phases: Mapping[str, int]) -> dict[str, int]:
    """The phase of a task's repository, or the highest phase of its dependencies."""
    found: dict[str, int] = {}
    for task in order:
        spec = specs[task]
        found[task] = max([phases.get(spec.repo, 0), *(found[need] for need in spec.depends_on)])
    return found


def by_levels(plan: Plan, specs: Sequence[TaskSpec], given: Mapping[str, int]) -> Plan:
    """The same plan with levels set by hand: they decide what runs first; within a level the order stays."""
    order = sorted(plan.order, key=lambda task: given[task])
    levels: list[list[str]] = [[] for _ in range(max(given.values(), default=-1) + 1)]
    for task in order:
        levels[given[task]].append(task)
    return Plan(tuple(order), tuple(map(tuple, levels)), _clashes(specs, given))


def level_faults(
    assignments: Mapping[str, Sequence[str]], specs: Sequence[TaskSpec]
) -> tuple[dict[str, int], list[Fault]]:
    """The levels of an assignment file: each task is in one level, after everything it depends on."""
    names = sorted(assignments, key=lambda name: (not name.isdecimal(), int(name) if name.isdecimal() else 0, name))
    given: dict[str, int] = {}
    faults: list[Fault] = []
    known = {spec.id for spec in specs}
    for number, name in enumerate(names):
        for place, task in enumerate(assignments[name]):
            where = f"assignments.{name}[{place}]"
            if task not in known:
                faults.append(Fault(where, "UNKNOWN_TASK", f"the manifest has no task {task!r}"))
            elif task in given:
                faults.append(Fault(where, "DUPLICATE_ID", f"task {task!r} is in level {names[given[task]]} already"))
            else:
                given[task] = number
    for spec in specs:
        if spec.id not in given:
            faults.append(Fault("assignments", "MISSING_TASK", f"task {spec.id!r} is in no level"))
            continue
        for need in spec.depends_on:
            if given.get(need, -1) >= given[spec.id]:
                message = f"task {spec.id!r} is not in a later level than {need!r}, which it depends on"
                faults.append(Fault(f"assignments.{names[given[spec.id]]}", "LEVEL_ORDER", message))
    return given, faults


def clash_faults(plan: Plan, specs: Sequence[TaskSpec]) -> list[Fault]:
    """Z08: if a level is merged as a whole, no two of its tasks may write one file."""
    place = {spec.id: index for index, spec in enumerate(specs)}
    return [
        Fault(
            f"tasks[{place[clash.tasks[-1]]}].metadata",
            "FILE_CLASH",
            f"tasks {' and '.join(repr(task) for task in clash.tasks)} of level {clash.level + 1} both write "
            f"{clash.file!r}; let one depend on the other, or give them different files",
        )
        for clash in plan.clashes
    ]


def depths(graph: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The depth of everything that is not in or behind a cycle or an unknown dependency, level by level."""
    unmet: dict[str, int] = {}
    dependents: dict[str, list[str]] = {}
    for task, needs in graph.items():
        distinct = set(needs) if len(needs) > 1 else needs
        unmet[task] = len(distinct)
        for need in distinct:
            dependents.setdefault(need, []).append(task)
    depth: dict[str, int] = {}
    level = [task for task, count in unmet.items() if not count]
    number = 0
    while level:
        depth.update(dict.fromkeys(level, number))
        level = _freed(level, dependents, unmet)
        number += 1
    return depth


def _freed(level: Sequence[str], dependents: Mapping[str, Sequence[str]], unmet: dict[str, int]) -> list[str]:
    """What may follow once a whole level is finished."""
    freed: list[str] = []
    for done in level:
        for task in dependents.get(done, ()):
            unmet[task] -= 1
            if not unmet[task]:
                freed.append(task)
    return freed


def _clashes(specs: Sequence[TaskSpec], depth: Mapping[str, int]) -> tuple[Clash, ...]:
    """Names that differ only in case are one file on some systems; a pattern clashes with what it matches."""
    writers: dict[tuple[int, str, str], dict[str, str]] = defaultdict(dict)
    patterns: dict[tuple[int, str], list[tuple[str, str]]] = defaultdict(list)
    for spec in specs:
        for file in dict.fromkeys(spec.writes):
            writers[depth[spec.id], spec.repo, file.casefold()].setdefault(spec.id, file)
            if "*" in file or "?" in file:
                patterns[depth[spec.id], spec.repo].append((spec.id, file))
    found = [
        Clash(next(iter(names.values())), level, tuple(names))
        for (level, _, _), names in sorted(writers.items())
        if len(names) > 1
    ]
    for (level, repo), listed in patterns.items():
        for task, pattern in listed:
            cover = re.compile(fnmatch.translate(pattern.casefold()))
            for (other_level, other_repo, file), names in writers.items():
                others = [name for name in names if name != task]
                if (other_level, other_repo) == (level, repo) and others and "*" not in file and cover.match(file):
                    found.append(Clash(names[others[0]], level, (task, *others)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """One task of the manifest with its place, also when the rest of the file is invalid."""

    index: int
    id: str
    depends_on: tuple[str, ...]


_SPELLING = "check the spelling against the tasks' ids"
# The time to find a similar id grows with the manifest.
_MOST_HINTS = 20


def graph_faults(entries: Iterable[GraphEntry]) -> list[Fault]:
    """Duplicate ids, unknown and self dependencies, cycles: all of them, each at its place (T02)."""
    faults: list[Fault] = []
    first: dict[str, GraphEntry] = {}
    rows = list(entries)
    for entry in rows:
        if entry.id in first:
            where = f"tasks[{first[entry.id].index}]"
            message = f"task id {entry.id!r} is already used by {where}; give each task its own id"
            faults.append(Fault(f"tasks[{entry.index}].id", "DUPLICATE_ID", message))
        else:
            first[entry.id] = entry
    for entry in rows:
        faults.extend(_dependency_faults(entry, first, hints=len(faults) < _MOST_HINTS))
    faults.extend(_cycle_faults(first))
    return faults


def _dependency_faults(entry: GraphEntry, known: Mapping[str, GraphEntry], *, hints: bool) -> Iterable[Fault]:
    for position, need in enumerate(entry.depends_on):
        path = f"tasks[{entry.index}].depends_on[{position}]"
        if need == entry.id:
            yield Fault(path, "SELF_DEPENDENCY", f"task {need!r} depends on itself; remove this entry")
        elif need not in known:
            hint = _did_you_mean(need, known) if hints else _SPELLING
            yield Fault(path, "UNKNOWN_DEPENDENCY", f"no task has the id {need!r}; {hint}")


def _did_you_mean(word: str, known: Mapping[str, object]) -> str:
    if len(known) > 2000 or len(word) > 200:
        return _SPELLING
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else _SPELLING


def _cycle_faults(tasks: Mapping[str, GraphEntry]) -> Iterable[Fault]:
    graph = {t: [n for n in e.depends_on if n in tasks and n != t] for t, e in tasks.items()}
    return (_cycle_fault(cycle, tasks) for cycle in cycles(graph))


def cycles(graph: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Every circle as a path that ends where it begins. All names must exist, and none depends on itself."""
    sound = depths(graph)
    # Every task left waits for another task left, so following those dependencies must end in a cycle.
    left = {task: next(n for n in needs if n not in sound) for task, needs in graph.items() if task not in sound}
    seen: set[str] = set()
    for start in left:
        path: list[str] = []
        place: dict[str, int] = {}
        task = start
        while task not in seen and task not in place:
            place[task] = len(path)
            path.append(task)
            task = left[task]
        seen.update(path)
        if task in place:
            yield [*path[place[task] :], task]


def _cycle_fault(cycle: Sequence[str], tasks: Mapping[str, GraphEntry]) -> Fault:
    entry = tasks[cycle[0]]
    shown = [*cycle[:12], f"… {len(cycle) - 13} more …", cycle[-1]] if len(cycle) > 14 else list(cycle)
    assert all(b in tasks[a].depends_on for a, b in pairwise(cycle))
    path = f"tasks[{entry.index}].depends_on[{entry.depends_on.index(cycle[1])}]"
    message = f"dependency cycle: {' -> '.join(shown)}; remove one of these dependencies"
    return Fault(path, "CYCLE", message)

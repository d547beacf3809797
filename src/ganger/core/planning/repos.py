"""Repositories that build on each other: chains, phases, who holds them, and why a task may not start in one."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ganger.core.model.ledger import BY_GANGER, NO_RULES, Milestone, RepoRules
from ganger.core.model.run_state import RunState
from ganger.core.planning.plan import cycles, depths
from ganger.core.vocabulary import TaskStatus
from ganger.errors import Fault

EXCLUSIVE, SHARED, NONE = "exclusive", "shared", "none"
# The project's own name where a name is needed.
PROJECT = "."
_BY_THEMSELVES = frozenset({TaskStatus.PENDING, TaskStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class RepoGraph:
    """`upstream` is everything a repository builds on, `downstream` everything that builds on it, the nearest first.
    `phase` is 0 for roots, else one more than the highest it builds on (D10)."""

    upstream: Mapping[str, tuple[str, ...]]
    downstream: Mapping[str, tuple[str, ...]]
    phase: Mapping[str, int]

    def chain(self, repo: str) -> tuple[str, ...]:
        return (*self.upstream.get(repo, ()), *self.downstream.get(repo, ()))

    @property
    def phases(self) -> tuple[tuple[str, ...], ...]:
        rows: list[list[str]] = [[] for _ in range(max(self.phase.values(), default=-1) + 1)]
        for repo, phase in self.phase.items():
            rows[phase].append(repo)
        return tuple(map(tuple, rows))


def make_graph(needs: Mapping[str, Sequence[str]]) -> RepoGraph:
    """From what each repository builds on. Unknown names are left out; a circle has no phases."""
    direct = {repo: [need for need in found if need in needs] for repo, found in needs.items()}
    reverse: dict[str, list[str]] = {repo: [] for repo in needs}
    for repo, found in direct.items():
        for need in found:
            reverse[need].append(repo)
    depth = depths(direct)
    return RepoGraph(
        {repo: _reached(repo, direct) for repo in needs},
        {repo: _reached(repo, reverse) for repo in needs},
        {repo: depth.get(repo, 0) for repo in needs},
    )


def _reached(start: str, edges: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    queue = deque(edges[start])
    while queue:
        repo = queue.popleft()
        if repo != start and repo not in found:
            found[repo] = None
            queue.extend(edges[repo])
    return tuple(found)


def graph_of(repos: Mapping[str, RepoRules]) -> RepoGraph:
    return _known_graph(tuple((name, rules.depends_on) for name, rules in repos.items()))


@lru_cache(maxsize=64)
def _known_graph(needs: tuple[tuple[str, tuple[str, ...]], ...]) -> RepoGraph:
    return make_graph(dict(needs))


def phase_of(repos: Mapping[str, RepoRules]) -> Mapping[str, int]:
    """Empty if no repository builds on another: then the order is as without repositories."""
    phases = graph_of(repos).phase if repos else {}
    return phases if any(phases.values()) else {}


def graph_faults(needs: Mapping[str, Sequence[str]]) -> list[Fault]:
    """Unknown repositories and circles; each at its place below `repos`."""
    faults = [
        Fault(
            f"repos.{repo}.depends_on[{place}]",
            "UNKNOWN_REPO",
            f"there is no [repos.{need}]; there are {', '.join(needs)}",
        )
        for repo, found in needs.items()
        for place, need in enumerate(found)
        if need not in needs
    ]
    for repo, found in needs.items():
        if repo in found:
            where = f"repos.{repo}.depends_on[{list(found).index(repo)}]"
            faults.append(Fault(where, "REPO_CYCLE", f"{repo} builds on itself; remove this entry"))
    sound = {repo: [need for need in found if need in needs and need != repo] for repo, found in needs.items()}
    for circle in cycles(sound):
        where = f"repos.{circle[0]}.depends_on[{list(needs[circle[0]]).index(circle[1])}]"
        told = f"repositories build on each other in a circle: {' -> '.join(circle)}; remove one of these dependencies"
        faults.append(Fault(where, "REPO_CYCLE", told))
    return faults


# --- who may start ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RepoAnswer:
    """Whether a task may start, and if not, why."""

    may: bool
    why: str = ""

    def __bool__(self) -> bool:
        return self.may


def can_spawn(needs: Mapping[str, Sequence[str]], active: Collection[str], repo: str) -> RepoAnswer:
    """By names alone: one worker per repository, and none above or below an active one (D08)."""
    graph = make_graph(needs)
    if repo not in graph.phase:
        return RepoAnswer(False, f"there is no repository {repo}")
    if repo in active:
        return RepoAnswer(False, f"{repo} is being worked on")
    for above in graph.upstream[repo]:
        if above in active:
            return RepoAnswer(False, f"{repo} builds on {above}, which is being worked on")
    for below in graph.downstream[repo]:
        if below in active:
            return RepoAnswer(False, f"{below} builds on {repo} and is being worked on")
    return RepoAnswer(True)


@dataclass(frozen=True, slots=True)
class Bar:
    """One reason why tasks of a repository cannot start: `halt` (D12), `red` (D13) or `lock` (D08).
    `repo` is where it is, `task` the one that holds it or turned it red."""

    kind: str
    repo: str
    task: str = ""


def is_guarded(state: RunState) -> bool:
    """Whether anything besides tasks, files and limits can keep a task from starting."""
    return bool(state.chains.halted) or any(rules.locks != NONE for rules in state.chains.rules.values())


class RepoLocks:
    """Says for each task in turn whether its repository lets it start; tasks that were taken hold their repositories.

    A task that is refused only because of running tasks reserves its place: no task of a later rank starts in its chain
    meanwhile. Otherwise a root could wait for the whole queue of everything that builds on it.
    """

    def __init__(self, state: RunState) -> None:
        self.state = state
        self._graph = graph_of(state.chains.rules)
        self._taken: dict[str, set[str]] = {}
        self._reserved: set[str] = set()
        self._shut: set[str] = set()
        self._bars: dict[str, list[Bar]] = {}

    def take(self, task: str) -> None:
        repo = self.state.specs[task].repo
        if self._locks(repo) != NONE:
            self._taken.setdefault(repo, set()).add(task)
            self._bars.clear()

    def admits(self, task: str, *, queueing: bool = False) -> bool:
        """`queueing`: also tasks that only wait for tasks taken here that release their repositories soon."""
        repo, bars = self.state.specs[task].repo, self.bars(task)
        if not bars or (queueing and all(self._is_soon_free(bar) for bar in bars)):
            return self.state.tasks[task].locked or not self._is_reserved(repo)
        if all(bar.kind == "lock" and bar.task in self.state.index.running for bar in bars):
            self._reserved.add(repo)
        if not any(bar.task and self.state.index.unmet.get(bar.task) for bar in bars):
            self._shut.add(repo)
        return False

    def shuts(self, task: str) -> bool:
        """Whether its repository is known to admit only its holder: saves examining all the others."""
        return self.state.specs[task].repo in self._shut and not self.state.tasks[task].locked

    def shuts_all(self, repos: Iterable[str]) -> bool:
        """Whether none of these admits a task now, and no holder of one of them waits to continue."""
        tasks, unmet = self.state.tasks, self.state.index.unmet
        holders = (name for held in self.state.index.locks.values() for name in held)
        if any(tasks[name].status is TaskStatus.PENDING or unmet[name] for name in holders):
            return False
        return all(self._known_bars(repo) for repo in repos)

    def bars(self, task: str) -> list[Bar]:
        """Everything in its way; what most needs a person is first."""
        known = self._known_bars(self.state.specs[task].repo)
        if known and self._is_reverted(task):
            known = [bar for bar in known if (bar.kind, bar.repo) != ("halt", self.state.specs[task].repo)]
        return [bar for bar in known if bar.task != task and not self._gives_way(bar, task)] if known else known

    def _is_reverted(self, task: str) -> bool:
        """A person wants it out of the branch, and a halt of that repository alone does not stand in the way."""
        now = self.state.tasks[task].delivery
        return now is not None and now.revert is not None and now.revert.how == BY_GANGER

    def _known_bars(self, repo: str) -> list[Bar]:
        known = self._bars.get(repo)
        if known is None:
            known = self._bars[repo] = list(self._bars_of(repo))
        return known

    def _locks(self, repo: str) -> str:
        return self.state.chains.rules.get(repo, NO_RULES).locks

    def _is_soon_free(self, bar: Bar) -> bool:
        """If nothing is delivered, a lock ends as soon as its task is merged."""
        taken = bar.kind == "lock" and bar.task in self._taken.get(bar.repo, ())
        return taken and not self.state.chains.rules.get(bar.repo, NO_RULES).delivers

    def _is_reserved(self, repo: str) -> bool:
        if not self._reserved or self._locks(repo) == NONE:
            return False
        same = repo in self._reserved and self._locks(repo) == EXCLUSIVE
        return same or not self._reserved.isdisjoint(self._graph.chain(repo))

    def _bars_of(self, repo: str) -> Iterator[Bar]:
        state, chain = self.state, self._graph.chain(repo)
        yield from (Bar("halt", one) for one in (repo, *chain) if one in state.chains.halted)
        for above in self._graph.upstream.get(repo, ()):
            if above in state.chains.broken:
                yield Bar("red", above, state.chains.broken[above])
        if self._locks(repo) == NONE:
            return
        closed = (repo, *chain) if self._locks(repo) == EXCLUSIVE else chain
        found = [Bar("lock", one, task) for one in closed for task in self._holders(one)]
        yield from sorted(found, key=lambda bar: state.tasks[bar.task].status in _BY_THEMSELVES)

    def _holders(self, repo: str) -> list[str]:
        held = self.state.index.locks.get(repo, set()) | self._taken.get(repo, set())
        return sorted(held, key=self.state.index.rank.__getitem__)

    def _gives_way(self, bar: Bar, task: str) -> bool:
        """Two tasks that hold locks in one chain must not wait for each other forever. Only a person who unlocks,
        retries or changes the graph can cause that; a task that is not running yields to what its own turn needs."""
        holder = bar.task
        if bar.kind != "lock" or holder in self.state.index.running or holder in self._taken.get(bar.repo, ()):
            return False
        repo = self.state.specs[task].repo
        below, locked = bar.repo in self._graph.downstream.get(repo, ()), self.state.tasks[task].locked
        if (below and (locked or repo in self.state.chains.broken)) or (bar.repo == repo and locked):
            return True
        return bool(self.state.index.unmet[holder]) and _needs(self.state, holder, task)


def _needs(state: RunState, task: str, other: str) -> bool:
    seen, queue = {task}, [task]
    for current in queue:
        for need in state.specs[current].depends_on:
            if need == other:
                return True
            if need not in seen and state.tasks[need].status is not TaskStatus.DONE:
                seen.add(need)
                queue.append(need)
    return False


def why_not(state: RunState, task: str) -> str:
    """Why the task's repository does not let it start now; empty if it does."""
    if not is_guarded(state):
        return ""
    bars = RepoLocks(state).bars(task)
    return say(state, task, bars) if bars else ""


def way_out(state: RunState, task: str) -> str:
    """The command that lets a task start despite its repository; empty if waiting is enough."""
    bars = RepoLocks(state).bars(task) if is_guarded(state) else []
    if not bars or bars[0].kind == "red" or (bars[0].kind == "lock" and _goes_on(state, bars[0].task)):
        return ""
    bar = bars[0]
    return f"ganger retry {bar.task}" if bar.kind == "lock" else f"ganger unlock {bar.repo or PROJECT} --why TEXT"


def _goes_on(state: RunState, name: str) -> bool:
    task = state.tasks[name]
    return task.status in _BY_THEMSELVES or not task.final


def say(state: RunState, task: str, bars: Sequence[Bar]) -> str:
    """One sentence: where, which task, in which milestone, and what releases it."""
    repo, bar = state.specs[task].repo, bars[0]
    here, there = shown(repo), shown(bar.repo)
    unlock = f"ganger unlock {bar.repo or PROJECT} --why TEXT"
    more = f" (and {len(bars) - 1} more in its way)" if len(bars) > 1 else ""
    if bar.kind == "halt":
        return f"{there} is halted: {state.chains.halted[bar.repo]}; {unlock} lifts the halt{more}"
    if bar.kind == "red":
        return (
            f"{here} builds on {there}, which {bar.task} turned red; it waits until {there} is green, or {unlock}{more}"
        )
    where = f"{here} is" if bar.repo == repo else f"{here} builds on {there}, which is"
    if bar.repo in graph_of(state.chains.rules).downstream.get(repo, ()):
        where = f"{there} builds on {here} and is"
    return f"{where} held by {bar.task} ({doing(state, bar.task)}); {_frees(state, bar, unlock)}{more}"


def _frees(state: RunState, bar: Bar, unlock: str) -> str:
    if _goes_on(state, bar.task):
        return f"it is free when {bar.task} is DONE with proof"
    return f"ganger retry {bar.task} continues it, ganger skip {bar.task} or {unlock} frees it"


def shown(repo: str) -> str:
    return repo or "the project"


def doing(state: RunState, name: str) -> str:
    """The milestone of a running task, else how it ended."""
    task = state.tasks[name]
    if task.status in _BY_THEMSELVES:
        return (task.delivery.milestone if task.delivery is not None else Milestone.WORKING).value
    return f"{task.status.value}, {task.block_reason.value}" if task.block_reason else task.status.value


# --- the registry ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holding:
    """Who holds a repository (D11). `active`: its task continues without a person."""

    repo: str
    task: str
    doing: str
    substate: str
    active: bool


def registry(state: RunState) -> list[Holding]:
    """Every lock, in plan order. Locks are part of the state, so they survive a restart."""
    names = sorted((name for held in state.index.locks.values() for name in held), key=state.index.rank.__getitem__)
    return [_holding(state, name) for name in names]


def _holding(state: RunState, name: str) -> Holding:
    task = state.tasks[name]
    substate = task.delivery.substate if task.delivery is not None and task.status in _BY_THEMSELVES else ""
    return Holding(state.specs[name].repo, name, doing(state, name), substate, task.status in _BY_THEMSELVES)


def held_up(state: RunState, tasks: Iterable[str]) -> list[str]:
    """For each repository that admits none of these tasks, the sentence that says why, once."""
    if not is_guarded(state):
        return []
    gate, found = RepoLocks(state), dict[tuple[str, Bar], str]()
    for name in tasks:
        bars = gate.bars(name) if state.tasks[name].status is TaskStatus.PENDING and not state.index.unmet[name] else ()
        if bars:
            found.setdefault((state.specs[name].repo, bars[0]), f"{name} waits: {say(state, name, bars)}")
    return list(found.values())

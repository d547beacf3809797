"""What the state keeps for speed, computed from its tasks."""

from __future__ import annotations

from collections.abc import Mapping

from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.planning.plan import make_plan
from ganger.core.planning.repos import phase_of
from ganger.core.vocabulary import BlockReason, TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE


def index_tasks(state: RunState) -> None:
    """Rebuilds every index from `specs` and `tasks`."""
    specs, tasks = state.specs, state.tasks
    _rank_tasks(state)
    state.index.counts = dict.fromkeys(TaskStatus, 0)
    for task in tasks.values():
        state.index.counts[task.status] += 1
    done = {name for name, task in tasks.items() if task.status is D}
    state.index.unmet = {name: len(set(spec.depends_on) - done) for name, spec in specs.items()}
    state.index.dependents = {}
    for spec in specs.values():
        for need in dict.fromkeys(spec.depends_on):
            state.index.dependents.setdefault(need, []).append(spec.id)
    state.index.ready = [
        r for r, name in enumerate(state.index.by_rank) if tasks[name].status is P and not state.index.unmet[name]
    ]
    state.index.running = {name for name, task in tasks.items() if task.status is R}
    state.index.pulled = {
        name for name in state.index.running if (worker := tasks[name].worker) is not None and worker.pulled
    }
    state.index.answered = {name for name, task in tasks.items() if is_answered(task)}
    state.index.waiting = {name for name, task in tasks.items() if waits(task)}
    state.index.in_merge_queue = {name for name in state.index.running if tasks[name].work.in_merge_queue}
    state.index.busy_files = {file: name for name in state.index.running for file in needed_files(state, name)}
    state.index.delivering = {name for name in state.index.running if is_delivering(tasks[name])}
    index_locks(state)
    state.index.held = {}
    for name, task in tasks.items():
        if task.waits_for_canary:
            state.index.held.setdefault(task.waits_for_canary, []).append(name)


def _rank_tasks(state: RunState) -> None:
    state.index.by_rank = list(make_plan(tuple(state.specs.values()), phase_of(state.chains.rules)).order)
    state.index.rank = {task: rank for rank, task in enumerate(state.index.by_rank)}


def index_order(state: RunState) -> None:
    """Rebuilds the order, and what depends on it, because the repositories' dependencies changed."""
    _rank_tasks(state)
    ready = [name for name in state.index.by_rank if state.tasks[name].status is P and not state.index.unmet[name]]
    state.index.ready = [state.index.rank[name] for name in ready]
    state.windows.ready = [state.index.rank[name] for name in ready if name in state.windows.open]


def index_locks(state: RunState) -> None:
    """Which tasks hold which repository."""
    state.index.locks = {}
    for name, task in state.tasks.items():
        if task.locked:
            state.index.locks.setdefault(state.specs[name].repo, set()).add(name)


def is_delivering(task: TaskState) -> bool:
    """Whether its change is merged and being delivered: it needs no worker."""
    return task.delivery is not None and task.delivery.pending


def files_of(state: RunState, name: str) -> tuple[str, ...]:
    """Files no two tasks should write at once: those a task declared, and those it conflicted in before."""
    spec = state.specs[name]
    files = (*spec.writes, *state.tasks[name].failure.conflicted_files)
    return tuple(f"{spec.repo}:{file}" for file in files) if spec.repo else files


def needed_files(state: RunState, name: str) -> tuple[str, ...]:
    """Those that must be free for it to run: none for a delivery, which writes no file."""
    return () if is_delivering(state.tasks[name]) else files_of(state, name)


def keeps_files(task: TaskState) -> bool:
    """Whether its files are busy. What it waits for while it is delivered may be a fix in the same files."""
    return task.status is R and not is_delivering(task)


def index_levels(state: RunState, given: Mapping[str, int]) -> None:
    """Levels as given, otherwise by depth; and how many tasks of each are not finished."""
    levels = make_plan(tuple(state.specs.values())).levels
    depth = {name: number for number, names in enumerate(levels) for name in names}
    state.index.level_of = {name: given.get(name, depth[name]) for name in state.specs}
    state.index.level_open = {}
    for name, level in state.index.level_of.items():
        if under_way(state.tasks[name]):
            state.index.level_open[level] = state.index.level_open.get(level, 0) + 1


def under_way(task: TaskState) -> bool:
    """Whether something may still happen to the task by itself."""
    return task.status in (P, R) or (task.status is not D and not task.final)


def is_answered(task: TaskState) -> bool:
    """Whether a kept answer waits to be judged, or a delivery continues, so that no agent has to be started."""
    return task.status is P and (bool(task.next_start.answer_log) or is_delivering(task))


def waits(task: TaskState) -> bool:
    """Whether only time must pass until the task may run."""
    return bool(task.not_before) and (task.status is P or task.block_reason is BlockReason.QUOTA_WAIT)

"""What a healer's patches may do: each is planned or refused with a reason; nothing a patch says grants it rights."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ganger.contracts.heal_decision import HealDecision, Patch
from ganger.contracts.ids import path_problem
from ganger.contracts.reading.strict_json import shorten
from ganger.core.model.records import Limits, TaskSpec
from ganger.core.vocabulary import HealSchedule

MOST_PATCHES = 32
LARGEST_TEXT_BYTES = 64 * 1024

_TEXT_OPERATIONS = ("append", "replace")
_WHOLE_NUMBERS = ("concurrency", "current_batch_size")
_RUNTIME_KEYS = ("timeout_sec", *_WHOLE_NUMBERS)
_RETRY = "RETRY"
# Only plain documents are ever written into the project; everything else is patched only as a copy in the prompt.
_DOCUMENTS = (".md", ".markdown", ".txt", ".rst", ".adoc")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a decision is judged against. `failing` is the healing scope: the tasks the healer was asked about."""

    schedule: HealSchedule
    failing: tuple[str, ...]
    specs: Mapping[str, TaskSpec]
    limits: Limits
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """A patch that may be applied. `in_place`: its text may also be written into the user's own file."""

    place: int
    target: str
    operation: str
    tasks: tuple[str, ...]
    path: str = ""
    task_id: str = ""
    text: str = ""
    timeout_sec: float | None = None
    concurrency: int | None = None
    current_batch_size: int | None = None
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class PatchRefusal:
    """A patch that is left out; `place` is its index in the decision."""

    place: int
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class Judged:
    """What a decision leads to. `escalate` holds (task, reason); `reset` are the tasks to run again."""

    planned: tuple[Planned, ...] = ()
    refused: tuple[PatchRefusal, ...] = ()
    escalate: tuple[tuple[str, str], ...] = ()
    reset: tuple[str, ...] = ()
    retry_window: str = "same_window"


def judge(decision: HealDecision, ground: Ground) -> Judged:
    """Only RETRY applies patches and runs tasks again; any other decision hands the whole scope to a person."""
    policy = decision.retry_policy
    wanted = set(policy.reset_tasks if policy is not None else ())
    window = (policy.retry_window if policy is not None else None) or "same_window"
    named = {one.task_id: one.reason for one in decision.escalations}
    if decision.decision != _RETRY:
        refused = _refuse_all(decision)
        everyone = tuple((task, named.get(task) or decision.root_cause) for task in ground.failing)
        return Judged(refused=refused, escalate=everyone, retry_window=window)
    escalate = tuple((task, named[task] or decision.root_cause) for task in ground.failing if task in named)
    chosen = [task for task in ground.failing if task in wanted] or list(ground.failing)
    planned, refused = _sorted_out(decision.patches, ground)
    return Judged(planned, refused, escalate, tuple(task for task in chosen if task not in named), window)


@lru_cache(maxsize=8192)
def plain_path(ref: str) -> str:
    """A reference of the manifest in normal form, for comparing paths."""
    return posixpath.normpath(ref) if ref else ""


class _No(Exception):
    """Why a patch is refused."""


def _refuse_all(decision: HealDecision) -> tuple[PatchRefusal, ...]:
    why = f"the decision is {decision.decision}; only {_RETRY} applies patches"
    return tuple(PatchRefusal(place, one.target, why) for place, one in enumerate(decision.patches[:MOST_PATCHES]))


def _sorted_out(patches: tuple[Patch, ...], ground: Ground) -> tuple[tuple[Planned, ...], tuple[PatchRefusal, ...]]:
    planned: list[Planned] = []
    refused: list[PatchRefusal] = []
    for place, patch in enumerate(patches[:MOST_PATCHES]):
        try:
            planned.append(replace(_planned(patch, ground), place=place))
        except _No as reason:
            refused.append(PatchRefusal(place, patch.target, str(reason)))
    if len(patches) > MOST_PATCHES:
        why = f"{len(patches)} patches in one decision; only the first {MOST_PATCHES} are considered"
        refused.append(PatchRefusal(MOST_PATCHES, patches[MOST_PATCHES].target, why))
    return tuple(planned), tuple(refused)


def _planned(patch: Patch, ground: Ground) -> Planned:
    plan = _PLANS.get(patch.target)
    if plan is None:
        raise _No(f"{shorten(patch.target)} is not a target a healer may change; targets are {', '.join(_PLANS)}")
    if patch.task_id is not None and patch.task_id not in ground.failing:
        raise _No(f"task {shorten(patch.task_id)} is outside this healing scope")
    return plan(patch, ground)


def _shared_context(patch: Patch, ground: Ground) -> Planned:
    """`task_id` may narrow the scope to one task; nothing widens it."""
    path = _checked_path(patch)
    text = _checked_text(patch)
    using = _with_context(path, ground, ground.failing)
    if not using:
        raise _No(f"{shorten(path)} is not a context file of any task in this healing scope")
    if patch.task_id is not None:
        if patch.task_id not in using:
            raise _No(f"{shorten(path)} is not a context file of task {shorten(patch.task_id)}")
        tasks: tuple[str, ...] = (patch.task_id,)
    elif ground.schedule is HealSchedule.TASK:
        tasks = using
    else:
        tasks = _with_context(path, ground, tuple(ground.specs))
    planned = _text_plan(patch, path, tasks, text, ground)
    return replace(planned, task_id=patch.task_id or "")


def _task_prompt(patch: Patch, ground: Ground) -> Planned:
    if not patch.task_id:
        raise _No("a task_prompt patch names its task in task_id")
    own = plain_path(ground.specs[patch.task_id].prompt_ref)
    if patch.path is not None and _checked_path(patch) != own:
        raise _No(f"{shorten(patch.path)} is not the prompt of task {shorten(patch.task_id)}; that is {shorten(own)}")
    planned = _text_plan(patch, own, (patch.task_id,), _checked_text(patch), ground)
    return replace(planned, task_id=patch.task_id)


def _contract_hint(patch: Patch, ground: Ground) -> Planned:
    text = _checked_text(patch)
    tasks = ground.failing if patch.task_id is None else (patch.task_id,)
    return Planned(0, patch.target, patch.operation, tasks, task_id=patch.task_id or "", text=text)


def _runtime_patch(patch: Patch, ground: Ground) -> Planned:
    if patch.operation != "merge":
        raise _No(f"a runtime_patch has the operation merge, not {patch.operation}")
    if not isinstance(patch.content, dict) or not patch.content:
        raise _No(f"the content of a runtime_patch is an object with some of {', '.join(_RUNTIME_KEYS)}")
    forbidden = [shorten(str(key), 40) for key in patch.content if key not in _RUNTIME_KEYS]
    if forbidden:
        more = f" and {len(forbidden) - 5} more" if len(forbidden) > 5 else ""
        named = ", ".join(forbidden[:5]) + more
        raise _No(f"{named}: a healer may not change this, only {', '.join(_RUNTIME_KEYS)}")
    values = {key: _within(key, patch.content[key], ground.limits) for key in _RUNTIME_KEYS if key in patch.content}
    whole = {key: int(values[key]) for key in _WHOLE_NUMBERS if key in values}
    return Planned(
        0,
        patch.target,
        patch.operation,
        ground.failing if patch.task_id is None else (patch.task_id,),
        task_id=patch.task_id or "",
        timeout_sec=values.get("timeout_sec"),
        concurrency=whole.get("concurrency"),
        current_batch_size=whole.get("current_batch_size"),
    )


_PLANS: dict[str, Callable[[Patch, Ground], Planned]] = {
    "shared_context": _shared_context,
    "task_prompt": _task_prompt,
    "contract_hint": _contract_hint,
    "runtime_patch": _runtime_patch,
}


def _checked_path(patch: Patch) -> str:
    path = (patch.path or "").removeprefix("./")
    problem = path_problem(path)
    if problem is None and path.startswith("~"):
        problem = "a path must be relative"
    if problem is None and any(not c.isprintable() for c in path):
        problem = "a path may not hold invisible characters"
    if problem is not None:
        raise _No(f"path {shorten(patch.path or '')}: {problem}")
    return path


def _checked_text(patch: Patch) -> str:
    if patch.operation not in _TEXT_OPERATIONS:
        raise _No(f"a {patch.target} patch appends or replaces; {patch.operation} is for a runtime_patch")
    if not isinstance(patch.content, str):
        raise _No(f"the content of a {patch.target} patch is a string")
    if not patch.content.strip():
        raise _No("the content is empty, so it would remove text or change nothing")
    size = len(patch.content.encode())
    if size > LARGEST_TEXT_BYTES:
        raise _No(f"the content has {size} bytes; the limit is {LARGEST_TEXT_BYTES}")
    if "\0" in patch.content:
        raise _No("the content contains a zero byte")
    return patch.content


def _text_plan(patch: Patch, path: str, tasks: tuple[str, ...], text: str, ground: Ground) -> Planned:
    allowed = ground.in_place and _may_be_written(path, tasks, ground)
    return Planned(0, patch.target, patch.operation, tasks, path, text=text, in_place=allowed)


def _may_be_written(path: str, tasks: tuple[str, ...], ground: Ground) -> bool:
    """A document that no task changes and that only the affected tasks read."""
    if not path.lower().endswith(_DOCUMENTS):
        return False
    touched = set(tasks)
    for name, spec in ground.specs.items():
        if path in map(plain_path, spec.writes):
            return False
        if name not in touched and path in map(plain_path, (spec.prompt_ref, *spec.context_refs)):
            return False
    return True


def _with_context(path: str, ground: Ground, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if path in map(plain_path, ground.specs[name].context_refs))


def _within(key: str, value: object, limits: Limits) -> float:
    low, high = _limits_of(key, limits)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _No(f"{key} is a number")
    if key in _WHOLE_NUMBERS and value != value // 1:
        raise _No(f"{key} is a whole number, not {_shown(value)}")
    if not low <= value <= high:
        raise _No(f"{key} {_shown(value)} is outside the operator's limits, {low:g} to {high:g}")
    return value


def _shown(value: float) -> str:
    return f"{value:g}" if abs(value) < 10**15 else "of that size"


def _limits_of(key: str, limits: Limits) -> tuple[float, float]:
    pair = {
        "timeout_sec": limits.timeout_sec,
        "concurrency": limits.concurrency,
        "current_batch_size": limits.current_batch_size,
    }[key]
    return pair[0], pair[1]

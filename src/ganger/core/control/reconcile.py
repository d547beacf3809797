"""What changed between a run and its manifest, and what happens to the run when a person applies the change (T20)."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

from ganger.core import events as ev
from ganger.core.healing.policy import may_run_again
from ganger.core.model.records import TaskSpec
from ganger.core.model.run_state import RunState
from ganger.core.model.task_state import TaskState
from ganger.core.planning.plan import make_plan
from ganger.core.vocabulary import BlockReason, TaskStatus

P, R, D = TaskStatus.PENDING, TaskStatus.RUNNING, TaskStatus.DONE
_BAD = frozenset({TaskStatus.FAILED, TaskStatus.BLOCKED, TaskStatus.ESCALATED})


@dataclass(frozen=True, slots=True)
class ContentDigest:
    """The content of a task's prompt and of each of its context files, as short hashes in the order of the manifest."""

    prompt: str
    context: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return ",c:".join((f"p:{self.prompt}", *self.context))

    @classmethod
    def read(cls, text: str) -> ContentDigest | None:
        """None for a run that recorded none."""
        prompt, *context = text.split(",")
        if not prompt.startswith("p:"):
            return None
        return cls(prompt[2:], tuple(part[2:] for part in context))


class Weight(IntEnum):
    """How much of a task's past a change undoes."""

    NOTHING = 0
    WHAT_IS_NOT_DONE = 1
    EVERYTHING = 2


# Another task or other checks: DONE work proves nothing any more. Another way to work: a failed task may pass now.
FIELDS: Mapping[str, tuple[str, Weight]] = {
    "prompt_ref": ("prompt_ref", Weight.EVERYTHING),
    "context_refs": ("context_refs", Weight.EVERYTHING),
    "depends_on": ("depends_on", Weight.EVERYTHING),
    "verify_profile": ("verify_profile", Weight.EVERYTHING),
    "timeout_sec": ("timeout_sec", Weight.WHAT_IS_NOT_DONE),
    "role": ("metadata.role", Weight.WHAT_IS_NOT_DONE),
    "max_attempts": ("retry_policy.max_attempts", Weight.WHAT_IS_NOT_DONE),
    "widened_attempts": ("metadata.max_attempts", Weight.WHAT_IS_NOT_DONE),
    "retry_on": ("retry_policy.retry_on", Weight.WHAT_IS_NOT_DONE),
    "writes": ("metadata.files_create or files_modify", Weight.WHAT_IS_NOT_DONE),
    "creates": ("metadata.files_create", Weight.WHAT_IS_NOT_DONE),
    "modifies": ("metadata.files_modify", Weight.WHAT_IS_NOT_DONE),
    "expected": ("metadata.expected_files", Weight.WHAT_IS_NOT_DONE),
    "reads": ("metadata.files_read", Weight.WHAT_IS_NOT_DONE),
    "may_change_gates": ("metadata.may_change_gates", Weight.WHAT_IS_NOT_DONE),
    "may_break": ("metadata.may_break_interface", Weight.WHAT_IS_NOT_DONE),
    "allow_shrinkage": ("metadata.allow_shrinkage", Weight.WHAT_IS_NOT_DONE),
    "strong": ("metadata.complexity, critical_path, security or cross_repo", Weight.WHAT_IS_NOT_DONE),
    "repo": ("metadata.repo", Weight.EVERYTHING),
    "component": ("metadata.component", Weight.NOTHING),
    "review": ("metadata.review", Weight.WHAT_IS_NOT_DONE),
    "expects_ci": ("metadata.expects_ci", Weight.WHAT_IS_NOT_DONE),
    "priority": ("priority", Weight.NOTHING),
}


@dataclass(frozen=True, slots=True)
class ManifestChange:
    """One task that both have, and how it differs. `again`: it starts over, whatever its status."""

    task: str
    status: TaskStatus
    why: tuple[str, ...]
    again: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """A manifest compared with the run, which began with another one.

    `back` are tasks that wait for a failed one that now starts over; `stop` are running ones that must end first.
    """

    run_id: str
    digest_before: str
    digest: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[ManifestChange, ...] = ()
    reordered: bool = False
    back: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        same = self.digest_before == self.digest
        return same and not (self.added or self.removed or self.changed or self.reordered)

    @property
    def again(self) -> tuple[str, ...]:
        return tuple(change.task for change in self.changed if change.again)


def compare(
    state: RunState,
    digest: str,
    specs: Sequence[TaskSpec],
    contents: Mapping[str, ContentDigest],
    *,
    edited: Collection[str] = (),
) -> Difference:
    """`edited` are files that were written after the run's last event, so not by the run."""
    given = {spec.id: spec for spec in specs}
    foreign = _Foreign(state, specs, edited)
    changes = [_change(state, spec, contents.get(spec.id), foreign) for spec in specs if spec.id in state.specs]
    found = Difference(
        run_id=state.run_id,
        digest_before=state.manifest.digest,
        digest=digest,
        added=tuple(name for name in given if name not in state.specs),
        removed=tuple(name for name in state.specs if name not in given),
        changed=tuple(change for change in changes if change is not None),
        reordered=[n for n in state.specs if n in given] != [n for n in given if n in state.specs],
    )
    if found.empty:
        return found
    stop = sorted(state.index.running & {*found.again, *found.removed}, key=state.index.rank.__getitem__)
    return replace(found, back=_comes_back(state, specs, found), stop=tuple(stop))


@dataclass(frozen=True)
class _Foreign:
    """Which changed files were changed from outside: never one that the run itself writes. Computed on demand."""

    state: RunState
    specs: Sequence[TaskSpec]
    edited: Collection[str]

    @cached_property
    def own(self) -> frozenset[str]:
        declared = {file for spec in (*self.state.specs.values(), *self.specs) for file in spec.writes}
        return frozenset(map(posixpath.normpath, declared | self.state.files.written))

    def prompt(self, ref: str) -> bool:
        return posixpath.normpath(ref) not in self.own

    def context(self, ref: str) -> bool:
        """While attempts run, their agents may edit any file, so an edited context file proves nothing."""
        return not self.state.index.running and ref in self.edited and posixpath.normpath(ref) not in self.own


def _change(state: RunState, spec: TaskSpec, now: ContentDigest | None, foreign: _Foreign) -> ManifestChange | None:
    task, known = state.tasks[spec.id], state.specs[spec.id]
    kept = state.manifest.contents.get(spec.id, "") if task.attempts else ""
    if known == spec and (not kept or (now is not None and kept == now.text)):
        return None
    found = list(_field_changes(known, spec))
    if now is not None and (before := ContentDigest.read(kept)) is not None:
        whys = _content_changes(known, spec, before, now, foreign)
        found += [(why, Weight.EVERYTHING) for why in whys]
    if not found:
        return None
    weight = max(weight for _, weight in found)
    return ManifestChange(spec.id, task.status, tuple(why for why, _ in found), _starts_over(task, weight))


def _field_changes(before: TaskSpec, now: TaskSpec) -> Iterator[tuple[str, Weight]]:
    for name, (shown, weight) in FIELDS.items():
        old, new = getattr(before, name), getattr(now, name)
        if (set(old) != set(new)) if name == "depends_on" else old != new:
            yield shown, weight


def _content_changes(
    known: TaskSpec, spec: TaskSpec, before: ContentDigest, now: ContentDigest, foreign: _Foreign
) -> Iterator[str]:
    """Of files whose names are unchanged; another name is a change of its own."""
    if known.prompt_ref == spec.prompt_ref and before.prompt != now.prompt and foreign.prompt(spec.prompt_ref):
        yield f"content of {spec.prompt_ref}"
    if known.context_refs == spec.context_refs:
        parts = zip(spec.context_refs, before.context, now.context, strict=False)
        yield from (f"content of {ref}" for ref, was, is_now in parts if was != is_now and foreign.context(ref))


def _starts_over(task: TaskState, weight: Weight) -> bool:
    if task.status is P and not task.attempts:
        return False
    return weight is Weight.EVERYTHING or (weight is Weight.WHAT_IS_NOT_DONE and task.status is not D)


def _comes_back(state: RunState, specs: Sequence[TaskSpec], found: Difference) -> tuple[str, ...]:
    """One pass in plan order: tasks that were blocked by a failed one and now need no failed task."""
    new = {*found.again, *found.added}
    needs = {spec.id: spec.depends_on for spec in specs}
    bad: set[str] = set()
    back: list[str] = []
    for name in make_plan(tuple(specs)).order:
        task = None if name in new else state.tasks[name]
        if task is None or task.status not in _BAD:
            continue
        if task.block_reason is BlockReason.DEPENDENCY_FAILED and not bad.intersection(needs[name]):
            back.append(name)
        else:
            bad.add(name)
    return tuple(back)


def reconcile(
    state: RunState, found: Difference, specs: Sequence[TaskSpec], contents: Mapping[str, ContentDigest]
) -> list[ev.Event]:
    """Recorded together, once every attempt in `found.stop` has ended and no healer is at work."""
    gone, removed = {*found.again, *found.removed}, set(found.removed)
    moot = [q.id for q in state.inbox.questions.values() if q.task in gone and q.answer is None]
    freed = [n for n, task in state.tasks.items() if task.waits_for_canary in removed and n not in gone]
    judged = [_without_canary(state, name) for name in freed]
    taken = ev.Reconciled(
        manifest_digest=found.digest,
        tasks=tuple(specs),
        contents=tuple(contents[spec.id].text if spec.id in contents else "" for spec in specs),
        added=found.added,
        removed=found.removed,
        changed=found.again,
    )
    return [
        *(ev.QuestionAnswered(question, "the manifest changed") for question in moot),
        taken,
        *judged,
        *(ev.TaskRequeued(name, "the task it waits for starts over") for name in found.back),
    ]


def _without_canary(state: RunState, name: str) -> ev.TaskRequeued | ev.TaskSettled:
    """The task it waited for is gone, so its own attempts decide."""
    if may_run_again(state, name):
        return ev.TaskRequeued(name, "its canary left the manifest")
    return ev.TaskSettled(name, TaskStatus.FAILED, state.tasks[name].detail)

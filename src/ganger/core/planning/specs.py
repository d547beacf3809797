"""Turns a manifest's tasks into the specifications the core works with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ganger.contracts.manifest import Manifest, Task
from ganger.core.model.records import TaskSpec
from ganger.core.planning.plan import GraphEntry


def specs_of(manifest: Manifest, repos: Collection[str] = ()) -> tuple[TaskSpec, ...]:
    """Without `[repos]`, a task's repository name is only a remark: the task works on the project itself."""
    specs = tuple(_spec(task) for task in manifest.tasks)
    return specs if repos else tuple(replace(spec, repo="") if spec.repo else spec for spec in specs)


def _spec(task: Task) -> TaskSpec:
    meta = task.metadata
    declared = "files_create" in meta or "files_modify" in meta
    retry = task.retry_policy
    retry_on = tuple(retry.retry_on) if retry is not None and "retry_on" in retry.model_fields_set else None
    return TaskSpec(
        id=task.id,
        depends_on=tuple(task.depends_on),
        priority=task.priority,
        timeout_sec=task.timeout_sec,
        verify_profile=task.verify_profile,
        prompt_ref=task.prompt_ref,
        context_refs=tuple(task.context_refs),
        role=str(meta.get("role", "worker")),
        max_attempts=None if retry is None or retry.max_attempts is None else int(retry.max_attempts),
        widened_attempts=meta.get("max_attempts"),
        retry_on=retry_on,
        writes=tuple(dict.fromkeys([*meta.get("files_create", ()), *meta.get("files_modify", ())])),
        allow_shrinkage=bool(meta.get("allow_shrinkage", False)),
        creates=tuple(meta.get("files_create", ())) if declared else None,
        modifies=tuple(meta.get("files_modify", ())) if declared else None,
        expected=tuple(meta.get("expected_files", ())),
        reads=tuple(meta.get("files_read", ())),
        may_change_gates=bool(meta.get("may_change_gates", False)),
        may_break=bool(meta.get("may_break_interface", False)),
        strong=_marks(meta),
        repo=str(meta.get("repo", "")),
        component=component if isinstance(component := meta.get("component"), str) else "",
        review=str(meta.get("review", "")),
        expects_ci=meta.get("expects_ci"),
    )


def _marks(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The marks of a task that ask for a stronger model (D16)."""
    high = ("high_complexity",) if meta.get("complexity") == "high" else ()
    return (*high, *(name for name in ("critical_path", "security", "cross_repo") if meta.get(name)))


def graph_entries(data: object) -> Iterator[GraphEntry]:
    """The graph of a manifest that may be invalid elsewhere: every entry with an id takes part."""
    tasks = data.get("tasks") if isinstance(data, dict) else None
    for index, task in enumerate(tasks if isinstance(tasks, list) else ()):
        if isinstance(task, dict) and isinstance(task.get("id"), str) and task["id"]:
            needs = task.get("depends_on")
            names = tuple(n for n in needs if isinstance(n, str)) if isinstance(needs, list) else ()
            yield GraphEntry(index, task["id"], names)

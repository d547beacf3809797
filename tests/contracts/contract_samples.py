"""Good documents of the five formats, and a corpus of changed ones with the verdict each must get."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


class Absent:
    """Stands for a value to be taken away."""

    def __repr__(self) -> str:
        return "absent"


DROP = Absent()

MANIFEST: Json = {
    "manifest_version": "2.0",
    "run_id": "run-1",
    "tasks": [
        {"id": "a", "prompt_ref": "p/a.md", "depends_on": [], "timeout_sec": 900, "verify_profile": "build"},
        {
            "id": "b",
            "prompt_ref": "p/b.md",
            "depends_on": ["a"],
            "timeout_sec": 1.5,
            "verify_profile": "build",
            "context_refs": ["shared.md"],
            "priority": -2,
            "retry_policy": {"max_attempts": 2, "retry_on": ["timeout"]},
            "metadata": {"component": "button", "own": {"deep": [1]}, "mode": "direct", "files_create": ["src/b.py"]},
        },
    ],
}
RESULT: Json = {
    "contract_version": "2.0",
    "task_id": "a",
    "status": "DONE",
    "summary": "did it",
    "changed_files": ["x.py"],
    "writes": [{"path": "x.py", "op": "create", "encoding": "utf8", "content": "", "sha256_before": "00"}],
    "evidence": {"commands": ["make"], "log_refs": [], "notes": ["fine"]},
    "failure_class": "prompt_gap",
}
HEAL: Json = {
    "contract_version": "2.0",
    "scope": "batch",
    "decision": "RETRY",
    "failure_class": "prompt_gap",
    "root_cause": "a rule was missing",
    "patches": [
        {"target": "shared_context", "operation": "append", "path": "shared.md", "content": "rule"},
        {"target": "task_prompt", "operation": "replace", "task_id": "a", "content": "text"},
        {"target": "runtime_patch", "operation": "merge", "content": {"timeout_sec": 1200}},
        {"target": "contract_hint", "operation": "append", "content": None},
    ],
    "learned_rule": "say it",
    "escalations": [{"task_id": "b", "reason": "why"}],
    "retry_policy": {"reset_tasks": ["a"], "retry_window": "same_window"},
}
PROFILES: Json = {
    "profiles": {
        "build": {"steps": [{"name": "build", "cmd": "make", "cwd": ".", "timeout_sec": 300}]},
        "both": {"steps": [{"name": "t", "cmd": "pytest"}, {"name": "l", "cmd": "ruff"}], "rollback_on_failure": False},
    }
}
ENTRY: Json = {
    "task_id": "a",
    "phase": "worker",
    "attempt_number": 1,
    "log_path": "logs/a.worker.1.log",
    "verify_log_path": None,
    "exit_code": 0,
    "failure_class": None,
    "failure_signature": None,
    "applied_patch_ids": [],
    "duration_sec": 42.5,
    "timestamp": "2026-03-20T15:21:00Z",
}
ROUND: Json = {
    "round_number": 1,
    "scope": "batch",
    "window_task_ids": ["a"],
    "failed_task_ids": ["a"],
    "decision": "RETRY",
    "applied_patch_ids": ["patch-1"],
    "timestamp": "2026-03-20T15:25:00.123+02:00",
}
STATE: Json = {
    "state_version": "2.0",
    "run_id": "run-1",
    "run_status": "RUNNING",
    "abort_reason": None,
    "manifest_digest": "00ff",
    "policy": {
        "heal_schedule": "auto",
        "batch_strategy": "fibonacci",
        "current_batch_size": 2,
        "failure_threshold": 0.2,
        "max_worker_attempts_per_task": 2,
        "max_heal_rounds_per_window": 2,
        "max_total_heal_rounds": 8,
        "signature_repeat_limit": 2,
    },
    "tasks": {
        "a": {
            "status": "FAILED",
            "worker_attempts": 1,
            "healer_attempts": 0,
            "last_failure_class": "build_error",
            "last_failure_signature": "build_error:x",
            "applied_patch_ids": ["patch-1"],
            "history": [ENTRY],
        }
    },
    "healing_rounds": [ROUND],
}
GOOD: dict[str, Json] = {
    "manifest": MANIFEST,
    "task_result": RESULT,
    "heal_decision": HEAL,
    "verify_profile": PROFILES,
    "state": STATE,
}


@dataclass(frozen=True)
class Case:
    """A document: with a code it must be refused at `path`; `by_schema` says whether a JSON Schema can see it."""

    format: str
    name: str
    data: object
    code: str = ""
    path: str = ""
    by_schema: bool = True

    def __str__(self) -> str:
        return f"{self.format} {self.name}"


def changed(base: Json, place: str, value: object) -> Json:
    """A copy with the value at `a.0.b` replaced, or dropped."""
    made = copy.deepcopy(base)
    *steps, last = [int(s) if s.isdigit() else s for s in place.split(".")]
    spot: Any = made
    for step in steps:
        spot = spot[step]
    if value is DROP:
        del spot[last]
    else:
        spot[last] = value
    return made


def path_of(place: str) -> str:
    path = ""
    for step in place.split("."):
        path += f"[{step}]" if step.isdigit() else f".{step}" if path else step
    return path


BAD, MISSING, EXTRA, VERSION = "SCHEMA_VIOLATION", "MISSING_REQUIRED_FIELD", "UNKNOWN_FIELD", "UNSUPPORTED_VERSION"
NOT_TEXT: tuple[object, ...] = (None, 1, True, [], {})
NOT_OBJECT: tuple[object, ...] = ([], None, "x", 1)
NOT_LIST: tuple[object, ...] = (None, "a", {}, 1, [1], [None])
NOT_POSITIVE: tuple[object, ...] = (0, 0.99, -1, "1", True, None, [])

REQUIRED = {
    "manifest": "manifest_version run_id tasks tasks.0.id tasks.0.prompt_ref tasks.0.depends_on tasks.0.timeout_sec "
    "tasks.0.verify_profile",
    "task_result": "contract_version task_id status summary writes.0.path writes.0.op writes.0.encoding",
    "heal_decision": "contract_version scope decision failure_class root_cause patches patches.0.target "
    "patches.0.operation escalations.0.task_id escalations.0.reason",
    "verify_profile": "profiles profiles.build.steps profiles.build.steps.0.name profiles.build.steps.0.cmd",
    "state": "state_version run_id run_status abort_reason manifest_digest policy tasks healing_rounds "
    "policy.heal_schedule policy.signature_repeat_limit tasks.a.status tasks.a.worker_attempts "
    "tasks.a.last_failure_class tasks.a.history tasks.a.history.0.task_id tasks.a.history.0.phase "
    "tasks.a.history.0.attempt_number tasks.a.history.0.log_path tasks.a.history.0.timestamp "
    "healing_rounds.0.round_number healing_rounds.0.decision healing_rounds.0.timestamp",
}
OPTIONAL = {
    "manifest": "tasks.1.context_refs tasks.1.priority tasks.1.retry_policy tasks.1.metadata "
    "tasks.1.retry_policy.max_attempts tasks.1.retry_policy.retry_on",
    "task_result": "changed_files writes evidence failure_class evidence.commands evidence.notes "
    "writes.0.sha256_before",
    "heal_decision": "learned_rule escalations retry_policy patches.0.content patches.3.content "
    "retry_policy.reset_tasks retry_policy.retry_window",
    "verify_profile": "profiles.build profiles.build.steps.0.cwd profiles.build.steps.0.timeout_sec "
    "profiles.both.rollback_on_failure",
    "state": "tasks.a tasks.a.history.0.verify_log_path tasks.a.history.0.exit_code tasks.a.history.0.failure_class "
    "tasks.a.history.0.failure_signature tasks.a.history.0.applied_patch_ids tasks.a.history.0.duration_sec",
}
OBJECTS = {
    "manifest": "tasks.0 tasks.1.retry_policy",
    "task_result": "writes.0 evidence",
    "heal_decision": "patches.0 escalations.0 retry_policy",
    "verify_profile": "profiles.build profiles.build.steps.0",
    "state": "policy tasks.a tasks.a.history.0 healing_rounds.0",
}
VALUES: dict[str, dict[str, tuple[object, ...]]] = {
    "manifest": {
        "manifest_version": (*NOT_TEXT, "2", "1.0", "2.0 "),
        "run_id": NOT_TEXT,
        "tasks": (None, {}, [], "a", [1], [None], [[]]),
        "tasks.0.id": NOT_TEXT,
        "tasks.0.prompt_ref": (*NOT_TEXT, ""),
        "tasks.0.depends_on": NOT_LIST,
        "tasks.0.timeout_sec": NOT_POSITIVE,
        "tasks.0.verify_profile": (*NOT_TEXT, ""),
        "tasks.1.context_refs": NOT_LIST,
        "tasks.1.priority": ("1", True, None, []),
        "tasks.1.retry_policy": (None, [], 1),
        "tasks.1.retry_policy.max_attempts": NOT_POSITIVE,
        "tasks.1.retry_policy.retry_on": NOT_LIST,
        "tasks.1.metadata": (None, [], "x"),
    },
    "task_result": {
        "contract_version": (*NOT_TEXT, "2", "3.0"),
        "task_id": (*NOT_TEXT, ""),
        "status": (*NOT_TEXT, "done", "PENDING", ""),
        "summary": (*NOT_TEXT, ""),
        "changed_files": NOT_LIST,
        "writes": (None, {}, [1], "x"),
        "writes.0.path": (*NOT_TEXT, ""),
        "writes.0.op": (*NOT_TEXT, "delete"),
        "writes.0.encoding": (*NOT_TEXT, "utf-8", "base64"),
        "writes.0.content": NOT_TEXT,
        "writes.0.content_ref": NOT_TEXT,
        "writes.0.sha256_before": NOT_TEXT,
        "evidence": (None, [], "x"),
        "evidence.log_refs": NOT_LIST,
        "failure_class": NOT_TEXT,
    },
    "heal_decision": {
        "contract_version": (*NOT_TEXT, "2"),
        "scope": (*NOT_TEXT, "window"),
        "decision": (*NOT_TEXT, "retry"),
        "failure_class": (*NOT_TEXT, ""),
        "root_cause": (*NOT_TEXT, ""),
        "patches": (None, {}, [1], "x"),
        "patches.0.target": (None, 1, "source"),
        "patches.0.operation": (*NOT_TEXT, "delete"),
        "patches.0.path": NOT_TEXT,
        "patches.1.task_id": NOT_TEXT,
        "learned_rule": NOT_TEXT,
        "escalations": (None, {}, ["a"]),
        "escalations.0.reason": NOT_TEXT,
        "retry_policy": (None, [], 1),
        "retry_policy.reset_tasks": NOT_LIST,
        "retry_policy.retry_window": (*NOT_TEXT, "now"),
    },
    "verify_profile": {
        "profiles": (None, [], "x", {"p": None}, {"p": []}),
        "profiles.build.steps": (None, {}, [], "make", ["make"]),
        "profiles.build.steps.0.name": (*NOT_TEXT, ""),
        "profiles.build.steps.0.cmd": (*NOT_TEXT, "", ["make"]),
        "profiles.build.steps.0.cwd": NOT_TEXT,
        "profiles.build.steps.0.timeout_sec": NOT_POSITIVE,
        "profiles.both.rollback_on_failure": (None, 1, "true"),
    },
    "state": {
        "state_version": (*NOT_TEXT, "1.0"),
        "run_id": (*NOT_TEXT, ""),
        "run_status": (*NOT_TEXT, "STOPPED"),
        "abort_reason": (1, False, []),
        "manifest_digest": (*NOT_TEXT, ""),
        "policy": (None, [], "auto"),
        "policy.heal_schedule": (*NOT_TEXT, "always"),
        "policy.batch_strategy": (*NOT_TEXT, "linear"),
        "policy.current_batch_size": NOT_POSITIVE,
        "policy.failure_threshold": (-0.1, 1.1, "0", None, True),
        "policy.max_heal_rounds_per_window": (-1, "0", None),
        "policy.signature_repeat_limit": NOT_POSITIVE,
        "tasks": (None, [], {"a": None}),
        "tasks.a.status": (*NOT_TEXT, "TODO"),
        "tasks.a.worker_attempts": (-1, None, "0"),
        "tasks.a.last_failure_class": (1, [], False),
        "tasks.a.applied_patch_ids": NOT_LIST,
        "tasks.a.history": (None, {}, [1]),
        "tasks.a.history.0.phase": (*NOT_TEXT, "merge"),
        "tasks.a.history.0.attempt_number": NOT_POSITIVE,
        "tasks.a.history.0.exit_code": ("0", True, []),
        "tasks.a.history.0.timestamp": (None, 1, "yesterday", "2026-03-20", "2026-02-30T00:00:00Z", ""),
        "healing_rounds": (None, {}, [1]),
        "healing_rounds.0.round_number": NOT_POSITIVE,
        "healing_rounds.0.scope": (*NOT_TEXT, "run"),
        "healing_rounds.0.timestamp": (None, "2026-03-20 15:25:00Z", "2026-03-20T25:00:00Z", "2026-03-20T15:25:00"),
    },
}
STILL_GOOD: list[tuple[str, str, object]] = [
    ("manifest", "tasks.0.timeout_sec", 1),
    ("manifest", "tasks.0.timeout_sec", 1.0),
    ("manifest", "tasks.0.timeout_sec", 10**30),
    ("manifest", "tasks.1.priority", 0.5),
    ("manifest", "tasks.0.id", "Größe 7 (β)"),
    ("manifest", "tasks.1.metadata", {}),
    ("manifest", "tasks.1.metadata", {"anything": {"goes": [None, 1.5]}}),
    ("manifest", "tasks.1.retry_policy", {}),
    ("task_result", "failure_class", "transient_infra:api"),
    ("task_result", "failure_class", ""),
    ("task_result", "writes", []),
    ("task_result", "evidence", {}),
    ("task_result", "status", "CONTRACT_ERROR"),
    ("heal_decision", "patches", []),
    ("heal_decision", "patches.2.content", "text"),
    ("heal_decision", "patches.2.content", [1, None]),
    ("heal_decision", "decision", "NOT_FIXABLE"),
    ("verify_profile", "profiles", {}),
    ("verify_profile", "profiles.build.rollback_on_failure", True),
    ("state", "tasks", {}),
    ("state", "policy.concurrency", 4),
    ("state", "policy.failure_threshold", 0),
    ("state", "policy.batch_strategy", "fixed"),
    ("state", "tasks.a.last_log_tail", "the end"),
    ("state", "tasks.a.last_log_tail", None),
    ("state", "tasks.a.last_failure_class", "merge_conflict"),
    ("state", "tasks.a.history.0.exit_code", None),
    ("state", "tasks.a.history.0.timestamp", "2026-12-31T23:59:60z"),
    ("state", "abort_reason", ""),
]
BEYOND_SCHEMA: list[tuple[str, str, object, str, str]] = [
    ("task_result", "writes.0", {"path": "a", "op": "create", "encoding": "utf8"}, MISSING, "writes[0]"),
    ("heal_decision", "patches.0.path", DROP, MISSING, "patches[0].path"),
    ("heal_decision", "patches.0.path", "", BAD, "patches[0].path"),
    ("heal_decision", "patches.1.task_id", DROP, MISSING, "patches[1].task_id"),
    ("state", "run_status", "ABORTED", BAD, "abort_reason"),
    *(
        ("manifest", "tasks.0.id", name, "BAD_TASK_ID", "tasks[0].id")
        for name in (
            "",
            "a/b",
            "a\\b",
            "a\0b",
            "a\nb",
            ".",
            "..",
            " a",
            "a ",
            "x\u202ey",
            "x\u200by",
            "\x9b",
            "é" * 101,
        )
    ),
    *(
        ("manifest", "run_id", name, "BAD_RUN_ID", "run_id")
        for name in ("", "../up", "..", "a\tb", "\ufeffa", "r" * 201)
    ),
    ("manifest", "tasks.1.id", "A", "CASE_TWIN", "tasks[1].id"),
    *(
        ("manifest", f"tasks.1.metadata.{key}", value, "BAD_METADATA", f"tasks[1].metadata.{key}{suffix}")
        for key, value, suffix in (
            ("role", 1, ""),
            ("kind", "", ""),
            ("repo", None, ""),
            ("mode", "git", ""),
            ("mode", ["direct"], ""),
            ("stage", True, ""),
            ("stage", 1.5, ""),
            ("max_attempts", 4, ""),
            ("max_attempts", 0, ""),
            ("max_attempts", True, ""),
            ("may_change_gates", "yes", ""),
            ("may_break_interface", 1, ""),
            ("allow_shrinkage", 1, ""),
            ("files_create", "src/a.py", ""),
            ("files_modify", ["ok.py", "/abs"], "[1]"),
            ("files_read", ["../up"], "[0]"),
            ("files_read", ["a//b"], "[0]"),
            ("files_read", ["./a"], "[0]"),
            ("files_read", ["a/"], "[0]"),
            ("files_read", ["C:/a"], "[0]"),
            ("expected_files", ["a\\b"], "[0]"),
            ("expected_files", ["a\0b"], "[0]"),
            ("expected_files", [""], "[0]"),
            ("expected_files", [3], "[0]"),
        )
    ),
]
SCHEMA_SEES = {"BAD_TASK_ID", "BAD_RUN_ID"}


def _cases() -> Iterator[Case]:
    for name, base in GOOD.items():
        yield Case(name, "sample", base)
        yield from (Case(name, f"is {data!r}", data, BAD) for data in NOT_OBJECT)
        yield from (Case(name, f"without {p}", changed(base, p, DROP)) for p in OPTIONAL[name].split())
        for place in REQUIRED[name].split():
            yield Case(name, f"without {place}", changed(base, place, DROP), MISSING, path_of(place))
        for place in ("", *(f"{p}." for p in OBJECTS[name].split())):
            yield Case(name, f"extra in {place}", changed(base, f"{place}zzz", 1), EXTRA, path_of(f"{place}zzz"))
        for place, values in VALUES[name].items():
            for value in values:
                yield Case(name, f"{place} is {value!r}", changed(base, place, value), code_of(place, value), "")
    yield from (Case(f, f"{p} may be {v!r}", changed(GOOD[f], p, v)) for f, p, v in STILL_GOOD)
    for name, place, value, code, path in BEYOND_SCHEMA:
        seen = (code in SCHEMA_SEES and value == "") or path == "writes[0]"
        yield Case(name, f"{place} set to {value!r:.40}", changed(GOOD[name], place, value), code, path, seen)


def code_of(place: str, value: object) -> str:
    return VERSION if place.endswith("_version") else BAD


CASES = list(_cases())

"""The words of the system: statuses, reasons, classes. These words mean nothing else anywhere."""

from __future__ import annotations

from enum import StrEnum


class TaskStatus(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    BLOCKED = "BLOCKED"
    FAILED = "FAILED"
    ESCALATED = "ESCALATED"


# What needs a person most comes first.
NEEDS_FIRST = (
    TaskStatus.ESCALATED,
    TaskStatus.BLOCKED,
    TaskStatus.FAILED,
    TaskStatus.RUNNING,
    TaskStatus.PENDING,
    TaskStatus.DONE,
)


class RunStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    ABORTED = "ABORTED"


class WorkerState(StrEnum):
    """One process on one attempt; the last three are abnormal."""

    SPAWNED = "SPAWNED"
    EXECUTING = "EXECUTING"
    REPORTING = "REPORTING"
    STOPPED = "STOPPED"
    STALLED = "STALLED"
    CRASHED = "CRASHED"
    CHECKPOINTED = "CHECKPOINTED"


class BlockReason(StrEnum):
    AWAITING_REVIEW = "awaiting_review"
    QUOTA_WAIT = "quota_wait"
    NEEDS_REWORK = "needs_rework"
    PERMISSION_DENIED = "permission_denied"
    DEPENDENCY_FAILED = "dependency_failed"
    EXTERNAL = "external"
    PAUSED = "paused"


class FailureClass(StrEnum):
    PROMPT_GAP = "prompt_gap"
    MISSING_PATHS = "missing_paths"
    WEAK_CONTRACT = "weak_contract"
    CONTRACT_ERROR = "contract_error"
    OUTPUT_FORMAT = "output_format"
    TIMEOUT = "timeout"
    TRANSIENT_INFRA = "transient_infra"
    BLOCKED_EXTERNAL = "blocked_external"
    REAL_BUG = "real_bug"
    BUILD_ERROR = "build_error"
    TEST_ERROR = "test_error"
    SMOKE_ERROR = "smoke_error"
    CRASH = "crash"
    STALLED = "stalled"
    QUOTA = "quota"
    PERMISSION_DENIED = "permission_denied"
    POLICY_VIOLATION = "policy_violation"
    NO_CHANGE = "no_change"
    MERGE_CONFLICT = "merge_conflict"
    CI_ERROR = "ci_error"
    DEPENDENCY_BROKEN = "dependency_broken"
    FATAL = "fatal"
    ENVIRONMENT = "environment"


class Tier(StrEnum):
    """Verification tiers, in the order they run; quality never blocks."""

    SYNTAX = "syntax"
    CORRECTNESS = "correctness"
    SMOKE = "smoke"
    QUALITY = "quality"


class HealSchedule(StrEnum):
    AUTO = "auto"
    OFF = "off"
    TASK = "task"
    BATCH = "batch"
    EPOCH = "epoch"


class Phase(StrEnum):
    """What a history entry of state 2.0 describes."""

    WORKER = "worker"
    VERIFY = "verify"
    HEALER = "healer"
    ROLLBACK = "rollback"

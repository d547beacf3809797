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


class AttemptStep(StrEnum):
    """How far Ganger is with an attempt."""

    NONE = ""
    AGENT = "agent"
    PARSE = "parse"
    WRITE = "write"
    WRITTEN = "written"
    CHANGE = "change"
    VERIFY = "verify"
    VERIFIED = "verified"
    MERGE = "merge"
    DELIVER = "deliver"
    FAILED = "failed"


class WorkerVerdict(StrEnum):
    """Why Ganger stops a worker. `UNTOLD`: the session that asked for the task never learned that it has it."""

    NONE = ""
    STALLED = "stalled"
    CRASHED = "crashed"
    LINGERING = "lingering"
    CONTEXT = "context"
    LOST_MESSAGE = "lost_message"
    UNTOLD = "untold"
    ENDED = "ended"
    REASSIGNED = "reassigned"
    SKIPPED = "skipped"


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


class Mode(StrEnum):
    """Where attempts work: in the project's folder, or each in a checkout of its own, and with a forge besides."""

    DIRECT = "direct"
    LOCAL_GIT = "local-git"
    FORGE = "forge"


class MergeMode(StrEnum):
    """When changes are merged: each when its turn comes, or all of a level together."""

    QUEUE = "queue"
    LEVEL = "level"


class PushStyle(StrEnum):
    """How changes leave the machine: pushed to a shared branch, or as a change request each."""

    BRANCH = "branch"
    REQUEST = "request"


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

"""Failure classes as one table, and signatures: stable names for faults."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from ganger.core.vocabulary import BlockReason, FailureClass


@dataclass(frozen=True, slots=True)
class ClassRow:
    """What one failure class means and what Ganger does about it."""

    kind: str
    healable: bool
    retryable: bool
    meaning: str
    then: str
    blocks_as: BlockReason | None = None


def _row(
    kind: str,
    flags: str,
    meaning: str,
    then: str = "another worker attempt, then FAILED",
    blocks: BlockReason | None = None,
) -> ClassRow:
    return ClassRow(kind, "h" in flags, "r" in flags, meaning, then, blocks)


CLASSES: dict[FailureClass, ClassRow] = {
    FailureClass.PROMPT_GAP: _row("recoverable", "hr", "the prompt or its context lacks something the worker needed"),
    FailureClass.MISSING_PATHS: _row("recoverable", "hr", "files or folders the task names are not there"),
    FailureClass.WEAK_CONTRACT: _row("recoverable", "hr", "the prompt does not make the wanted answer clear enough"),
    FailureClass.CONTRACT_ERROR: _row(
        "recoverable",
        "hr",
        "the worker's answer has no valid result block",
        "one format retry with a strict reminder, then it counts as a worker failure",
    ),
    FailureClass.OUTPUT_FORMAT: _row("recoverable", "hr", "the answer has the wrong form, although the block is valid"),
    FailureClass.TIMEOUT: _row("recoverable", "hr", "the worker or a verification step ran out of time"),
    FailureClass.TRANSIENT_INFRA: _row("transient", "hr", "network, server or machine trouble that tends to pass"),
    FailureClass.BLOCKED_EXTERNAL: _row(
        "blocking", "", "something outside the task must happen first", "BLOCKED(external)", BlockReason.EXTERNAL
    ),
    FailureClass.REAL_BUG: _row(
        "recoverable", "", "a genuine defect in the product that no prompt can mend", "FAILED; a person looks at it"
    ),
    FailureClass.BUILD_ERROR: _row("recoverable", "hr", "the change does not build, lint or type-check"),
    FailureClass.TEST_ERROR: _row("recoverable", "hr", "the operator's tests fail on the change"),
    FailureClass.SMOKE_ERROR: _row(
        "recoverable", "hr", "the change builds and passes tests but does not run as it should"
    ),
    FailureClass.CRASH: _row(
        "recoverable",
        "",
        "the worker process ended abnormally without a result",
        "run again once, then BLOCKED(paused)",
        BlockReason.PAUSED,
    ),
    FailureClass.STALLED: _row("recoverable", "r", "the worker was alive but made no progress"),
    FailureClass.QUOTA: _row(
        "blocking", "", "the account's quota or rate limit is used up", "BLOCKED(quota_wait)", BlockReason.QUOTA_WAIT
    ),
    FailureClass.PERMISSION_DENIED: _row(
        "permission_denied",
        "",
        "the worker was refused a permission it needs",
        "BLOCKED(permission_denied)",
        BlockReason.PERMISSION_DENIED,
    ),
    FailureClass.POLICY_VIOLATION: _row(
        "recoverable", "hr", "the change breaks a rule: protected or unsafe path, shrinkage, stale hash"
    ),
    FailureClass.NO_CHANGE: _row("recoverable", "hr", "the worker says done but changed nothing"),
    FailureClass.MERGE_CONFLICT: _row("recoverable", "r", "the change does not apply to the newest head"),
    FailureClass.CI_ERROR: _row("recoverable", "r", "the forge's CI failed for the pushed commit"),
    FailureClass.DEPENDENCY_BROKEN: _row("blocking", "", "work this task builds on broke"),
    FailureClass.FATAL: _row("fatal", "", "going on could do harm: leaked key, corrupted data", "the chain halts"),
}


_BY_NAME: dict[str, FailureClass] = {cls.value: cls for cls in FailureClass}


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt: its class, its signature, and a sentence for a person."""

    failure_class: FailureClass
    signature: str
    detail: str


def known_class(word: str | None) -> FailureClass | None:
    """The class of that name, if there is one."""
    return _BY_NAME.get(word or "")


def classify_hint(hint: str | None, default: FailureClass) -> FailureClass:
    """A worker's own `failure_class` is a hint: unknown words fall back, subtypes after a colon are dropped."""
    word = (hint or "").split(":", 1)[0].strip().lower()
    return known_class(word) or default


def failure(cls: FailureClass, signal: str, detail: str, task_ids: Collection[str] = (), own_id: str = "") -> Failure:
    return Failure(cls, signature(cls.value, signal, task_ids=task_ids, own_id=own_id), detail)


_LONGEST_SIGNAL = 400
_LONGEST = 120
_LONGEST_CLASS = 40
EMPTY_SIGNAL = "unspecified"

_REPLACEMENTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), ""),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://\S+", re.I), "<url>"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?"), "<ts>"),
    (
        re.compile(
            r"\b(?:mon|tue|wed|thu|fri|sat|sun)?,? ?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) +\d{1,2} \d\d:\d\d(?::\d\d)?(?: \d{4})?",
            re.I,
        ),
        "<ts>",
    ),  # fmt: skip
    (re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"), "<ts>"),
    (re.compile(r"(?<![\w.<])(?:[A-Za-z]:\\|\\\\)[^\s\"'<>|:,;)]+"), "<path>"),
    (re.compile(r"(?<![\w.<)\]}~-])~?/[^\s\"'<>|:,;()\[\]{}]+"), "<path>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.I), "<n>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.I), "<n>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", re.I), "<n>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|us|µs|ns|sec(?:ond)?s?|min(?:ute)?s?|[smh]|[kmg]i?b|bytes)\b", re.I), "<n>"),
    (
        re.compile(
            r"\b(line|column|col|pid|port|process|thread|attempt|row|offset|char|position|seed)([ =:#]+)\d+", re.I
        ),
        r"\1 <n>",
    ),  # fmt: skip
    (re.compile(r"(?<=[\w>\])]):\d+(?::\d+)?\b"), ":<n>"),
    (re.compile(r"\d{4,}(?:\.\d+)?"), "<n>"),
    (re.compile(r"\d+\.\d{3,}"), "<n>"),
)
_TOKEN = re.compile(r"[^\s\"'`()\[\]{}<>,;:=/\\]+")


def signature(cls: str, signal: str, *, task_ids: Collection[str] = (), own_id: str = "") -> str:
    """`<class>:<signal>` with everything removed that differs between two appearances of one fault (T21)."""
    text = signal[:_LONGEST_SIGNAL]
    if own_id:
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(own_id)}(?![A-Za-z0-9])", "<task>", text, flags=re.I)
    if task_ids:
        text = _TOKEN.sub(lambda m: "<task>" if m[0].rstrip(".") in task_ids else m[0], text)
    for pattern, put in _REPLACEMENTS:
        text = pattern.sub(put, text)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).lower().split()) or EMPTY_SIGNAL
    head = " ".join(cls.lower().split())[:_LONGEST_CLASS]
    return f"{head}:{text}"[:_LONGEST].rstrip()

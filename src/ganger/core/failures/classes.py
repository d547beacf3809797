"""Failure classes as one table, and signatures: stable names for faults."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection
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


_ATTEMPTS = (
    "another worker attempt; with a healer it is healed first, and ESCALATED if the same failure comes back twice "
    "after healing; FAILED when attempts and healing are used up"
)
_CHECKED = f'{_ATTEMPTS}, or with policy.exhausted = "rework" BLOCKED(needs_rework)'


def _row(
    kind: str,
    flags: str,
    meaning: str,
    then: str = _ATTEMPTS,
    blocks: BlockReason | None = None,
) -> ClassRow:
    return ClassRow(kind, "h" in flags, "r" in flags, meaning, then, blocks)


CLASSES: dict[FailureClass, ClassRow] = {
    FailureClass.PROMPT_GAP: _row("recoverable", "hr", "the prompt or its context lacks something the worker needed"),
    FailureClass.MISSING_PATHS: _row("recoverable", "hr", "files or folders the task names do not exist"),
    FailureClass.WEAK_CONTRACT: _row("recoverable", "hr", "the prompt does not make the expected answer clear"),
    FailureClass.CONTRACT_ERROR: _row(
        "recoverable",
        "hr",
        "the worker's answer has no valid result block",
        f"one format retry with a strict reminder, then it counts as a worker failure: {_ATTEMPTS}",
    ),
    FailureClass.OUTPUT_FORMAT: _row("recoverable", "hr", "the block is valid, but the answer has the wrong form"),
    FailureClass.TIMEOUT: _row("recoverable", "hr", "the worker or a verification step ran out of time"),
    FailureClass.TRANSIENT_INFRA: _row(
        "transient",
        "hr",
        "network, server or machine errors that are usually temporary",
        f"3 retries, 5 s to 60 s apart, then it counts as a worker failure: {_ATTEMPTS}",
    ),
    FailureClass.BLOCKED_EXTERNAL: _row(
        "blocking", "", "something outside the task must happen first", "BLOCKED(external)", BlockReason.EXTERNAL
    ),
    FailureClass.REAL_BUG: _row(
        "recoverable",
        "",
        "a genuine defect in the product that no prompt can fix",
        "not tried again: with a healer ESCALATED, as nothing can be healed; without one FAILED; a person looks at it",
    ),
    FailureClass.BUILD_ERROR: _row("recoverable", "hr", "the change does not build, lint or type-check", _CHECKED),
    FailureClass.TEST_ERROR: _row("recoverable", "hr", "the operator's tests fail on the change", _CHECKED),
    FailureClass.SMOKE_ERROR: _row(
        "recoverable", "hr", "the change builds and passes tests but does not run as it should", _CHECKED
    ),
    FailureClass.CRASH: _row(
        "recoverable",
        "",
        "the worker process ended abnormally without a result",
        "run again once, then BLOCKED(paused) and a question in ganger inbox",
        BlockReason.PAUSED,
    ),
    FailureClass.STALLED: _row(
        "recoverable",
        "r",
        "the worker was alive but made no progress",
        "2 restarts, then another worker, then ESCALATED and a question in ganger inbox",
    ),
    FailureClass.QUOTA: _row(
        "blocking",
        "",
        "the account's quota or rate limit is used up",
        "BLOCKED(quota_wait); every task of that account waits, and comes back by itself",
        BlockReason.QUOTA_WAIT,
    ),
    FailureClass.PERMISSION_DENIED: _row(
        "permission_denied",
        "",
        "the worker was refused a permission it needs",
        "BLOCKED(permission_denied) and a question in ganger inbox",
        BlockReason.PERMISSION_DENIED,
    ),
    FailureClass.POLICY_VIOLATION: _row(
        "recoverable",
        "hr",
        "the change breaks a rule: protected, gate or undeclared file, unsafe path, shrinkage, stale hash",
        _CHECKED,
    ),
    FailureClass.NO_CHANGE: _row(
        "recoverable",
        "hr",
        "the worker says done but changed nothing, and verification fails without a change",
        f"asked again once, then it counts as a worker failure: {_CHECKED}",
    ),
    FailureClass.MERGE_CONFLICT: _row(
        "recoverable",
        "r",
        "the change does not apply to the newest head",
        "2 new attempts on the new head with the conflict in the prompt, then BLOCKED(needs_rework)",
    ),
    FailureClass.CI_ERROR: _row(
        "recoverable",
        "r",
        "the forge's CI failed for the pushed commit",
        "fixed up to delivery.fixes times (5), with a question in ganger inbox after 3 of them, then ESCALATED",
    ),
    FailureClass.DEPENDENCY_BROKEN: _row(
        "blocking", "", "work that this task builds on failed", "BLOCKED(paused)", BlockReason.PAUSED
    ),
    FailureClass.FATAL: _row(
        "fatal",
        "",
        "continuing could do harm: leaked key, corrupted data",
        "the chain of repositories halts until ganger unlock",
    ),
    FailureClass.ENVIRONMENT: _row(
        "blocking",
        "",
        "the agent's program or a check cannot run on this machine, with or without the change: a program, module, "
        "library or folder is missing or hidden by the sandbox, or the disk is full",
        "BLOCKED(external) with what is missing and the setting that fixes it; nothing is charged or restarted",
        BlockReason.EXTERNAL,
    ),
}
# What Ganger observes itself; a worker cannot claim one of these.
OBSERVED = frozenset(
    {
        FailureClass.CRASH,
        FailureClass.STALLED,
        FailureClass.POLICY_VIOLATION,
        FailureClass.NO_CHANGE,
        FailureClass.MERGE_CONFLICT,
        FailureClass.CI_ERROR,
        FailureClass.DEPENDENCY_BROKEN,
        FailureClass.FATAL,
        FailureClass.ENVIRONMENT,
    }
)


# How the signal begins for a check that ran out of time.
VERIFY_SIGNAL = "verify "

_BY_NAME: dict[str, FailureClass] = {cls.value: cls for cls in FailureClass}


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt: its class, its signature, and a sentence for a person.

    `undecided`: a signal ends its check with the change and without it, so the check says nothing about the change.
    """

    failure_class: FailureClass
    signature: str
    detail: str
    undecided: bool = False


def known_class(word: str | None) -> FailureClass | None:
    """The class of that name, if there is one."""
    return _BY_NAME.get(word or "")


def classify_hint(hint: str | None, default: FailureClass) -> FailureClass:
    """A worker's own `failure_class` is a hint: unknown words fall back, subtypes after a colon are dropped."""
    cls = known_class((hint or "").split(":", 1)[0].strip().lower())
    return default if cls is None or cls in OBSERVED else cls


def failure(cls: FailureClass, signal: str, detail: str, task_ids: Collection[str] = (), own_id: str = "") -> Failure:
    return Failure(cls, signature(cls.value, signal, task_ids=task_ids, own_id=own_id), detail)


_LONGEST_SIGNAL = 1000
_LONGEST = 120
_LONGEST_CLASS = 40
_LONGEST_ID = 100
_MOST_ROUNDS = 10
_MARKS = ".-$"
EMPTY_SIGNAL = "unspecified"

_DAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_CLOCK = r"\d{1,2}:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?(?: ?[ap]m\b)?"
_ZONE = r"(?: ?(?:z|utc|gmt|[+-]\d\d:?\d\d)\b)?"
_LABELS = r"lines?|columns?|cols?|pid|port|process|thread|attempt|row|offset|char|position|seed|task"


Replacements = tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]


def _pattern(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.IGNORECASE | re.ASCII)


# These go before task ids are replaced: they may contain an id, or digits that look like one.
_FIRST: Replacements = (
    (_pattern(r"\x1b\[[0-9;?]*[a-z]"), ""),
    (_pattern(r"\b[a-z][a-z0-9+.-]{1,15}://\S+"), "<url>"),
    (_pattern(r"(?<![\w.<])(?:[a-z]:\\|\\\\)[^\s\"'<>|:,;)]+"), "<path>"),
    (_pattern(r"(?<![\w.<>)\]}~-])~?/[^\s\"'<>|:,;()\[\]{}]+"), "<path>"),
    (_pattern(r"(?<=[a-z_>\])]):\[?\d+(?:[:,] ?\d+)?\]?(?![\w.])"), ":<n>"),
    (_pattern(r"\(\d+(?:, ?\d+)?\)(?=:)"), "(<n>)"),
    (_pattern(rf"\d{{4}}-\d\d-\d\d(?:[t ]{_CLOCK})?{_ZONE}"), "<ts>"),
    (_pattern(r"\b\d{8}t\d{6}z?\b"), "<ts>"),
    (_pattern(rf"\b{_DAY}{_MONTH} +\d{{1,2}},?(?: \d{{4}})? {_CLOCK}{_ZONE}(?: \d{{4}})?"), "<ts>"),
    (_pattern(rf"\b{_DAY}\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}}(?:[ :]{_CLOCK}{_ZONE})?"), "<ts>"),
    (_pattern(rf"\b\d{{1,4}}[./]\d{{1,2}}[./]\d{{4}}\b(?:,? {_CLOCK})?"), "<ts>"),
    (_pattern(rf"(?<![\w.:]){_CLOCK}(?![\w:]){_ZONE}"), "<ts>"),
    (_pattern(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "<n>"),
)
# Error codes such as `TS2304` or `E0382` distinguish faults, so their digits stay.
_LAST: Replacements = (
    (_pattern(r"\b0x[0-9a-f]+\b"), "<n>"),
    (_pattern(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "<n>"),
    (_pattern(r"\b(?:\d+(?:h|m|min|s)){2,}\b"), "<n>"),
    (_pattern(r"\b\d+(?:\.\d+)? ?(?:ms|us|µs|ns|sec(?:ond)?s?|min(?:ute)?s?|hours?|[smh]|[kmg]i?b|bytes?)\b"), "<n>"),
    (_pattern(rf"\b({_LABELS})[ =:#-]+\d+(?:-\d+)?\b"), r"\1 <n>"),
    (_pattern(r"(?<=[\w>\])]):\d+(?::\d+)?\b"), ":<n>"),
    (_pattern(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), "<n>"),
    (_pattern(r"\b\d{1,3}(?:,\d{3})+\b"), "<n>"),
    (_pattern(r"\b\d+\.\d{3,}\b"), "<n>"),
    (_pattern(r"(\b(?!tmp|pid|job|run)[a-z]{1,3}\d{4,5}\b)|\d{4,}(?:\.\d+)?"), lambda found: found[1] or "<n>"),
)


def signature(cls: str, signal: str, *, task_ids: Collection[str] = (), own_id: str = "") -> str:
    """`<class>:<signal>` without everything that differs between two occurrences of one fault (T21)."""
    head = " ".join(cls.lower().split())[:_LONGEST_CLASS]
    text = signal[:_LONGEST_SIGNAL]
    # Cutting may leave the beginning of something that must itself be removed.
    for _ in range(_MOST_ROUNDS):
        before = text
        text = _stable(text, task_ids, own_id)[: _LONGEST - len(head) - 1].rstrip()
        if text == before:
            break
    return f"{head}:{text or EMPTY_SIGNAL}"


def without_what_varies(text: str) -> str:
    """The text as it appears in a signature, before lower-casing: no times, paths, addresses or long numbers."""
    for pattern, put in (*_FIRST, *_LAST):
        text = pattern.sub(put, text)
    return " ".join(text.split())


def _stable(text: str, task_ids: Collection[str], own_id: str) -> str:
    for pattern, put in _FIRST:
        text = pattern.sub(put, text)
    text = _without_ids(text, task_ids, own_id)
    for pattern, put in _LAST:
        text = pattern.sub(put, text)
    return " ".join("".join(c if c.isprintable() else " " for c in text).lower().split())


def _without_ids(text: str, task_ids: Collection[str], own_id: str) -> str:
    """Replaces every task's id, not only the task's own: the same fault must look the same in every task."""
    if not task_ids and not own_id:
        return text
    ends = [n for n in range(1, len(text) + 1) if _is_edge(text, n)]
    parts: list[str] = []
    at = 0
    while at < len(text):
        end = _id_end(text, at, ends, task_ids, own_id) if _is_edge(text, at) else 0
        parts.append("<task>" if end else text[at])
        at = end or at + 1
    return "".join(parts)


def _is_edge(text: str, place: int) -> bool:
    """Whether a word may begin or end between these two characters."""
    return not (0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum())


def _id_end(text: str, at: int, ends: list[int], task_ids: Collection[str], own_id: str) -> int:
    """Where the longest task id that begins here ends; 0 if none does."""
    longest = max(_LONGEST_ID, len(own_id))
    for end in reversed(ends[bisect_right(ends, at) : bisect_right(ends, at + longest)]):
        word = text[at:end]
        if (word == own_id or word in task_ids) and not (_is_plain_number(text, at, end) or _is_marked(text, at)):
            marked = text[at - 1 : at] == "<" and text[end : end + 1] == ">"
            return 0 if marked else end
    return 0


def _is_marked(text: str, at: int) -> bool:
    """The name of a hidden file, an option or a variable (`.env`, `--only`, `$HOME`) is not a task id."""
    ahead = text[:at]
    plain = ahead.rstrip(_MARKS)
    return plain != ahead and not (plain and (plain[-1].isalnum() or plain[-1] in "_>"))


def _is_plain_number(text: str, at: int, end: int) -> bool:
    """A number that is an id by chance; one that is part of a name, such as `part_3`, is meant as an id."""
    if not text[at:end].isdecimal():
        return False
    beside = text[at - 1 : at] + text[end : end + 1]
    return not any(c in "/_-#'\"`" for c in beside)

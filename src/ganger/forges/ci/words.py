"""Each forge's words for runs and jobs, translated into the core's six; an unknown word is never a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ganger.core.model.ci import ALLOWED_TO_FAIL, NEEDS_APPROVAL, TIMED_OUT, UNKNOWN_WORD, Word


@dataclass(frozen=True, slots=True)
class CiWord:
    """A forge's own word (`raw`), its translation, and a reason if the six words do not say enough."""

    word: Word
    raw: str = ""
    reason: str = ""


Table = Mapping[str, tuple[Word, str]]

FORGEJO: Table = {
    "waiting": (Word.WAITING, ""),
    "blocked": (Word.WAITING, ""),
    "running": (Word.RUNNING, ""),
    "success": (Word.SUCCESS, ""),
    "failure": (Word.FAILURE, ""),
    "cancelled": (Word.CANCELLED, ""),
    "skipped": (Word.SKIPPED, ""),
}

# Before `completed`. On GitHub a `waiting` job waits for the approval of an environment; on Gitea for the jobs it
# needs.
GITHUB_STATUS: Table = {
    "queued": (Word.WAITING, ""),
    "requested": (Word.WAITING, ""),
    "pending": (Word.WAITING, ""),
    "waiting": (Word.WAITING, NEEDS_APPROVAL),
    "in_progress": (Word.RUNNING, ""),
}
GITEA_STATUS: Table = {**GITHUB_STATUS, "waiting": (Word.WAITING, "")}

CONCLUSION: Table = {
    "success": (Word.SUCCESS, ""),
    "failure": (Word.FAILURE, ""),
    "startup_failure": (Word.FAILURE, ""),
    "timed_out": (Word.FAILURE, TIMED_OUT),
    "cancelled": (Word.CANCELLED, ""),
    "stale": (Word.CANCELLED, ""),
    "skipped": (Word.SKIPPED, ""),
    "neutral": (Word.SKIPPED, ALLOWED_TO_FAIL),
    "action_required": (Word.WAITING, NEEDS_APPROVAL),
}

GITLAB: Table = {
    "created": (Word.WAITING, ""),
    "waiting_for_resource": (Word.WAITING, ""),
    "waiting_for_callback": (Word.WAITING, ""),
    "preparing": (Word.WAITING, ""),
    "pending": (Word.WAITING, ""),
    "scheduled": (Word.WAITING, ""),
    "manual": (Word.WAITING, NEEDS_APPROVAL),
    "running": (Word.RUNNING, ""),
    "canceling": (Word.RUNNING, ""),
    "success": (Word.SUCCESS, ""),
    "failed": (Word.FAILURE, ""),
    "canceled": (Word.CANCELLED, ""),
    "skipped": (Word.SKIPPED, ""),
}
GITLAB_TIMED_OUT = frozenset({"job_execution_timeout", "stuck_or_timeout_failure"})

COMMIT_STATUS: Table = {
    "pending": (Word.WAITING, ""),
    "success": (Word.SUCCESS, ""),
    "failure": (Word.FAILURE, ""),
    "error": (Word.FAILURE, ""),
    "warning": (Word.SKIPPED, ""),
    "skipped": (Word.SKIPPED, ""),
}
# Older servers report a skipped job as success and a cancelled one as failure: only the description tells.
STATUS_TEXTS: Mapping[str, Word] = {
    "has started running": Word.RUNNING,
    "has been skipped": Word.SKIPPED,
    "skipped": Word.SKIPPED,
    "has been cancelled": Word.CANCELLED,
    "has been canceled": Word.CANCELLED,
    "cancelled": Word.CANCELLED,
    "canceled": Word.CANCELLED,
}


def look_up(table: Table, raw: str) -> CiWord:
    word, reason = table.get(raw, (Word.WAITING, UNKNOWN_WORD))
    return CiWord(word, raw, reason)


def forgejo(status: str, *, need_approval: bool = False) -> CiWord:
    said = look_up(FORGEJO, status)
    held = need_approval and said.word in (Word.WAITING, Word.RUNNING)
    return CiWord(Word.WAITING, status, NEEDS_APPROVAL) if held else said


def github(status: str, conclusion: str, table: Table = GITHUB_STATUS) -> CiWord:
    if status != "completed":
        return look_up(table, status)
    return look_up(CONCLUSION, conclusion) if conclusion else CiWord(Word.WAITING, status, UNKNOWN_WORD)


def gitlab(status: str, *, failure: str = "", may_fail: bool = False) -> CiWord:
    """`failure` is GitLab's reason for a failed job. A job that is allowed to fail is not waited for."""
    said = look_up(GITLAB, status)
    if said.word is Word.FAILURE:
        reason = ALLOWED_TO_FAIL if may_fail else TIMED_OUT if failure in GITLAB_TIMED_OUT else ""
        return CiWord(said.word, f"{status}: {failure}" if failure else status, reason)
    if said.reason == NEEDS_APPROVAL and may_fail:
        return CiWord(Word.SKIPPED, status, ALLOWED_TO_FAIL)
    return said


def commit_status(status: str, description: str) -> CiWord:
    said = look_up(COMMIT_STATUS, status)
    if said.reason == UNKNOWN_WORD:
        return said
    told = description.strip().lower().rstrip(".")
    for words, word in STATUS_TEXTS.items():
        if told == words or told.startswith(f"{words} "):
            if word is Word.RUNNING and said.word is not Word.WAITING:
                break
            return CiWord(word, f"{status}: {description.strip()}")
    return said
